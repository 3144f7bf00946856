// run_wait() is a loop: query the state, let the judge decide, show the missing condition, and
// sleep until the next query is due. It ends with the judge's result, at the time limit, or when
// the node has not answered for kOutage. The judges are closures that remember what they need of
// earlier states.
#include "tubectl/cluster/wait.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tubectl/exit_codes.h"

namespace tubed::tubectl::cluster {
namespace {

using Kind = Verdict::Kind;

constexpr Duration kShortestLook = std::chrono::seconds(1);
// In a text for users.
constexpr std::size_t kMostShortcomings = 5;

std::string in_seconds(Duration time) {
  return fmt::format("{} s", std::chrono::duration<double>(time).count());
}

std::string standby_in_words(const State& state, const Member& member) {
  if (!member.failure.empty())
    return fmt::format("{} is a standby without a connection: {}", member.name, member.failure);
  if (auto text = what_vote_waits_for(state, member)) return std::move(*text);
  const auto behind = state.behind(member);
  if (!behind) return fmt::format("{} is a standby", member.name);
  return fmt::format("{} is a standby that lacks {} entries", member.name, *behind);
}

// Remembers whether it has seen the member, whether the member has answered the leader, since when
// a leader has been known without it, since when the leader has had no connection to it, and since
// when other voters keep it from its vote.
class AddedJudge {
 public:
  // `votes`: the member is to vote, or else to follow.
  AddedJudge(std::string name, bool votes) : name_(std::move(name)), votes_(votes) {}

  Verdict operator()(const State& state, client::TimePoint now) {
    if (const Member* const member = state.find(name_)) {
      seen_ = true;
      // A node that has answered once may recover a large journal without an answer.
      if (member->failure.empty() && member->level) answered_ = true;
      if (member->failure.empty() || answered_ || !state.leads()) failed_since_.reset();
      if (!member->votes && (votes_ || !follows(state, *member))) {
        std::string text = standby_in_words(state, *member);
        if (votes_ && vote_waits_too_long(state, *member, now)) return {Kind::failed, text};
        if (member->failure.empty() || answered_ || !state.leads())
          return {Kind::wait, std::move(text)};
        if (!failed_since_) failed_since_ = now;
        return {now - *failed_since_ < kUnreachable ? Kind::wait : Kind::failed, std::move(text)};
      }
      if (!votes_ && !member->votes) return {Kind::done, fmt::format("{} follows", name_)};
      if (!state.has_final_members())
        return {Kind::wait, fmt::format("the vote of {} is not committed", name_)};
      if (state.lacks_change(*member))
        return {Kind::wait, fmt::format("{} does not know yet that it votes", name_)};
      return {Kind::done, fmt::format("{} votes", name_)};
    }
    // After a restart a node may know no members and no leader for a moment.
    if (!state.leader || state.members.empty()) {
      missing_since_.reset();
      return {Kind::wait, "no leader is known"};
    }
    if (!missing_since_) missing_since_ = now;
    if (seen_) {
      return {Kind::failed, fmt::format("{} is no longer a member: it was removed, or the leader "
                                        "changed before others knew of it",
                                        name_)};
    }
    if (now - *missing_since_ >= kLost) {
      return {Kind::failed, fmt::format("{} has not become a member: the leader may have changed "
                                        "before others knew of it; add it again",
                                        name_)};
    }
    return {Kind::wait, fmt::format("{} is no member yet", name_)};
  }

 private:
  static bool follows(const State& state, const Member& member) {
    if (!state.has_final_members()) return false;
    if (!state.leads()) return true;
    return !state.lacks_change(member) && state.behind(member).value_or(UINT64_MAX) <= kFarBehind;
  }

  bool vote_waits_too_long(const State& state, const Member& member, client::TimePoint now) {
    if (!what_vote_waits_for(state, member)) {
      waits_since_.reset();
      return false;
    }
    if (!waits_since_) waits_since_ = now;
    return now - *waits_since_ >= kVoteWaits;
  }

