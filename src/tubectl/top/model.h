// Model: the state of the server: its last answers, its rates, and whether it is reachable.
//
// The model sends no requests: its owner passes snapshots, each with its time, and losses.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/stats_block.h"
#include "tubectl/snapshot.h"
#include "tubectl/top/tube_list.h"

namespace tubed::tubectl::top {

// Events shown as rates per second.
enum class Flow : std::uint8_t { puts, reserves, deletes, timeouts };
inline constexpr std::size_t kFlows = 4;

// The next job of its state.
struct HeadJob {
  std::string state;  // ready, delayed or buried
  std::uint64_t id = 0;
  std::size_t bytes = 0;
  std::string body;  // only the beginning
  client::StatsBlock stats;
};

// A tube with everything that the server reports about it.
struct Details {
  std::string tube;
  bool there = false;
  client::StatsBlock stats;
  std::vector<HeadJob> jobs;
};

// Owned by the live view or by --once; not shared with the watcher's thread.
class Model {
 public:
  // `address`: as shown on the screen, such as "127.0.0.1:11300".
  explicit Model(std::string address) : address_(std::move(address)) {}

  // Sets the shortest time that rates may cover. A snapshot that a key has asked for may follow the
  // last so soon that its rates would be 0 or a spike.
  void rate_over(std::chrono::steady_clock::duration least) { least_ = least; }
  // Takes a new snapshot. Rates cover the time since the last snapshot, unless the server was lost
  // meanwhile. After less than the shortest time, the rates stay, and the next rates include it.
  void update(Snapshot snapshot);
  // The server is not reachable; the last known values are kept.
  void lost(std::string reason);

  const std::string& address() const { return address_; }
  // Empty until the first update.
  const client::StatsBlock& server() const { return server_; }
  // Why the server is not reachable; no value: it is.
  const std::optional<std::string>& trouble() const { return trouble_; }
  // No value before the second update.
  std::optional<double> rate(Flow flow) const { return rates_[static_cast<std::size_t>(flow)]; }
  const History& history(Flow flow) const { return histories_[static_cast<std::size_t>(flow)]; }
  // Share of one processor.
  std::optional<double> cpu_percent() const { return cpu_percent_; }

  TubeList tubes;
  std::optional<Details> details;

 private:
  using Moment = std::chrono::steady_clock::time_point;

  std::string address_;
  client::StatsBlock server_;
  std::chrono::steady_clock::duration least_{};
  std::optional<Moment> taken_;  // when the snapshot was taken from which rates count
  std::array<std::uint64_t, kFlows> counted_{};  // the counters of that snapshot
  double processor_seconds_ = 0;                 // and its processor time
  std::optional<std::string> trouble_;
  std::array<std::optional<double>, kFlows> rates_;
  std::array<History, kFlows> histories_{History(256), History(256), History(256), History(256)};
  std::optional<double> cpu_percent_;
};

}  // namespace tubed::tubectl::top
