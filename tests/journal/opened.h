#pragma once

#include <memory>
#include <utility>

#include <doctest/doctest.h>

#include "tests/journal/journaled_queue.h"

namespace tubed::journal {

// Returns a queue whose first segment exists.
inline std::unique_ptr<JournaledQueue> opened(TestDisk& disk,
                                              const JournaledQueue::Settings& settings = {}) {
  auto queue = JournaledQueue::open(disk, settings);
  REQUIRE(queue.ok());
  (*queue)->settle();
  return std::move(*queue);
}

}  // namespace tubed::journal