  std::string name_;
  bool votes_;
  bool seen_ = false;
  bool answered_ = false;
  std::optional<client::TimePoint> missing_since_;
  std::optional<client::TimePoint> failed_since_;
  std::optional<client::TimePoint> waits_since_;
};

}  // namespace

Judge until_votes(std::string name) {
  return AddedJudge(std::move(name), true);
}

Judge until_follows(std::string name) {
  return AddedJudge(std::move(name), false);
}

Judge until_gone(std::string name) {
  return [name = std::move(name)](const State& state, client::TimePoint) -> Verdict {
    // After a restart a node may know no members for a moment.
    if (state.members.empty() || state.find(name) != nullptr)
      return {Kind::wait, fmt::format("{} is a member still", name)};
    if (!state.has_final_members())
      return {Kind::wait, fmt::format("the removal of {} is not committed", name)};
    return {Kind::done, fmt::format("{} is no longer a member", name)};
  };
}

Judge until_has_address(std::string name, std::string address) {
  return [name = std::move(name), address = std::move(address)](const State& state,
                                                                client::TimePoint) -> Verdict {
    const Member* const member = state.find(name);
    if (member == nullptr || member->address != address)
      return {Kind::wait, fmt::format("{} does not have the address {} yet", name, address)};
    if (!state.has_final_members())
      return {Kind::wait, fmt::format("the address of {} is not committed", name)};
    return {Kind::done, fmt::format("{} has the address {}", name, address)};
  };
}

Judge until_leads(std::string from, std::string to) {
  return [from = std::move(from), to = std::move(to)](const State& state,
                                                      client::TimePoint) -> Verdict {
    if (!state.leader) return {Kind::wait, "no leader is known"};
    if (to.empty() ? *state.leader != from : *state.leader == to) {
      return {Kind::done, fmt::format("{} leads", *state.leader)};
    }
    return {Kind::wait, fmt::format("{} leads still", *state.leader)};
  };
}

Judge until_healthy() {
  return [](const State& state, client::TimePoint) -> Verdict {
    std::vector<std::string> missing = shortcomings(state);
    if (missing.empty()) return {Kind::done, ""};
    if (knows_only_itself(state)) {
      return {Kind::failed,
              fmt::format("this node does not lead, and only the leader, {}, knows how far the "
                          "members are: run it there",
                          *state.leader)};
    }
    if (missing.size() > kMostShortcomings) {
      const std::size_t more = missing.size() - kMostShortcomings;
      missing.resize(kMostShortcomings);
      missing.push_back(fmt::format("{} more", more));
    }
    return {Kind::wait, fmt::format("{}", fmt::join(missing, "; "))};
  };
}

Clock system_clock() {
  return {.now = [] { return client::Clock::now(); },
          .sleep = [](Duration time) { std::this_thread::sleep_for(time); }};
}

Outcome<std::monostate> run_change(
    Duration limit, const Clock& clock,
    const std::function<Outcome<std::monostate>(Duration most)>& send,
    const std::function<bool()>& is_made, const std::function<void(const std::string&)>& show) {
  const client::TimePoint start = clock.now();
  for (bool is_repeated = false;; is_repeated = true) {
    const client::TimePoint begin = clock.now();
    auto sent = send(std::clamp(limit - (begin - start), kShortestLook, kLongestLook));
    auto* const failure = std::get_if<Failure>(&sent);
    if (failure == nullptr || failure->code == kExitUnavailable) return sent;
    if (!failure->may_pass) {
      if (is_repeated && is_made()) return std::monostate();
      return sent;
    }
    const client::TimePoint now = clock.now();
    if (now - start >= limit) {
      failure->code = kExitTimedOut;
      failure->reason = fmt::format("after {}: {}", in_seconds(limit), failure->reason);
      return sent;
    }
    show(failure->reason);
    const Duration until_next = std::max(kLookInterval - (now - begin), Duration::zero());
    clock.sleep(std::min(until_next, limit - (now - start)));
  }
}

Outcome<std::string> run_wait(const Wait& wait, const Clock& clock,
                              const std::function<Outcome<State>(Duration most)>& look,
                              const std::function<void(const std::string&)>& show) {
  const client::TimePoint first = clock.now();
  const client::TimePoint start = wait.start.value_or(first);
  const auto left = [&](client::TimePoint now) {
    return wait.limit ? std::max(*wait.limit - (now - start), Duration::zero()) : Duration::max();
  };
  client::TimePoint answered = first;
  bool is_first = wait.is_first;
  for (;;) {
    const client::TimePoint begin = clock.now();
    auto seen = look(std::clamp(left(begin), kShortestLook, kLongestLook));
    const client::TimePoint now = clock.now();
    std::string missing;
    if (auto* const failure = std::get_if<Failure>(&seen)) {
      if (failure->is_gone && !wait.when_node_ends.empty()) return wait.when_node_ends;
      if (is_first || !failure->may_pass || now - answered >= kOutage) return std::move(*failure);
      missing = std::move(failure->reason);
    } else {
      is_first = false;
      answered = now;
      Verdict verdict = wait.judge(std::get<State>(seen), now);
      if (verdict.kind == Kind::done) return std::move(verdict.text);
      if (verdict.kind == Kind::failed) return Failure{kExitFailure, std::move(verdict.text)};
      missing = std::move(verdict.text);
    }
    if (left(now) == Duration::zero()) {
      return Failure{kExitTimedOut, fmt::format("after {}: {}", in_seconds(*wait.limit), missing)};
    }
    show(missing);
    const Duration until_next = std::max(kLookInterval - (now - begin), Duration::zero());
    clock.sleep(std::min(until_next, left(now)));
  }
}

}  // namespace tubed::tubectl::cluster
