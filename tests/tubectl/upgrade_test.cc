// Tests of what tubectl cluster upgrade-check prints.
#include "tubectl/cluster/upgrade.h"

#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tubectl/cluster/state.h"

namespace tubed::tubectl::cluster {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;

Member upgrade_member(std::string name, std::uint64_t level) {
  return {.name = std::move(name),
          .address = "10.0.0.1:11302",
          .votes = true,
          .match = 100,
          .silence = 10ms,
          .level = level};
}

// Three voters with level 1, of which a leads and reports, and changed by `change`.
State three(const std::function<void(State&)>& change = [](State&) {}) {
  State state = *read_state(
      R"({"name":"a","role":"leader","leader":"a","committed":100,"stored":100,"lease_ms":250,)"
      R"("feature_level":1,"members":[]})");
  state.members = {upgrade_member("a", 1), upgrade_member("b", 1), upgrade_member("c", 1)};
  state.members[0].leads = state.members[0].is_self = true;
  change(state);
  return state;
}

void set_levels(State& state, const std::vector<std::uint64_t>& levels) {
  for (std::size_t i = 0; i < levels.size(); ++i) state.members[i].level = levels[i];
}

Texts reasons_of(const std::function<void(State&)>& change) {
  return check_upgrade(three(change)).reasons;
}

std::string text_of_upgrade(const State& state) {
  return upgrade_text(state, check_upgrade(state), Paint::for_descriptor(-1));
}

}  // namespace

TEST_CASE("a cluster that is whole may be upgraded, the leader last") {
  const UpgradeCheck check = check_upgrade(three());
  CHECK(check.may_restart());
  CHECK_FALSE(check.has_begun);
  CHECK(check.order == Texts{"b", "c", "a"});
  CHECK(check.level_waits_for.empty());
  CHECK(text_of_upgrade(three()) ==
        "feature level 1, leader a\n"
        "name  role    behind  silent  level\n"
        "a     leader       0   10 ms      1\n"
        "b     voter        0   10 ms      1\n"
        "c     voter        0   10 ms      1\n"
        "no member knows a higher level\n"
        "to upgrade: b and c, then the leader, a, last\n"
        "b may be restarted now\n");
}

TEST_CASE("an upgrade continues with the nodes that know the lower level, the leader last") {
  const auto order = [](const std::vector<std::uint64_t>& levels) {
    const UpgradeCheck check = check_upgrade(three([&](State& s) { set_levels(s, levels); }));
    CHECK(check.may_restart());
    CHECK(check.has_begun);
    CHECK(check.highest == 5);
    return check.order;
  };
  CHECK(order({1, 5, 1}) == Texts{"c", "a"});
  CHECK(order({1, 5, 5}) == Texts{"a"});
  CHECK(order({5, 1, 1}) == Texts{"b", "c"});
  CHECK(order({5, 4, 5}) == Texts{"b"});
  const State last = three([](State& state) { set_levels(state, {1, 5, 5}); });
  CHECK(text_of_upgrade(last).find("the level stays 1: a knows no higher level than 1\n"
                                   "to be upgraded: the leader, a, last\n"
                                   "a may be restarted now\n") != std::string::npos);
}

TEST_CASE("a standby is upgraded before the voters") {
  const UpgradeCheck check = check_upgrade(three([](State& state) {
    state.members.push_back(upgrade_member("d", 1));
    state.members.back().votes = false;
    set_levels(state, {1, 1, 5});
  }));
  CHECK(check.order == Texts{"d", "b", "a"});
}

TEST_CASE("a member whose level is not known remains to be upgraded, and keeps the level") {
  const UpgradeCheck check = check_upgrade(three([](State& state) {
    set_levels(state, {1, 5, 1});
    state.members[2].level.reset();
  }));
  CHECK(check.order == Texts{"c", "a"});
  CHECK(check.level_waits_for ==
        Texts{"a knows no higher level than 1", "the level of c is not known"});
}

TEST_CASE("what keeps the level from rising") {
  const auto waits = [](const std::function<void(State&)>& change) {
    return check_upgrade(three([&](State& state) {
             set_levels(state, {5, 5, 5});
             change(state);
           }))
        .level_waits_for;
  };
  CHECK(waits([](State&) {}).empty());
  CHECK(waits([](State& state) { state.members[1].level = 1; }) ==
        Texts{"b knows no higher level than 1"});
  CHECK(waits([](State& state) {
          state.members[1].silence = 2500ms;
          state.members[1].failure = "Connection refused";
        }) == Texts{"b has been silent for 2.5 s: Connection refused"});
  CHECK(waits([](State& state) { state.members[2].failure = "no route"; }) ==
        Texts{"no connection to c: no route"});
  CHECK(text_of_upgrade(three([](State& state) {
          set_levels(state, {5, 4, 5});
        })).find("the level rises now: all members know a level above 1\n") != std::string::npos);
  // The highest level is in use.
  CHECK(waits([](State& state) {
          state.level = 5;
          state.members[1].silence = 5s;
        }).empty());
}

