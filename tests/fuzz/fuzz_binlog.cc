// Fuzzes the reader of beanstalkd's binlogs: for any file it emits facts that are valid after the
// previous facts, or returns an error of one line.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "journal/binlog.h"
#include "tests/journal/binlogs/folded_jobs.h"

namespace {

using namespace tubed;

// Returns false if reading failed, so no further file can be read.
bool read(journal::BinlogReader& reader, std::string_view image, bool newest) {
  const auto torn = reader.read(image, newest);
  if (!torn) {
    TUBED_ASSERT(!torn.error().message.empty());
    TUBED_ASSERT(torn.error().message.find('\n') == std::string::npos);
    return false;
  }
  TUBED_ASSERT(!torn.value() || torn.value()->offset < image.size());
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view image(reinterpret_cast<const char*>(data), size);
  journal::FoldedJobs facts;  // asserts that each fact is valid
  journal::BinlogReader reader(journal::WallClock{.offset = Duration(1'700'000'000'000'000'000)},
                               facts);
  // Reads the file twice: the second time all its jobs are known.
  if (read(reader, image, false)) read(reader, image, true);

  TUBED_ASSERT(facts.facts() <= reader.records());
  TUBED_ASSERT(reader.records() <= 2 * size);
  const journal::BinlogJobs jobs = reader.jobs(Time());
  TUBED_ASSERT(jobs.ready + jobs.delayed + jobs.buried == facts.jobs().size());
  TUBED_ASSERT(facts.jobs().empty() || facts.jobs().rbegin()->first < reader.next_job_id());
  TUBED_ASSERT(facts.last_removed() < reader.next_job_id());
  return 0;
}
