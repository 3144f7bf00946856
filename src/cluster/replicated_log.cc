#include "cluster/replicated_log.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/overloaded.h"
#include "base/planted.h"

namespace tubed::cluster {

namespace {

// Returns the job that a fact changes; 0: possibly any job of a tube; nothing: no job.
std::optional<JobId> job_changed_by(const Fact& fact) {
  return std::visit(Overloaded{[](const Paused&) { return std::optional<JobId>(); },
                               [](const PolicySet&) { return std::optional<JobId>(); },
                               [](const Applied&) { return std::optional<JobId>(); },
                               [](const Flushed&) { return std::optional<JobId>(0); },
                               [](const auto& of_job) { return std::optional<JobId>(of_job.id); }},
                    fact);
}

}  // namespace

void ReplicatedLog::begin_unit() {
  TUBED_ASSERT(!in_unit_);
  leave_full_entry();
  in_unit_ = true;
}

// If this entry is full, the next fact begins another.
void ReplicatedLog::leave_full_entry() {
  if (waiting_.back().bytes() < kEntryBytes) return;
  waiting_bytes_ += waiting_.back().bytes();
  waiting_.emplace_back();
}

void ReplicatedLog::fact(const Fact& fact) {
  if (!in_unit_ || TUBED_PLANTED(entry_begins_within_unit)) leave_full_entry();
  waiting_.back().add(fact);
  ++facts_;
  ++appended_;
  if (const auto job = job_changed_by(fact)) unsettled_.push_back({facts_, *job});
}

bool ReplicatedLog::has_room_for(std::size_t body_bytes) const {
  return node_.majority_has_room() && journal_.has_room_for(body_bytes) &&
         node_.log().has_room(body_bytes + kEntryBytes);
}

bool ReplicatedLog::congested() const {
  if (closed_) return true;
  if (wants_quiet_ && !is_clean()) return true;
  const std::size_t waiting = waiting_bytes_ + waiting_.back().bytes();
  return waiting > kMostWaitingBytes || node_.congested(waiting) || journal_.congested();
}

bool ReplicatedLog::flush() {
  TUBED_ASSERT(!in_unit_);
  const bool has_facts = waiting_.size() > 1 || waiting_.back().facts() > 0;
  if (has_facts && flights_.empty() && node_.can_submit()) submit();
  wants_quiet_ = false;  // compaction requests it again
  const bool again = journal_.flush();
  if (!confirm() && appended_ == durable_) {
    ++without_facts_;
    ++appended_;
  }
  if (closed_ && is_clean()) std::exchange(closed_, nullptr)();
  return again;
}

void ReplicatedLog::submit() {
  Chain chain = node_.chains().tail();
  Index index = node_.log().last();
  const Time now = now_();
  std::vector<Bytes> entries;
  for (EntryWriter& writer : waiting_) {
    if (!entries.empty()) {
      const Entry before{.term = node_.term(), .type = EntryType::facts, .data = entries.back()};
      chain = chain_after(chain, index, before);
    }
    entries.push_back(
        writer.finish({.level = node_.level(), .time = now, .chain = chain, .leader = node_.id()}));
    ++index;
  }
  waiting_.resize(1);
  waiting_bytes_ = 0;
  // If it fails, leadership is lost and the facts are never replicated.
  if (node_.submit(std::move(entries)) == 0) return;
  flights_.push_back({.last = index, .end = facts_});
}

// Returns true if the node has its lease: then everything committed is durable.
bool ReplicatedLog::confirm() {
  const bool has_lease = node_.term() == term_ && node_.has_lease();
  if (std::exchange(had_lease_, has_lease) && !has_lease) ++leases_lost_;
  if (has_lease || TUBED_PLANTED(gate_without_lease)) durable_ = committed_facts_ + without_facts_;
  return has_lease;
}

void ReplicatedLog::committed(Index index) {
  while (!flights_.empty() && flights_.front().last <= index) {
    committed_facts_ = flights_.front().end;
    flights_.pop_front();
  }
  while (!unsettled_.empty() && unsettled_.front().end <= committed_facts_) unsettled_.pop_front();
  confirm();
}

bool ReplicatedLog::is_settled(JobId id) {
  if (unsettled_.empty()) return true;
  if (unsettled_at_ != facts_) {
    unsettled_at_ = facts_;
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
