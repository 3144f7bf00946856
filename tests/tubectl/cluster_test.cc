// The text and the decisions of tubectl cluster and wait-cluster for given states, in virtual time.
#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tubectl/cluster/state.h"
#include "tubectl/cluster/wait.h"
#include "tubectl/exit_codes.h"

namespace tubed::tubectl::cluster {
namespace {

using namespace std::chrono_literals;

const std::string kHealthy =
    R"({"name":"a","id":"01","cluster":"0000000000000abc","role":"leader","leader":"a","term":3,)"
    R"("committed":5000,"applied":5000,"stored":5000,"lease_ms":250,"raft_log_bytes":100,)"
    R"("held_over":0,"feature_level":1,"members":[)"
    R"({"name":"a","id":"01","address":"10.0.0.1:11302","votes":true,"leads":true,"self":true,)"
    R"("match":5000,"silent_ms":null,"level":2,"lag_ms":0},)"
    R"({"name":"b","id":"02","address":"10.0.0.2:11302","votes":true,"leads":false,"self":false,)"
    R"("match":4999,"silent_ms":12,"level":1,"lag_ms":3},)"
    R"({"name":"c","id":"03","address":"10.0.0.3:11302","votes":true,"leads":false,"self":false,)"
    R"("match":4000,"silent_ms":999}]})";

State healthy() {
  return *read_state(kHealthy);
}

State changed(const std::function<void(State&)>& change) {
  State state = healthy();
  change(state);
  return state;
}

// The same cluster as seen by its member b.
State follower() {
  return changed([](State& state) {
    state.name = "b";
    state.role = "follower";
    state.lease.reset();
    for (Member& member : state.members) {
      member.is_self = member.name == "b";
      member.match.reset();
      member.silence.reset();
    }
  });
}

Paint no_colours() {
  return Paint::for_descriptor(-1);
}

// A node that reports these states or failures in sequence, repeating the last, in virtual time.
struct Node {
  std::vector<Outcome<State>> seen{};
  Duration look_takes = 1ms;
  std::size_t looks = 0;
  Duration time{};
  Duration longest_look{};
  std::vector<std::string> shown{};

