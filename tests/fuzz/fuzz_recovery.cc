// Fuzzes recovery: a directory of segments with any damage, with correct or wrong checksums, is
// recovered or refused with one line.
//
// `Builder` reads the input as a script of steps that append batch headers, records with a correct
// checksum, raw bytes and zeros, truncate the segment, or begin the next segment. A recovered queue
// must satisfy its invariants, accept a put, a reserve and a delete, and be the same after a second
// recovery.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/crc32c.h"
#include "journal/little_endian.h"
#include "journal/segment.h"
#include "tests/journal/journaled_queue.h"

namespace {

using namespace tubed;
using namespace tubed::journal;

constexpr std::uint64_t kDirectory = 7;

// Reads the input a few bytes at a time. After the end all bytes are zero.
class Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  std::uint8_t byte() { return bytes_.empty() ? 0 : static_cast<std::uint8_t>(text(1)[0]); }
  std::string_view text(std::size_t size) {
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view bytes_;
};

// Builds the segments that the input describes.
class Builder {
 public:
  explicit Builder(TestDisk& disk) : disk_(disk) { begin_segment(); }

  void build(Input& input) {
    while (!input.empty()) step(input);
    end_segment();
  }

 private:
  void step(Input& input) {
    switch (input.byte() % 8) {
      case 0:
        batch(next_lsn_, input);
        counts_ = true;
        return;
      case 1:
        batch(input.byte(), input);
        batch_.facts = input.byte();
        batch_.jobs = input.byte();
        return write_batch_header();
      case 2:
        return raw(input.text(input.byte()));
      case 3:
        end_segment();
        ++sequence_;
        return begin_segment();
      case 4:
        image_.append(input.byte(), '\0');
        return;
      case 5:
        image_.resize(image_.size() - std::min<std::size_t>(image_.size(), input.byte()));
        return;
      default:
        ++next_lsn_;
        record_with_checksum(input.text(input.byte()));
        if (counts_) count();
        return;
    }
  }

  void begin_segment() {
    counts_ = false;
    image_ = encode_header({.directory = kDirectory, .sequence = sequence_, .created = 0});
  }
  void end_segment() { disk_.place(segment_name(sequence_), image_); }

  void batch(Lsn lsn, Input& input) {
    counts_ = false;
    batch_ = {.directory = kDirectory,
              .offset = image_.size(),
              .lsn = lsn,
              .durable = input.byte(),
              .next_job_id = input.byte(),
              .written = 0,
              .jobs = jobs_.size(),
              .clean = input.byte() % 2 == 1};
    image_.append(kBatchHeaderBytes, '\0');
    write_batch_header();
  }

  void write_batch_header() {
    journal::write_batch_header({image_.data() + batch_.offset, kBatchHeaderBytes},
                                seed_of(sequence_), batch_);
  }

  // Counts another fact and rewrites the header of the batch.
  void count() {
    ++batch_.facts;
    batch_.jobs = jobs_.size();
    if (batch_.offset + kBatchHeaderBytes <= image_.size()) write_batch_header();
  }

  void raw(std::string_view bytes) { image_ += bytes; }

  // Appends a record with a payload chosen by the fuzzer and a correct checksum.
  void record_with_checksum(std::string_view payload) {
    std::string record(kRecordHeaderBytes, '\0');
    record += payload;
    record.resize((record.size() + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment);
    store_little(record.data() + 4, static_cast<std::uint32_t>(payload.size()));
    store_little(record.data(), crc32c(seed_of(sequence_), std::string_view(record).substr(4)));
    image_ += record;
    track_jobs(parse_record<kLastVersion>(record, seed_of(sequence_), WallClock{}));
  }

  void track_jobs(const Parsed& parsed) {
    const auto* fact = std::get_if<Fact>(&parsed.record);
    if (parsed.kind != Parsed::Kind::record || fact == nullptr) return;
    if (const auto* added = std::get_if<Added>(fact)) jobs_.insert(added->id);
    if (const auto* removed = std::get_if<Removed>(fact)) jobs_.erase(removed->id);
  }

  TestDisk& disk_;
  std::uint64_t sequence_ = 1;
  Lsn next_lsn_ = 0;
  std::set<JobId> jobs_;
  BatchHeader batch_;    // of the last batch
  bool counts_ = false;  // the header's counts of facts and jobs are kept correct
  std::string image_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input({reinterpret_cast<const char*>(data), size});
  TestDisk disk;
  Builder(disk).build(input);
  auto opened = JournaledQueue::open(disk, {.segment_bytes = 4096});
  if (!opened) {
    TUBED_ASSERT(!opened.error().message.empty());
    TUBED_ASSERT(opened.error().message.find('\n') == std::string::npos);
    return 0;
  }
  JournaledQueue& queue = **opened;
  queue.engine().check_invariants();
  const JobId id = queue.put(10);
  TUBED_ASSERT(id >= queue.found().next_job_id);
  const JobId reserved = queue.reserve();
  if (reserved != 0) queue.remove(reserved);
  queue.settle();
  TUBED_ASSERT(!queue.failed() && queue.journal().durable() == queue.journal().appended());
  queue.engine().check_invariants();
  const auto again = JournaledQueue::open(disk, {.segment_bytes = 4096});
  TUBED_ASSERT(again.ok());
  TUBED_ASSERT(again.value()->state() == queue.state());
  return 0;
}
