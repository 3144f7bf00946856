#include "journal/restorer.h"

#include <algorithm>

namespace tubed::journal {

void Restorer::record(std::uint64_t segment, std::uint64_t /*offset*/, std::size_t bytes,
                      const Record& record) {
  if (ledger_.empty()) next_segment_ = segment;
  open_up_to(segment);
  ledger_.use(bytes);
  if (const auto* added = std::get_if<Added>(&record)) return take(*added, bytes);
  if (const auto* placed = std::get_if<Placed>(&record)) return queue_.fact(*placed);
  if (const auto* removed = std::get_if<Removed>(&record)) {
    ledger_.removed(removed->id);
    return queue_.fact(*removed);
  }
  if (const auto* paused = std::get_if<Paused>(&record)) {
    ledger_.paused(*paused, bytes);
    return queue_.fact(*paused);
  }
}

void Restorer::take(const Added& added, std::size_t bytes) {
  const bool known = ledger_.home_of(added.id) != 0;
  ledger_.added(added.id, bytes);
  if (!known) return queue_.fact(added);
  queue_.fact(Placed{.id = added.id, .place = added.place, .counters = added.counters});
}

void Restorer::open_up_to(std::uint64_t segment) {
  for (; next_segment_ <= segment; ++next_segment_) {
    ledger_.open_segment(next_segment_, kSegmentHeaderBytes);
  }
}

Ledger Restorer::finish(const Examined& examined) {
  if (examined.segments.empty()) {
    next_segment_ = 1;
    open_up_to(1);
  } else {
    if (ledger_.empty()) next_segment_ = examined.segments.front().sequence;
    open_up_to(examined.segments[examined.current].sequence);
  }
  const JobId last_used = examined.next_job_id - 1;
  if (last_used > 0 && ledger_.home_of(last_used) == 0) queue_.fact(Removed{.id = last_used});
  return std::move(ledger_);
}

}  // namespace tubed::journal
