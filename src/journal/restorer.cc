#include "journal/restorer.h"

namespace tubed::journal {

void Restorer::record(std::uint64_t /*segment*/, std::uint64_t /*offset*/, std::size_t /*bytes*/,
                      const Record& record) {
  if (const auto* fact = std::get_if<Fact>(&record)) queue_.fact(*fact);
}

void Restorer::copied(std::uint64_t /*segment*/, std::uint64_t /*offset*/, std::size_t /*bytes*/,
                      const Record& record) {
  const auto& fact = std::get<Fact>(record);
  const Added& added = *added_in(fact);
  const Placed placed{.id = added.id, .place = added.place, .counters = added.counters};
  const auto* tagged = std::get_if<AddedWithTags>(&fact);
  if (tagged == nullptr) return queue_.fact(placed);
  queue_.fact(PlacedWithMarks{placed, tagged->marks});
}

void Restorer::finish(const Examined& examined) {
  const JobId last_used = examined.next_job_id - 1;
  if (last_used > 0 && examined.liveness.segment_of(last_used) == 0) {
    queue_.fact(Removed{.id = last_used});
  }
}

}  // namespace tubed::journal
