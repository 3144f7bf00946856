#include "node/node_owner.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "os/clock.h"
#include "os/exit_codes.h"
#include "os/process.h"

namespace tubed::node {

using os::Log;

namespace {

// Converts to the monotonic clock of ticks; keeps kNever.
Time local_deadline(Time by_node_clock) {
  if (by_node_clock == kNever) return kNever;
  return os::monotonic_now() + std::max(by_node_clock - NodeOwner::now(), Duration::zero());
}

}  // namespace

std::string cluster_directory(const Settings& settings) {
  return settings.journal_directory + "/cluster";
}

Time NodeOwner::now() {
  return os::boot_time_now();
}

Time NodeOwner::wall() const {
  return Time(os::wall_time());
}

Result<std::unique_ptr<NodeOwner>> NodeOwner::open(loop::Loop& loop, Log& log,
                                                   const Settings& settings,
                                                   commands::Service& service,
                                                   NodeOwnerHost& host) {
  std::unique_ptr<NodeOwner> owner(new NodeOwner(log, service, host));
  TRY(owner->start(loop, settings));
  return owner;
}

Result<void> NodeOwner::start(loop::Loop& loop, const Settings& settings) {
  serving::JournalOwnerHost& journal_host = *this;
  const serving::Replication& replication = *this;
  journal_ =
      TRY(serving::JournalOwner::open(loop, log_, settings, service_, journal_host, &replication));
  storage_ = TRY(
      disk::FileStorage::open(loop, cluster_directory(settings), disk::FileStorage::Mode::owner));
  storage_->expect_synced_writes(true);
  cluster::NodeOptions options;
  options.election_timeout = settings.cluster.election_timeout;
  options.seed = static_cast<unsigned>(os::random_number());
  options.log = cluster::raft_log_options(0, settings.cluster.log_size);
  cluster::NodeHost& node_host = *this;
  cluster::ReplicaHost& replica_host = *this;
  auto node = cluster::Node::open(*storage_, node_host, options, journal_->applied());
  if (!node) {
    return Error{fmt::format("node {}: {}", cluster_directory(settings), node.error().message),
                 node.error().kind};
  }
  node_ = std::move(*node);
  replica_ = std::make_unique<cluster::Replica>(
      replica_host, *node_, journal_->journal(), service_.engine(), journal_->applied(),
      cluster::Replica::Options{.hold_grace = settings.cluster.hold_grace});
  return {};
}

void NodeOwner::apply(const Settings& settings) {
  journal_->apply(settings);
  replica_->set_hold_grace(settings.cluster.hold_grace);
  node_->log().set_log_bytes(settings.cluster.log_size);
}

bool NodeOwner::drive() {
  bool more = replica_->advance();
  FactLog& log = replica_->serving() ? static_cast<FactLog&>(replica_->log()) : journal_->journal();
  more |= log.flush();
  // Writes the entry that was just submitted. A single node has nothing else to wait for.
  node_->tick();
  more |= replica_->advance();
  return more;
}

Time NodeOwner::next_deadline() const {
  return std::min(local_deadline(node_->next_deadline()), journal_->next_deadline());
}

void NodeOwner::close(std::function<void()> closed) {
  journal_->journal().close(std::move(closed));
}

void NodeOwner::drive_closing() {
  journal_->journal().flush();
}

void NodeOwner::node_failed(const std::string& reason) {
  log_.error("raft log failed: this node can store nothing more", {{"reason", reason}});
  host_.node_failed(os::kExitJournalFailed);
}

void NodeOwner::replica_failed(const std::string& reason) {
  log_.error("this node cannot follow its cluster", {{"reason", reason}});
  host_.node_failed(os::kExitJournalFailed);
}

void NodeOwner::level_risen(cluster::Level from, cluster::Level to) {
  for (std::uint32_t level = from + 1U; level <= to; ++level) {
    log_.info("the feature level of the cluster has risen",
              {{"level", std::uint64_t{level}},
               {"allows", cluster::what_level_allows(static_cast<cluster::Level>(level))}});
  }
  host_.level_risen();
}

void NodeOwner::raft_log_full(bool full, const std::string& reason) {
  raft_log_full_ = full;
  if (full) {
    log_.limited(Log::Level::warning, service_.tick_time(),
                 "no room for the raft log: this node stores nothing", {{"reason", reason}});
  } else {
    log_.limited(Log::Level::info, service_.tick_time(), "room for the raft log again");
  }
}

// --- The journal

void NodeOwner::journal_failed() {
  host_.node_failed(os::kExitJournalFailed);
}

Time NodeOwner::journal_time() {
  host_.begin_tick();
  return service_.tick_time();
}

Duration NodeOwner::wall_offset() const {
  return os::wall_offset();
}

bool NodeOwner::is_settled(JobId id) const {
  return replica_ == nullptr || replica_->is_settled(id);
}

Time NodeOwner::applied_time() const {
  return replica_ == nullptr ? Time() : replica_->applied_time();
}

}  // namespace tubed::node
