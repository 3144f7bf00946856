// ClusterLog: the log of facts of a server in cluster mode, over all lives of its node.
//
// While the node serves, facts go to the replicated log of its replica. Otherwise they are
// discarded: the queue then only replays or is about to be replaced, and no reply may be sent. The
// flush at the end of a tick drives the node.
#pragma once

#include <functional>
#include <utility>

#include "cluster/replicated_log.h"
#include "facts/fact_log.h"
#include "journal/journal.h"

namespace tubed::node {

// The part of the server that owns the node.
class ClusterLogHost {
 public:
  // Ends a tick: lets all parts continue. Returns true if more is to be done in the next tick.
  virtual bool drive() = 0;
  virtual Time next_deadline() const = 0;
  virtual void close(std::function<void()> closed) = 0;
  // Replies that were held back may be sent.
  virtual void log_advanced() = 0;
  // True if no command that emits a fact may begin, because leadership is about to pass.
  virtual bool holds_commands() const = 0;
  // Returns the journal of the node; null: the node has no state now.
  virtual const journal::Journal* journal() const = 0;

 protected:
  ~ClusterLogHost() = default;
};

class ClusterLog final : public FactLog {
 public:
  // `host` outlives it.
  explicit ClusterLog(ClusterLogHost& host) : host_(host) {}

  // Sends later facts to `log`. Precondition: no client waits for a reply.
  void attach(cluster::ReplicatedLog& log) {
    log_ = &log;
    take_positions();
  }
  // Discards later facts. Nothing further becomes durable.
  void detach() { log_ = nullptr; }
  // Nothing pending can become durable. Precondition: no client waits for a reply.
  void forget_pending() { appended_ = durable_; }

  void fact(const Fact& fact) override {
    if (log_ == nullptr) return;
    log_->fact(fact);
    appended_ = log_->appended();
  }
  void begin_unit() override {
    if (log_ != nullptr) log_->begin_unit();
  }
  void end_unit() override {
    if (log_ != nullptr) log_->end_unit();
  }
  bool has_room_for(std::size_t body_bytes) const override {
    return log_ != nullptr && log_->has_room_for(body_bytes);
  }
  bool congested() const override {
    return log_ == nullptr || host_.holds_commands() || log_->congested();
  }
  bool flush() override {
    const Lsn before = durable_;
    const bool again = host_.drive();
    if (log_ != nullptr) take_positions();
    if (durable_ != before) host_.log_advanced();
    return again;
  }
  Time next_deadline() const override { return host_.next_deadline(); }
  void close(std::function<void()> closed) override { host_.close(std::move(closed)); }
  LogStats stats() const override {
    const journal::Journal* journal = host_.journal();
    return journal == nullptr ? LogStats{} : journal->stats();
  }
  std::uint64_t segment_of(JobId id) const override {
    const journal::Journal* journal = host_.journal();
    return journal == nullptr ? 0 : journal->segment_of(id);
  }

 private:
  void take_positions() {
    appended_ = log_->appended();
    durable_ = log_->durable();
  }

  ClusterLogHost& host_;
  cluster::ReplicatedLog* log_ = nullptr;  // null: the node does not serve
};

}  // namespace tubed::node
