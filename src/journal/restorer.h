// Restorer: takes what recovery reads and gives the queue its jobs back and the journal its ledger.
#pragma once

#include "engine/fact.h"
#include "journal/ledger.h"
#include "journal/recovery.h"

namespace tubed::journal {

class Restorer final : public RecordSink {
 public:
  // Facts go to `queue` in the order of the log. A job that compaction has copied is told as
  // `Added` once, and as `Placed` from then on.
  explicit Restorer(FactSink& queue) : queue_(queue) {}

  void record(std::uint64_t segment, std::uint64_t offset, std::size_t bytes,
              const Record& record) override;

  // When all is read: tells the queue which ids were used, and gives the ledger of all segments up
  // to the one where the log ends.
  Ledger finish(const Examined& examined);

 private:
  void open_up_to(std::uint64_t segment);
  void take(const Added& added, std::size_t bytes);

  FactSink& queue_;
  Ledger ledger_;
  std::uint64_t next_segment_ = 0;
};

}  // namespace tubed::journal
