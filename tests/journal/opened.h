#pragma once

#include <memory>
#include <utility>

#include <doctest/doctest.h>

#include "tests/journal/kept_queue.h"

namespace tubed::journal {

// A queue whose first segment exists.
inline std::unique_ptr<KeptQueue> opened(TestDisk& disk, const KeptQueue::Settings& settings = {}) {
  auto queue = KeptQueue::open(disk, settings);
  REQUIRE(queue.ok());
  (*queue)->settle();
  return std::move(*queue);
}

}  // namespace tubed::journal