TEST_CASE("no node may be restarted while one more failure would stop the cluster") {
  CHECK(reasons_of([](State& state) { state.members[1].silence = 1s; }) ==
        Texts{"b has been silent for 1.0 s",
              "2 of 3 voters are ready, and one more failure stops the cluster"});
  CHECK(reasons_of([](State& state) { state.members[1].silence = 999ms; }).empty());
  CHECK(reasons_of([](State& state) { state.committed = 1101; }) ==
        Texts{"b lacks 1001 entries", "c lacks 1001 entries",
              "1 of 3 voters is ready, and that is no majority"});
  CHECK(reasons_of([](State& state) {
          state.committed = 1100;
          state.members[2].silence.reset();
          state.members[2].failure = "no route";
        }) == Texts{"no connection to c: no route",
                    "2 of 3 voters are ready, and one more failure stops the cluster"});
  CHECK(reasons_of([](State& state) { state.members[2].failure = "Connection refused"; })[0] ==
        "no connection to c: Connection refused");
  CHECK(reasons_of([](State& state) { state.members[2].match.reset(); })[0] ==
        "c has not answered");
  CHECK(reasons_of([](State& state) {
          state.members_index = 100;
          state.members[2].match = 99;
        })[0] == "c lacks the newest change of the members");
}

TEST_CASE("five voters survive a restart while one is down, and four do not") {
  const auto reasons = [](int more) {
    return reasons_of([more](State& state) {
      for (int i = 0; i < more; ++i) state.members.push_back(upgrade_member(i == 0 ? "d" : "e", 1));
      state.members[1].silence = 10s;
    });
  };
  CHECK(reasons(2).empty());
  CHECK(reasons(1).back() == "3 of 4 voters are ready, and one more failure stops the cluster");
  // A standby that is down is no danger.
  CHECK(reasons_of([](State& state) {
          state.members.push_back(upgrade_member("d", 1));
          state.members.back().votes = false;
          state.members.back().silence = 10s;
        }).empty());
}

TEST_CASE("one voter or two do not survive a restart") {
  CHECK(reasons_of([](State& state) { state.members.resize(1); }) ==
        Texts{"the cluster has 1 voter: its restart interrupts the service"});
  CHECK(reasons_of([](State& state) { state.members.resize(2); }) ==
        Texts{"the cluster has 2 voters: the restart of either interrupts the service"});
}

TEST_CASE("no node may be restarted without a leader, or if this node cannot know") {
  CHECK(reasons_of([](State& state) {
          state.leader.reset();
          state.role = "candidate";
        }) == Texts{"no leader is known"});
  CHECK(reasons_of([](State& state) {
          state.leader.reset();
          state.role = "waiting";
        }) == Texts{"this node has no state: it waits to be added to a cluster"});
  CHECK(reasons_of([](State& state) { state.name = "b"; }) ==
        Texts{"this node does not lead, and only the leader, a, knows how far the members are: run "
              "it there"});
  CHECK(reasons_of([](State& state) { state.lease = 0ms; }) ==
        Texts{"the leader has no lease: a majority does not answer it"});
  CHECK(reasons_of([](State& state) { state.members_index = 101; }) ==
        Texts{"the newest change of the members is not committed"});
}

TEST_CASE("the same as JSON") {
  const State state = three([](State& changed) {
    set_levels(changed, {1, 5, 1});
    changed.members.resize(2);
  });
  CHECK(upgrade_json(state, check_upgrade(state)) ==
        R"({"may_restart":false,"reasons":["the cluster has 2 voters: the restart of either )"
        R"(interrupts the service"],"next":null,"order":["a"],"leader":"a","has_begun":true,)"
        R"("level":1,"highest_level":5,"level_waits_for":["a knows no higher level than 1"],)"
        R"("members":[{"name":"a","role":"leader","behind":0,"silent_ms":10,"level":1,)"
        R"("failure":null},{"name":"b","role":"voter","behind":0,"silent_ms":10,"level":5,)"
        R"("failure":null}]})");
  CHECK(upgrade_json(three(), check_upgrade(three()))
            .starts_with(R"({"may_restart":true,"reasons":[],"next":"b","order":["b","c","a"])"));
  const State empty = *read_state(R"({"name":"x","role":"waiting","members":[]})");
  CHECK(upgrade_json(empty, check_upgrade(empty)).find(R"("next":null,"order":[],"leader":null)") !=
        std::string::npos);
  CHECK(text_of_upgrade(empty) == "feature level 1, leader -\nno member knows a higher level\n");
}

}  // namespace tubed::tubectl::cluster
