// A journal on a full disk, whose files are reused while a tool reads it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "tests/journal/disturbed.h"
#include "tests/journal/opened.h"

namespace tubed::journal {

class FullJournal {
 public:
  static constexpr std::size_t kKeptJobs = 20;

  explicit FullJournal(std::uint64_t segment_bytes)
      : queue_(opened(disk_on_which(segment_bytes), {.segment_bytes = segment_bytes})) {
    while (queue_->journal().has_room_for(200)) {
      jobs_.push_back(queue_->put(200));
      queue_->settle();
    }
    REQUIRE(queue_->full());
    disk_.eat_space();
  }

  // The disk as a tool reads it. At the first read of a file, when all files are open, all jobs
  // except kKeptJobs are removed, and their files are reused.
  Storage& disturbed() { return disturbed_; }
  std::string state() { return queue_->state(); }

 private:
  TestDisk& disk_on_which(std::uint64_t segment_bytes) {
    disk_.set_capacity(12 * segment_bytes);
    return disk_;
  }
  void disturb() {
    if (++looks_ != 2) return;  // the first disturbance is at the listing
    const std::uint64_t before = disk_.count(Operation::reuse);
    for (std::size_t i = 0; i + kKeptJobs < jobs_.size(); ++i) {
      queue_->remove(jobs_[i]);
      queue_->settle();
    }
    REQUIRE(disk_.count(Operation::reuse) > before);
  }

  TestDisk disk_;
  std::unique_ptr<JournaledQueue> queue_;
  std::vector<JobId> jobs_;
  int looks_ = 0;
  Disturbed disturbed_{disk_, [this] { disturb(); }};
};

}  // namespace tubed::journal
