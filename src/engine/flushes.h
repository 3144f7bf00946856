// Flushes: how the jobs of a tube go at once, in the steps of tables/flushed_jobs.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "engine/parts.h"
#include "facts/fact.h"

namespace tubed::engine {

class Flushes {
 public:
  // `parts` outlives it.
  explicit Flushes(Parts& parts) : parts_(parts) {}

  // Takes all jobs of the tube, also from the sessions that hold them, and returns how many; its
  // unique keys are free. No such tube: 0. O(reserved jobs of the tube).
  std::uint64_t flush(Time now, std::string_view tube, FactSink& out);
  // The same, but reserved jobs stay with their holders, and only the others are counted. No value:
  // no such tube. O(reserved jobs of the tube).
  std::optional<std::uint64_t> truncate(Time now, std::string_view tube, FactSink& out);

  // True: remove_next() has something to do. O(1).
  bool has_next(Time now) const {
    return !parts_.flushed.empty() || parts_.unique_keys.has_next(now);
  }
  // Frees a flushed job, a flushed key or a cooldown that has ended, and emits the fact of it.
  // Precondition: has_next(). O(log keys).
  void remove_next(FactSink& log);

  // For a replay: the jobs of a flush, and one of them, which was removed.
  void add(FlushedBatch batch);
  void forget(Job* job);

 private:
  void limit(const Tube& tube, FactSink& out);
  void finish(Time now, FlushedBatch batch, std::uint64_t count, FactSink& out);
  void remove_job(FactSink& out);

  Parts& parts_;
};

}  // namespace tubed::engine
