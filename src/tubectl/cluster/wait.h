// Wait: looks at a cluster until it is as it should be.
//
// At most ten looks a second. A node that does not answer for a while, as when it starts again,
// does not end the wait. The clock and the looks are passed in, so that a test needs neither
// a server nor time.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/time.h"
#include "client/event_loop.h"
#include "tubectl/cluster/admin.h"
#include "tubectl/cluster/state.h"

namespace tubed::tubectl::cluster {

// The result of a look.
struct Verdict {
  enum class Kind : std::uint8_t { wait, done, failed };
  Kind kind = Kind::wait;
  std::string text{};  // the condition that is missing, the result, or the reason
};

// May keep what it has seen: it is called for each state, in order, with the time of the look.
using Judge = std::function<Verdict(const State& state, client::TimePoint now)>;

// `name` is a member that votes. Fails when it was a member and is none any more, or is none
// although a leader has been known for kLost.
inline constexpr Duration kLost = std::chrono::seconds(10);
Judge until_votes(std::string name);
// `name` is no member.
Judge until_gone(std::string name);
// `to` leads; empty: another than `from`.
Judge until_leads(std::string from, std::string to);
// Fails when the node cannot know it.
Judge until_healthy();

struct Clock {
  std::function<client::TimePoint()> now;
  std::function<void(Duration)> sleep;
};
// The clock of the system.
Clock system_clock();

struct Wait {
  Judge judge{};
  std::optional<Duration> limit{};  // nothing: without limit
  // The end of the node is success, and this is its text; empty: it is not.
  std::string when_node_ends{};
  // The first look must find the node: no look has found it yet.
  bool is_first = true;
};

// A node that does not answer for this time does not run any more.
inline constexpr Duration kOutage = std::chrono::seconds(10);
inline constexpr Duration kLookInterval = std::chrono::milliseconds(100);
// A look may take as long, but not longer than the wait, or a second if that is more.
inline constexpr Duration kLongestLook = std::chrono::seconds(client::kTimeoutSeconds);

// The text of the result, or the failure. `show` gets the missing condition after each look.
Outcome<std::string> run_wait(const Wait& wait, const Clock& clock,
                              const std::function<Outcome<State>(Duration most)>& look,
                              const std::function<void(const std::string&)>& show);

}  // namespace tubed::tubectl::cluster
