// Restorer: takes what recovery reads and gives the queue its jobs back.
#pragma once

#include "engine/fact.h"
#include "journal/recovery.h"

namespace tubed::journal {

class Restorer final : public RecordSink {
 public:
  // Facts go to `queue` in the order of the log. A job that compaction has copied is told as
  // `Added` once, and as `Placed` from then on.
  explicit Restorer(FactSink& queue) : queue_(queue) {}

  void record(std::uint64_t segment, std::uint64_t offset, std::size_t bytes,
              const Record& record) override;
  void copied(std::uint64_t segment, std::uint64_t offset, std::size_t bytes,
              const Record& record) override;

  // When all is read: tells the queue which ids were used.
  void finish(const Examined& examined);

 private:
  FactSink& queue_;
};

}  // namespace tubed::journal
