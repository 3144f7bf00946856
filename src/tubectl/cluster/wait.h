// Wait: queries a cluster until it meets a condition.
//
// At most ten queries a second. A node that does not answer for a while, as during a restart, does
// not end the wait. The clock and the queries are passed in: tests need neither a server nor time.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/time.h"
#include "client/event_loop.h"
#include "tubectl/cluster/admin.h"
#include "tubectl/cluster/state.h"

namespace tubed::tubectl::cluster {

// The result of a query.
struct Verdict {
  enum class Kind : std::uint8_t { wait, done, failed };
  Kind kind = Kind::wait;
  std::string text{};  // the missing condition, the result, or the reason
};

// Called for each state, in order, with the time of the query. May keep state between calls.
using Judge = std::function<Verdict(const State& state, client::TimePoint now)>;

// Waits until `name` is a voter. Fails if it is no longer a member, has not become a member
// although a leader has been known for kLost, or is a standby that has never answered the leader,
// which is the reporting node, and to which the leader has had no connection for kUnreachable. Also
// fails if other voters keep it from its vote for kVoteWaits (what_vote_waits_for()).
inline constexpr Duration kLost = std::chrono::seconds(10);
inline constexpr Duration kUnreachable = std::chrono::seconds(60);
inline constexpr Duration kVoteWaits = std::chrono::seconds(60);
Judge until_votes(std::string name);
// Waits until `name`, a standby that stays, follows the leader: the change that has added it is
// committed, it has that, and lacks at most kFarBehind entries. Only the leader knows the last two:
// on another node the wait ends with the first. Fails like until_votes().
Judge until_follows(std::string name);
// Waits until `name` is not a member.
Judge until_gone(std::string name);
// Waits until the configuration has this address, HOST:PORT, for `name`, and that is committed.
Judge until_has_address(std::string name, std::string address);
// Waits until `to` leads; if `to` is empty, until another node than `from` leads.
Judge until_leads(std::string from, std::string to);
// Fails if the node cannot know whether the cluster is healthy.
Judge until_healthy();

struct Clock {
  std::function<client::TimePoint()> now;
  std::function<void(Duration)> sleep;
};
// The clock of the system.
Clock system_clock();

struct Wait {
  Judge judge{};
  std::optional<Duration> limit{};           // no value: no limit
  std::optional<client::TimePoint> start{};  // of the limit; no value: the first query
  // If not empty, the end of the node is success, reported with this text.
  std::string when_node_ends{};
  // The first query must find the node, because no query has found it yet.
  bool is_first = true;
};

// The wait fails when the node has not answered for this time.
inline constexpr Duration kOutage = std::chrono::seconds(10);
inline constexpr Duration kLookInterval = std::chrono::milliseconds(100);
// The longest query. It is also bounded by the rest of the wait, but is allowed at least a second.
inline constexpr Duration kLongestLook = std::chrono::seconds(client::kTimeoutSeconds);

// Sends a change of the members again as long as the failure may pass, for at most `limit`: the
// node may know no leader yet, or an earlier change may not be committed. A repeated change that is
// refused is made if `is_made` says so, because the answer to an earlier request may have been
// lost. A node that gives no answer at all ends it. `show` gets the reason for each repetition.
Outcome<std::monostate> run_change(
    Duration limit, const Clock& clock,
    const std::function<Outcome<std::monostate>(Duration most)>& send,
    const std::function<bool()>& is_made, const std::function<void(const std::string&)>& show);

// Returns the text of the result, or the failure. `show` gets the missing condition after each
// query.
Outcome<std::string> run_wait(const Wait& wait, const Clock& clock,
                              const std::function<Outcome<State>(Duration most)>& look,
                              const std::function<void(const std::string&)>& show);

}  // namespace tubed::tubectl::cluster
