// JobTable: owns every job and finds it by id.
//
// Ids are dense and only grow. The table has pages of 16 consecutive ids and a hash map from page
// number to page. It takes about 11 bytes for each job if most ids of a page exist, and a whole
// page for a job whose 15 neighbours were deleted. Jobs and pages are in slabs (base/slab_pool.h).
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

#include "tables/job.h"

namespace tubed::engine {

class JobTable {
 public:
  // The table's own memory for each job of a dense page.
  static constexpr std::size_t kBytesPerJob = 11;

  std::size_t size() const { return size_; }

  // O(1).
  Job* find(JobId id) const {
    const Page* page = page_of(id);
    return page == nullptr ? nullptr : page->jobs[id % kPageJobs].get();
  }

  // Null also for a job that is flushed. O(1).
  Job* find_present(JobId id) const {
    Job* job = find(id);
    return job == nullptr || job->flushed() ? nullptr : job;
  }

  // The id of the next new job: 1 at first, and then above all ids that were used.
  JobId next_id() const { return next_id_; }
  void mark_used(JobId id) { next_id_ = std::max(next_id_, id + 1); }

  // Adds a job with this id and marks the id as used. Precondition: no job has it. O(1) amortised.
  Job* add(JobId id) {
    mark_used(id);
    if (cached_page_ == nullptr || cached_number_ != id / kPageJobs) add_page(id / kPageJobs);
    Page& page = *cached_page_;
    auto& place = page.jobs[id % kPageJobs];
    TUBED_ASSERT(place == nullptr);
    place = std::make_unique<Job>();
    place->id = id;
    ++page.count;
    ++size_;
    return place.get();
  }

  // Precondition: the job exists. O(1).
  void remove(JobId id) {
    Page* page = page_of(id);
    TUBED_ASSERT(page != nullptr && page->jobs[id % kPageJobs] != nullptr);
    page->jobs[id % kPageJobs].reset();
    --size_;
    if (--page->count == 0) {
      cached_page_ = nullptr;
      pages_.erase(id / kPageJobs);
      give_back_memory();
    }
  }

  // Calls visit(const Job&) for each job in the order of ids. O(n + p log p) for p pages.
  template <class Visit>
  void for_each(Visit visit) const {
    std::vector<std::uint64_t> numbers;
    numbers.reserve(pages_.size());
    for (const auto& [number, page] : pages_) numbers.push_back(number);
    std::sort(numbers.begin(), numbers.end());
    for (const std::uint64_t number : numbers) {
      for (const auto& job : pages_.at(number).jobs) {
        if (job != nullptr) visit(*job);
      }
    }
  }

 private:
  static constexpr std::size_t kPageJobs = 16;
  static constexpr std::size_t kKeptBuckets = 1024;
  struct Page {
    std::array<std::unique_ptr<Job>, kPageJobs> jobs;
    std::uint32_t count = 0;
  };

  // Makes it the page last used.
  [[gnu::noinline]] void add_page(std::uint64_t number) {
    cached_page_ = &pages_[number];
    cached_number_ = number;
  }

  Page* page_of(JobId id) const {
    const std::uint64_t number = id / kPageJobs;
    if (cached_page_ != nullptr && cached_number_ == number) return cached_page_;
    const auto found = pages_.find(number);
    if (found == pages_.end()) return nullptr;
    cached_number_ = number;
    cached_page_ = const_cast<Page*>(&found->second);
    return cached_page_;
  }

  // Shrinks the array of buckets after the table has become small. Amortised O(1).
  void give_back_memory() {
    if (pages_.bucket_count() > kKeptBuckets && pages_.size() < pages_.bucket_count() / 8) {
      pages_.rehash(pages_.size() * 2);
    }
  }

  using PageAllocator = SlabAllocator<std::pair<const std::uint64_t, Page>>;
  std::unordered_map<std::uint64_t, Page, std::hash<std::uint64_t>, std::equal_to<>, PageAllocator>
      pages_;
  std::size_t size_ = 0;
  JobId next_id_ = 1;
  // The page last used. Consecutive commands mostly name jobs of one page.
  mutable std::uint64_t cached_number_ = 0;
  mutable Page* cached_page_ = nullptr;
};

}  // namespace tubed::engine
