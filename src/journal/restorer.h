// Restorer: passes the facts that recovery reads to the queue.
#pragma once

#include "facts/fact.h"
#include "journal/recovery.h"

namespace tubed::journal {

class Restorer final : public RecordSink {
 public:
  // Passes facts to `queue` in log order. For a job that compaction has copied, the queue gets one
  // `Added`, and a `Placed` for each copy.
  explicit Restorer(FactSink& queue) : queue_(queue) {}

  void record(std::uint64_t segment, std::uint64_t offset, std::size_t bytes,
              const Record& record) override;
  void copied(std::uint64_t segment, std::uint64_t offset, std::size_t bytes,
              const Record& record) override;

  // Called after the last record. Informs the queue which ids were used.
  void finish(const Examined& examined);

 private:
  FactSink& queue_;
};

}  // namespace tubed::journal
