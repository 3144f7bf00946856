// Samples: facts to write, images of segments with facts, and the records that a reader finds.
#pragma once

#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "facts/owned_fact.h"
#include "journal/record.h"
#include "journal/recovery.h"
#include "journal/segment.h"

namespace tubed::journal::sample {

inline constexpr std::uint64_t kDirectory = 0x0123456789abcdef;
inline constexpr std::int64_t kNow = 1'700'000'000'000'000'000;
// Monotonic time began a thousand seconds before kNow.
inline constexpr WallClock kClock{.offset = Duration(kNow - 1'000'000'000'000)};

bool same(const Fact& one, const Fact& other);
bool same(const Record& one, const Record& other);
// Returns null if the record is not a fact of this kind.
template <class T>
const T* fact_in(const Record& record) {
  const auto* fact = std::get_if<Fact>(&record);
  return fact == nullptr ? nullptr : std::get_if<T>(fact);
}

// Returns a fact of each kind and state of version 1, with texts of static storage duration.
std::vector<Fact> every_fact();
// The same, followed by a fact of each kind that is new in the version.
std::vector<Fact> every_fact_of_version_2();
std::vector<Fact> every_fact_of_version_3();
// Returns a fact with random valid values in all fields.
Fact random_fact(std::mt19937_64& random);

// The image of one segment, record by record.
class Image {
 public:
  Image(std::uint64_t sequence, Lsn lsn, std::uint64_t directory = kDirectory);

  // The batch's `durable` is its own position, as if each batch was synced separately. Its facts
  // and jobs are counted as they are added.
  Image& batch(bool clean = false);
  Image& fact(const Fact& fact);
  Image& zeros(std::size_t bytes);
  Image& raw(std::string_view bytes);
  // Sets the next id in all following batches.
  Image& use_ids_below(JobId next);
  // Sets the jobs that exist before this segment.
  Image& with_jobs(std::vector<JobId> ids);

  const std::string& bytes() const { return bytes_; }
  Lsn next_lsn() const { return next_lsn_; }
  JobId next_job_id() const { return next_job_id_; }
  std::vector<JobId> jobs() const { return {jobs_.begin(), jobs_.end()}; }
  // Returns the offset of each record.
  const std::vector<std::size_t>& starts() const { return starts_; }

 private:
  void write_batch_header();

  std::uint64_t sequence_;
  std::uint64_t directory_;
  Lsn next_lsn_;
  JobId next_job_id_ = 1;
  std::set<JobId> jobs_;
  BatchHeader batch_;  // the newest; offset 0: none exists
  std::vector<std::size_t> starts_;
  SegmentHeader header_;  // has the version that the facts need
  std::string bytes_;
};

// Returns a record with this payload, valid or not, and a correct checksum.
std::string sealed(std::string_view payload, std::uint32_t seed);

// Stores every record that it receives.
class Collected final : public RecordSink {
 public:
  struct Entry {
    std::uint64_t segment;
    std::uint64_t offset;
    std::size_t bytes;
    Record record;
    std::optional<OwnedFact> fact;  // owns the texts of the record
  };
  void record(std::uint64_t segment, std::uint64_t offset, std::size_t bytes,
              const Record& record) override;

  // Valid until the next record is received.
  std::vector<Fact> facts() const;
  std::vector<BatchHeader> batches() const;
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;
};

// Returns a ready job of priority 0, created when monotonic time began.
Added added(JobId id, std::string_view tube, std::string_view body);

// Returns removals of these ids, inclusive: enough to follow facts through a journal.
std::vector<Fact> removals(JobId first, JobId last);

}  // namespace tubed::journal::sample
