#include "cluster/replicated_log.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/overloaded.h"

namespace tubed::cluster {

namespace {

// The job that a fact changes; 0: it may be any of a tube. Nothing: none.
std::optional<JobId> job_changed_by(const Fact& fact) {
  return std::visit(Overloaded{[](const Paused&) { return std::optional<JobId>(); },
                               [](const PolicySet&) { return std::optional<JobId>(); },
                               [](const Applied&) { return std::optional<JobId>(); },
                               [](const Flushed&) { return std::optional<JobId>(0); },
                               [](const auto& of_job) { return std::optional<JobId>(of_job.id); }},
                    fact);
}

}  // namespace

void ReplicatedLog::fact(const Fact& fact) {
  if (waiting_.back().bytes() >= kEntryBytes) {
    waiting_bytes_ += waiting_.back().bytes();
    waiting_.emplace_back();
  }
  waiting_.back().add(fact);
  ++appended_;
  if (const auto job = job_changed_by(fact)) unsettled_.push_back({appended_, *job});
}

bool ReplicatedLog::has_room_for(std::size_t body_bytes) const {
  return journal_.has_room_for(body_bytes) && node_.has_room_for(body_bytes + kEntryBytes);
}

bool ReplicatedLog::congested() const {
  if (closed_) return true;
  if (wants_quiet_ && !is_clean()) return true;
  return waiting_bytes_ + waiting_.back().bytes() > kMostWaitingBytes || journal_.congested();
}

bool ReplicatedLog::flush() {
  const bool has_facts = waiting_.size() > 1 || waiting_.back().facts() > 0;
  if (has_facts && flights_.empty() && node_.can_submit()) submit();
  wants_quiet_ = false;  // compaction asks again
  const bool again = journal_.flush();
  if (closed_ && is_clean()) std::exchange(closed_, nullptr)();
  return again;
}

void ReplicatedLog::submit() {
  Chain chain = node_.tail_chain();
  Index index = node_.last();
  const Time now = now_();
  std::vector<Bytes> entries;
  for (EntryWriter& writer : waiting_) {
    entries.push_back(writer.finish({.time = now, .chain = chain, .leader = node_.id()}));
    const Entry entry{.term = node_.term(), .type = EntryType::facts, .data = entries.back()};
    chain = chain_after(chain, ++index, entry);
  }
  waiting_.resize(1);
  waiting_bytes_ = 0;
  // If it fails, leadership is lost, and the facts are never replicated.
  if (node_.submit(std::move(entries)) == 0) return;
  flights_.push_back({.last = index, .end = appended_});
}

void ReplicatedLog::committed(Index index) {
  while (!flights_.empty() && flights_.front().last <= index) {
    durable_ = flights_.front().end;
    flights_.pop_front();
  }
  while (!unsettled_.empty() && unsettled_.front().end <= durable_) unsettled_.pop_front();
}

bool ReplicatedLog::is_settled(JobId id) {
  if (unsettled_.empty()) return true;
  if (unsettled_at_ != appended_) {
    unsettled_at_ = appended_;
    unsettled_jobs_.clear();
    for (const Unsettled& fact : unsettled_) unsettled_jobs_.push_back(fact.job);
    std::ranges::sort(unsettled_jobs_);
  }
  const bool settled =
      unsettled_jobs_.front() != 0 && !std::ranges::binary_search(unsettled_jobs_, id);
  if (!settled) wants_quiet_ = true;
  return settled;
}

}  // namespace tubed::cluster