  Outcome<std::string> wait(const Wait& rules) {
    const Clock clock{.now = [this] { return client::TimePoint(time); },
                      .sleep = [this](Duration pause) { time += pause; }};
    return run_wait(
        rules, clock,
        [this](Duration most) {
          longest_look = std::max(longest_look, most);
          time += look_takes;
          return seen[std::min(looks++, seen.size() - 1)];
        },
        [this](const std::string& text) { shown.push_back(text); });
  }
};

std::string text_of(const Outcome<std::string>& result) {
  REQUIRE(std::holds_alternative<std::string>(result));
  return std::get<std::string>(result);
}

Failure failure_of(const Outcome<std::string>& result) {
  REQUIRE(std::holds_alternative<Failure>(result));
  return std::get<Failure>(result);
}

Wait changing(Judge judge, std::optional<Duration> limit = std::nullopt) {
  return {.judge = std::move(judge), .limit = limit, .is_first = false};
}

const Failure kRefused{kExitUnavailable, "refused", true, true};

}  // namespace

TEST_CASE("the state of a cluster is read, and other keys of the document are ignored") {
  const State state = healthy();
  CHECK(state.leads());
  CHECK(state.lease == 250ms);
  REQUIRE(state.members.size() == 3);
  CHECK(state.find("b")->address == "10.0.0.2:11302");
  CHECK(state.find("d") == nullptr);
  CHECK(state.behind(state.members[1]) == 1U);
  CHECK(state.members[0].is_self);
  CHECK_FALSE(state.members[0].silence);
  const auto least = read_state(R"({"name":"x","role":"waiting","members":[],"new":[[{}]]})");
  REQUIRE(least);
  CHECK_FALSE(least->leader);
  CHECK_FALSE(least->raft_log_bytes);
  const auto odd = read_state(R"({"name":"x","role":"leader","term":-1,"lease_ms":1e3,"leader":7,)"
                              R"("members":[{"name":"y","match":"1","silent_ms":)"
                              R"(18446744073709551615,"votes":1}]})");
  REQUIRE(odd);
  CHECK(odd->term == 0);
  CHECK_FALSE(odd->leader);
  CHECK_FALSE(odd->members[0].match);
  CHECK_FALSE(odd->members[0].votes);
  CHECK(in_words(*odd->members[0].silence) == "876000 h");
}

TEST_CASE("a document that is not the state of a cluster is refused") {
  for (const char* const document :
       {"", "x", "[]", "null", "7", "{}", R"({"name":"a","role":"leader"})",
        R"({"name":"a","role":"leader","members":{}})",
        R"({"name":"a","role":"leader","members":[1]})",
        R"({"name":"a","role":"leader","members":[{}]})", R"({"name":"a","members":[]})",
        R"({"name":1,"role":"leader","members":[]})",
        R"({"name":"a","role":"leader","members":[]} x)"}) {
    CAPTURE(document);
    CHECK_FALSE(read_state(document));
  }
  CHECK_FALSE(read_state(kHealthy.substr(0, kHealthy.size() - 1)));
  CHECK_FALSE(read_state(std::string(1'000'000, '[')));
}

TEST_CASE("the overview of a cluster") {
  CHECK(overview(healthy(), no_colours()) ==
        "cluster 0000000000000abc  this node a (leader)  leader a  term 3  committed 5000  "
        "lease 250 ms  level 1\n"
        "name  address         role    match  behind  silent  level   lag\n"
        "a     10.0.0.1:11302  leader   5000       0       -      2  0 ms\n"
        "b     10.0.0.2:11302  voter    4999       1   12 ms      1  3 ms\n"
        "c     10.0.0.3:11302  voter    4000    1000  999 ms      -     -\n");
  CHECK(warnings(healthy(), nullptr, 0ms).empty());
  CHECK(overview(*read_state(R"({"name":"x","role":"waiting","held_over":2,"members":[]})"),
                 no_colours()) ==
        "cluster   this node x (waiting)  leader -  term 0  committed 0  "
        "lease -  held over 2\n");
}

TEST_CASE("a clock that differs is a warning") {
  const auto warned = [](Milliseconds difference) {
    return warnings(changed([=](State& state) { state.members[1].clock_difference = difference; }),
                    nullptr, 0ms);
  };
  CHECK(warned(1000ms).empty());
  CHECK(warned(2500ms) == std::vector<std::string>{
                              "the clock of b differs by 2.5 s from the leader's: does NTP run?"});
}

TEST_CASE("a setting that differs between nodes is a warning") {
  const auto state = [](const std::string& differing) {
    return read_state(
        R"({"name":"a","role":"leader","leader":"a","members":[],"settings_differ":)" + differing +
        "}");
  };
  const auto differing = state(R"([{"name":"limits.job_bytes","nodes":[["a","c"],["b"]]},)"
                               R"({"name":"policy","nodes":[["a"],["b","c","d"],["e"]]}])");
  REQUIRE(differing);
  CHECK(warnings(*differing, nullptr, 0ms) ==
        std::vector<std::string>{
            "the setting limits.job_bytes differs: a and c have one value, b has another",
            "the setting policy differs: a has one value, b, c and d have another, e has another"});
  CHECK(state("[]")->differing.empty());
  for (const char* wrong : {"[1]", R"([{"name":"x"}])", R"([{"name":"x","nodes":[1]}])",
                            R"([{"name":"x","nodes":[[1]]}])"})
    CHECK_FALSE(state(wrong));
}

TEST_CASE("text of a node cannot change the terminal or add lines") {
  const auto state = read_state(
      "{\"name\":\"a\\u001b[2J\",\"role\":\"x\\ny\",\"leader\":\"\\u009b1m\",\"members\":"
      "[{\"name\":\"b\\r\\n\\t\",\"address\":\"\\u0007\"}]}");
  REQUIRE(state);
  const std::string text = overview(*state, no_colours()) + shortcomings(*state)[0];
  CHECK(std::ranges::count(text, '\n') == 3);
  CHECK(text.find("this node a\\x1b[2J (x\\ny)  leader \\xc2\\x9b1m") != text.npos);
  CHECK(text.find("b\\r\\n\\t  \\x07") != text.npos);
  CHECK(text.find('\x1b') == text.npos);
}

TEST_CASE("warnings for an operator") {
  const auto only = [](const State& state, const State* before = nullptr) {
    const auto texts = warnings(state, before, 500ms);
    REQUIRE(texts.size() == 1);
    return texts[0];
  };
  CHECK(only(changed([](State& state) { state.leader.reset(); })) ==
        "no leader is known: clients are not served");
  CHECK(only(changed([](State& state) { state.members.resize(2); })) ==
        "two voters: the loss of either stops the cluster; three survive the loss of one");
  CHECK(only(changed([](State& state) { state.members.resize(1); })) ==
        "one voter: nothing is replicated; three survive the loss of one");
  CHECK(only(changed([](State& state) { state.members.push_back(state.members[1]); })) ==
        "4 voters survive the loss of no more than 3 do: an odd number is better");
  CHECK(only(changed([](State& state) { state.members[1].silence = 2599ms; })) ==
        "b has been silent for 2.5 s");
  CHECK(only(changed([](State& state) { state.members[1].silence.reset(); })) ==
        "b has not answered yet: is a node at 10.0.0.2:11302?");
  CHECK(only(*read_state(R"({"name":"x","role":"waiting","members":[]})")) ==
        "this node has no state: it waits until a member of a cluster adds it");
  CHECK(only(follower()) == "this node does not lead: only a knows how far the members are");
  State large = healthy();
  large.raft_log_bytes = 501;
  CHECK(warnings(large, nullptr, 0ms).empty());
  large.raft_log_limit = 1000;
  CHECK(only(large) == "the raft log has 501 bytes, more than half of its bound of 1000");
  large.raft_log_bytes = 500;
  CHECK(warnings(large, nullptr, 0ms).empty());
}

TEST_CASE("two queries show that a standby does not advance") {
  const auto with_standby = [](std::optional<std::uint64_t> match) {
    return changed([match](State& state) {
      state.members.push_back(
          {.name = "d", .address = "10.0.0.4:11302", .match = match, .silence = 1ms});
    });
  };
  CHECK_FALSE(has_standby_behind(healthy()));
  CHECK_FALSE(has_standby_behind(with_standby(5000)));
  CHECK_FALSE(has_standby_behind(with_standby(std::nullopt)));
  CHECK(has_standby_behind(with_standby(7)));
  const State before = with_standby(7);
  CHECK(warnings(with_standby(7), &before, 500ms) ==
        std::vector<std::string>{"the standby d has not advanced for 500 ms: it lacks 4993 "
                                 "entries, or fetches the state"});
  CHECK(warnings(with_standby(8), &before, 500ms).empty());
  CHECK(warnings(with_standby(7), nullptr, 500ms).empty());
  const State without = healthy();
  CHECK(warnings(with_standby(7), &without, 500ms).empty());
}

TEST_CASE("times in words") {
  CHECK(in_words(0ms) == "0 ms");
  CHECK(in_words(999ms) == "999 ms");
  CHECK(in_words(1000ms) == "1.0 s");
  CHECK(in_words(59'999ms) == "59.9 s");
  CHECK(in_words(60'000ms) == "1 min");
  CHECK(in_words(7'200'000ms) == "2 h");
}

TEST_CASE("a cluster is healthy when all members vote, answer and have nearly all entries") {
  CHECK(shortcomings(healthy()).empty());
  const auto only = [](const std::function<void(State&)>& change) {
    const auto texts = shortcomings(changed(change));
    REQUIRE(texts.size() == 1);
    return texts[0];
  };
  CHECK(only([](State& state) { state.leader.reset(); }) == "no leader is known");
  CHECK(only([](State& state) { state.members.clear(); }) == "no member is known");
  CHECK(only([](State& state) { state.members[2].votes = false; }) == "c does not vote");
  CHECK(only([](State& state) { state.members[2].silence = 1000ms; }) ==
        "c has been silent for 1.0 s");
  CHECK(only([](State& state) { state.members[2].match = 3999; }) == "c lacks 1001 entries");
  CHECK(only([](State& state) { state.members_index = 5001; }) ==
        "the newest change of the members is not committed");
  CHECK(only([](State& state) { state.members_index = 4500; }) ==
        "c lacks the newest change of the members");
  CHECK(only([](State& state) { state.members[2].match.reset(); }) == "c has not answered");
  CHECK(only([](State& state) { state.members[2].silence.reset(); }) == "c has not answered");
  // A standby that stays need not vote.
  CHECK(shortcomings(changed([](State& state) {
          state.members[2].votes = false;
          state.members[2].stays = true;
        })).empty());
  // The leader has its own entries.
  CHECK(shortcomings(changed([](State& state) { state.members[0].match.reset(); })).empty());
  CHECK_FALSE(knows_only_itself(healthy()));
  CHECK(knows_only_itself(follower()));
  CHECK_FALSE(knows_only_itself(changed([](State& state) { state.members[1].match.reset(); })));
}

TEST_CASE("a wait queries at most ten times a second, and shows the missing condition") {
  const State silent = changed([](State& state) { state.members[1].silence = 5s; });
  Node node{.seen = {silent, silent, silent, healthy()}};
  CHECK(text_of(node.wait({.judge = until_healthy(), .limit = 10s})).empty());
  CHECK(node.looks == 4);
  CHECK(node.time == 301ms);
  CHECK(node.shown == std::vector<std::string>(3, "b has been silent for 5.0 s"));
  CHECK(node.longest_look == 10s);
  Node slow{.seen = {silent, silent, healthy()}, .look_takes = 150ms};
  slow.wait({.judge = until_healthy()});
  CHECK(slow.time == 450ms);
  CHECK(slow.longest_look == kLongestLook);
}

TEST_CASE("a wait ends at its limit, with the missing condition") {
  const State lost = changed([](State& state) { state.leader.reset(); });
  Node node{.seen = {lost}};
  const Failure failure = failure_of(node.wait({.judge = until_healthy(), .limit = 250ms}));
  CHECK(failure.code == kExitTimedOut);
  CHECK(failure.reason == "after 0.25 s: no leader is known");
  CHECK(node.time == 251ms);
  Node once{.seen = {lost}};
  CHECK(failure_of(once.wait({.judge = until_healthy(), .limit = 0s})).code == kExitTimedOut);
  CHECK(once.looks == 1);
  CHECK(once.longest_look == 1s);
  Node silent{.seen = {Failure{kExitUnavailable, "silent", true}}, .look_takes = 1s};
  CHECK(failure_of(silent.wait(changing(until_healthy(), 3s))).reason == "after 3 s: silent");
}

TEST_CASE("many shortcomings are reported in one short line") {
  State state = healthy();
  for (int more = 0; more < 20; ++more) state.members.push_back({.name = fmt::format("m{}", more)});
  Node node{.seen = {state}};
  CHECK(failure_of(node.wait({.judge = until_healthy(), .limit = 0s})).reason ==
        "after 0 s: m0 does not vote; m0 has not answered; m1 does not vote; m1 has not answered; "
        "m2 does not vote; 35 more");
}

TEST_CASE("a node that does not lead cannot tell whether the cluster is healthy") {
  Node node{.seen = {changed([](State& state) { state.leader.reset(); }), follower()}};
  const Failure failure = failure_of(node.wait({.judge = until_healthy()}));
  CHECK(failure.code == kExitFailure);
  CHECK(failure.reason ==
        "this node does not lead, and only the leader, a, knows how far the members are: run it "
        "there");
  // Unless it has this information from the leader.
  State informed = follower();
  for (Member& member : informed.members) {
    member.match = 5000;
    member.silence = 1ms;
  }
  Node other{.seen = {informed}};
  CHECK(text_of(other.wait({.judge = until_healthy()})).empty());
}

TEST_CASE("a node that does not answer ends a wait at first, and later after a while") {
  Node gone{.seen = {kRefused}};
  CHECK(failure_of(gone.wait({.judge = until_healthy()})).reason == "refused");
  CHECK(gone.looks == 1);
  const State silent = changed([](State& state) { state.members[1].silence = 5s; });
  Node away{.seen = {silent, kRefused, Failure{kExitFailure, "(503)", true}, healthy()}};
  CHECK(text_of(away.wait({.judge = until_healthy()})).empty());
  CHECK(away.shown == std::vector<std::string>{"b has been silent for 5.0 s", "refused", "(503)"});
  Node ended{.seen = {silent, kRefused}};
  CHECK(failure_of(ended.wait({.judge = until_healthy()})).reason == "refused");
  CHECK(ended.time >= kOutage);
  CHECK(ended.time < kOutage + 1s);
  Node strange{.seen = {silent, Failure{kExitUnavailable, "the answer is no state"}}};
  CHECK(failure_of(strange.wait({.judge = until_healthy()})).reason == "the answer is no state");
}

TEST_CASE("a wait for an added node ends when the node votes") {
  const auto with_d = [](bool votes, std::optional<std::uint64_t> match) {
    return changed([=](State& state) {
      state.members.push_back({.name = "d", .votes = votes, .match = match});
    });
  };
  const State elsewhere = changed([](State& state) { state.leader.reset(); });
  // Meanwhile the leader changes, and the node restarts.
  Node node{.seen = {healthy(), with_d(false, std::nullopt), with_d(false, 10), elsewhere, kRefused,
                     *read_state(R"({"name":"a","role":"waiting","leader":"c","members":[]})"),
                     with_d(false, 4990), with_d(true, 5000)}};
  CHECK(text_of(node.wait(changing(until_votes("d")))) == "d votes");
  CHECK(node.shown == std::vector<std::string>{
                          "d is no member yet", "d is a standby",
                          "d is a standby that lacks 4990 entries", "no leader is known", "refused",
                          "no leader is known", "d is a standby that lacks 10 entries"});
}

TEST_CASE("voters that keep a node from its vote are named") {
  const auto with_d = [](bool votes, Milliseconds silence) {
    return changed([=](State& state) {
      state.members.push_back(
          {.name = "d", .votes = votes, .match = state.committed, .silence = Milliseconds(10)});
      for (Member& member : state.members)
        if (member.name == "c") member.silence = silence;
    });
  };
  const std::string text = "d votes when it has caught up and c answers; or remove c";
  Node node{.seen = {with_d(false, kSilent), with_d(false, 10ms), with_d(true, 10ms)}};
  CHECK(text_of(node.wait(changing(until_votes("d")))) == "d votes");
  CHECK(node.shown == std::vector<std::string>{text, "d is a standby that lacks 0 entries"});
  Node in_vain{.seen = {with_d(false, kSilent)}};
  CHECK(failure_of(in_vain.wait(changing(until_votes("d")))).reason == text);
  const auto vote_warnings = [](const State& state) {
    std::vector<std::string> lines = warnings(state, nullptr, {});
    std::erase_if(lines, [](const std::string& line) { return !line.starts_with("d votes when"); });
    return lines;
  };
  CHECK(vote_warnings(with_d(false, kSilent)) == std::vector{text});
  CHECK(vote_warnings(with_d(false, 10ms)).empty());
  CHECK(vote_warnings(with_d(true, kSilent)).empty());
  State other = with_d(false, kSilent);
  other.members.back().stays = true;
  CHECK(vote_warnings(other).empty());
  other = with_d(false, kSilent);
  other.members.back().silence = kSilent;
  CHECK(vote_warnings(other).empty());
  other = with_d(false, kSilent);
  other.members.back().match = other.committed - kFarBehind - 1;
  CHECK(vote_warnings(other).empty());
  // With five voters, four are a majority of six, and three are not.
  State five = with_d(false, kSilent);
  for (const char* name : {"e", "f"}) {
    five.members.push_back(
        {.name = name, .votes = true, .match = five.committed, .silence = Milliseconds(10)});
  }
  CHECK(vote_warnings(five).empty());
  five.members.back().silence = kSilent;
  CHECK(vote_warnings(five) ==
        std::vector<std::string>{"d votes when it has caught up and c or f answers; or remove c "
                                 "or f"});
  // It answers, and lacks the change that has added d.
  State lacking = with_d(false, 10ms);
  lacking.members_index = lacking.committed;
  for (Member& member : lacking.members)
    member.match = lacking.members_index - (member.name == "c" ? 1 : 0);
  CHECK(vote_warnings(lacking) ==
        std::vector<std::string>{"d votes when it has caught up and c has the "
                                 "newest change of the members; or remove c"});
}

TEST_CASE("a wait for a standby that stays ends when it follows the leader") {
  const auto with_d = [](std::uint64_t committed, std::uint64_t match) {
    return changed([=](State& state) {
      state.committed = committed;
      state.members_index = 5001;
      state.members.push_back({.name = "d", .match = match, .stays = true});
    });
  };
  Node node{.seen = {healthy(), with_d(5000, 5000), with_d(7000, 5000), with_d(6002, 5001),
                     with_d(6002, 5002)}};
  CHECK(text_of(node.wait(changing(until_follows("d")))) == "d follows");
  CHECK(node.shown == std::vector<std::string>{"d is no member yet",
                                               "d is a standby that lacks 0 entries",
                                               "d is a standby that lacks 2000 entries",
                                               "d is a standby that lacks 1001 entries"});
  // A follower does not know what d has.
  State seen_by_follower = with_d(5001, 0);
  seen_by_follower.name = "b";
  seen_by_follower.members.back().match.reset();
  Node follower{.seen = {seen_by_follower}};
  CHECK(text_of(follower.wait(changing(until_follows("d")))) == "d follows");
  // It was promoted meanwhile.
  Node promoted{.seen = {changed([](State& state) {
                  state.members.push_back({.name = "d", .votes = true, .match = 5000});
                })}};
  CHECK(text_of(promoted.wait(changing(until_follows("d")))) == "d votes");
}

TEST_CASE("a wait for another address ends when that is committed") {
  const auto with = [](const std::string& address, std::uint64_t members_index) {
    return changed([&](State& state) {
      state.members[1].address = address;
      state.members_index = members_index;
    });
  };
  Node node{.seen = {with("10.0.0.2:1", 1), with("10.0.0.9:1", 5001), with("10.0.0.9:1", 5000)}};
  CHECK(text_of(node.wait(changing(until_has_address("b", "10.0.0.9:1")))) ==
        "b has the address 10.0.0.9:1");
  CHECK(node.shown == std::vector<std::string>{"b does not have the address 10.0.0.9:1 yet",
                                               "the address of b is not committed"});
}

TEST_CASE("a member that is reached at another address is reported, with the command for it") {
  const State state = changed([](State& seen) {
    seen.members[0].reached_at = "10.0.0.8:1";
    seen.members[1].reached_at = "10.0.0.9:1";
  });
  const std::vector<std::string> texts = warnings(state, nullptr, {});
  REQUIRE(texts.size() == 2);
  CHECK(texts[0] ==
        "a listens at 10.0.0.8:1, and not at its address: tubectl cluster set-address "
        "a 10.0.0.8:1");
  CHECK(texts[1] ==
        "b is reached at 10.0.0.9:1, and not at its address: tubectl cluster "
        "set-address b 10.0.0.9:1");
}

TEST_CASE("a wait for an added node ends if there is no connection to it") {
  const auto with_d = [](std::string failure) {
    return changed([&](State& state) {
      state.members.push_back({.name = "d", .match = 0, .failure = std::move(failure)});
    });
  };
  Node unreachable{.seen = {with_d("no route")}};
  const Failure failure = failure_of(unreachable.wait(changing(until_votes("d"))));
  CHECK(failure.code == kExitFailure);
  CHECK(failure.reason == "d is a standby without a connection: no route");
  CHECK(unreachable.time >= kUnreachable);
  // A follower does not know of the link of the leader.
  State seen_by_follower = with_d("no route");
  seen_by_follower.name = "b";
  Node follower{.seen = {seen_by_follower}};
  CHECK(failure_of(follower.wait(changing(until_votes("d"), 3 * kUnreachable))).code ==
        kExitTimedOut);
  // A node that has answered recovers its journal.
  State answered = with_d("");
  answered.members.back().level = 5;
  Node recovering{.seen = {answered, with_d("no welcome in time")}};
  CHECK(failure_of(recovering.wait(changing(until_votes("d"), 3 * kUnreachable))).code ==
        kExitTimedOut);
  // A node that is connected now and then may take longer.
  Node node{.look_takes = kUnreachable - 1s};
  for (int i = 0; i < 5; ++i) {
    node.seen.push_back(with_d("no route"));
    node.seen.push_back(with_d(""));
  }
  node.seen.push_back(changed(
      [](State& state) { state.members.push_back({.name = "d", .votes = true, .match = 5000}); }));
  CHECK(text_of(node.wait(changing(until_votes("d")))) == "d votes");
}

TEST_CASE("a wait for an added node ends when the loss of any node cannot undo its vote") {
  const auto with_d = [](std::uint64_t committed, std::optional<std::uint64_t> match) {
    return changed([=](State& state) {
      state.committed = committed;
      state.members_index = 5001;
      state.members.push_back({.name = "d", .votes = true, .match = match});
    });
  };
  Node node{.seen = {with_d(5000, 5000), with_d(5001, 5000), with_d(5001, 5001)}};
  CHECK(text_of(node.wait(changing(until_votes("d")))) == "d votes");
  CHECK(node.shown == std::vector<std::string>{"the vote of d is not committed",
                                               "d does not know yet that it votes"});
  // A follower does not know what d has.
  Node follower{.seen = {with_d(5000, std::nullopt), with_d(5001, std::nullopt)}};
  CHECK(text_of(follower.wait(changing(until_votes("d")))) == "d votes");
  CHECK(follower.looks == 2);
}

TEST_CASE("a wait ends if the node is not added after all") {
  State with_d = healthy();
  with_d.members.push_back({.name = "d"});
  Node removed{.seen = {with_d, healthy()}};
  CHECK(failure_of(removed.wait(changing(until_votes("d")))).reason ==
        "d is no longer a member: it was removed, or the leader changed before others knew of it");
  Node never{.seen = {healthy()}};
  const Failure failure = failure_of(never.wait(changing(until_votes("d"))));
  CHECK(failure.code == kExitFailure);
  CHECK(failure.reason ==
        "d has not become a member: the leader may have changed before others knew of it; add it "
        "again");
  CHECK(never.time >= kLost);
  CHECK(never.time < kLost + 1s);
}

// A leader that answers these, one after the other, in virtual time.
struct Leader {
  std::vector<Outcome<std::monostate>> answers;
  bool has_changed = false;
  std::size_t sent = 0;
  Duration time{};
  std::vector<std::string> shown{};

  Outcome<std::monostate> change(Duration limit) {
    const Clock clock{.now = [this] { return client::TimePoint(time); },
                      .sleep = [this](Duration pause) { time += pause; }};
    return run_change(
        limit, clock,
        [this](Duration) {
          time += 1ms;
          return answers[std::min(sent++, answers.size() - 1)];
        },
        [this] { return has_changed; }, [this](const std::string& text) { shown.push_back(text); });
  }
};

TEST_CASE("a change is sent again until the leader can take it") {
  const Failure busy{kExitFailure, "another change is under way (503)", true};
  const Failure taken{kExitFailure, "d is a member (409)"};
  Leader ready{.answers = {std::monostate()}};
  CHECK(std::holds_alternative<std::monostate>(ready.change(30s)));
  CHECK(ready.sent == 1);
  Leader later{.answers = {busy, busy, std::monostate()}};
  CHECK(std::holds_alternative<std::monostate>(later.change(30s)));
  CHECK(later.shown == std::vector<std::string>(2, busy.reason));
  CHECK(later.time == 201ms);
  Leader never{.answers = {busy}};
  const auto late = never.change(250ms);
  CHECK(std::get<Failure>(late).code == kExitTimedOut);
  CHECK(std::get<Failure>(late).reason == "after 0.25 s: another change is under way (503)");
  CHECK(never.time < 300ms);
  // The first answer is final, also if the member is there.
  Leader member{.answers = {taken}, .has_changed = true};
  CHECK(std::get<Failure>(member.change(30s)).reason == taken.reason);
  // An answer was lost on its way from the leader.
  Leader lost{.answers = {busy, taken}, .has_changed = true};
  CHECK(std::holds_alternative<std::monostate>(lost.change(30s)));
  Leader other{.answers = {busy, taken}};
  CHECK(std::get<Failure>(other.change(30s)).reason == taken.reason);
  Leader gone{.answers = {busy, kRefused}};
  CHECK(std::get<Failure>(gone.change(30s)).reason == kRefused.reason);
  CHECK(gone.sent == 2);
}

TEST_CASE("a wait for a removal ends when the node is no member, or has ended itself") {
  const State without_c = changed([](State& state) { state.members.pop_back(); });
  const State starting = changed([](State& state) { state.members.clear(); });
  Node node{.seen = {healthy(), starting, without_c}};
  CHECK(text_of(node.wait(changing(until_gone("c"), 30s))) == "c is no longer a member");
  CHECK(node.shown == std::vector<std::string>(2, "c is a member still"));
  const State uncommitted = changed([](State& state) {
    state.members.pop_back();
    state.members_index = state.committed + 1;
  });
  Node early{.seen = {uncommitted, without_c}};
  CHECK(text_of(early.wait(changing(until_gone("c"), 30s))) == "c is no longer a member");
  CHECK(early.shown == std::vector<std::string>{"the removal of c is not committed"});
  Wait itself = changing(until_gone("a"), 30s);
  itself.when_node_ends = "a was removed, and has ended";
  Node ended{.seen = {healthy(), Failure{kExitUnavailable, "slow", true}, kRefused}};
  CHECK(text_of(ended.wait(itself)) == "a was removed, and has ended");
  Node stays{.seen = {healthy()}};
  CHECK(failure_of(stays.wait(changing(until_gone("c"), 30s))).reason ==
        "after 30 s: c is a member still");
}

TEST_CASE("a wait for a transfer ends when the other node leads") {
  const auto led_by = [](std::optional<std::string> leader) {
    return changed([&](State& state) { state.leader = std::move(leader); });
  };
  Node any{.seen = {healthy(), led_by(std::nullopt), led_by("c")}};
  CHECK(text_of(any.wait(changing(until_leads("a", "")))) == "c leads");
  CHECK(any.shown == std::vector<std::string>{"a leads still", "no leader is known"});
  Node named{.seen = {healthy(), led_by("c"), led_by("b")}};
  CHECK(text_of(named.wait(changing(until_leads("a", "b")))) == "b leads");
  CHECK(named.shown == std::vector<std::string>{"a leads still", "c leads still"});
}

}  // namespace tubed::tubectl::cluster
