#include "journal/binlog.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/planted.h"
#include "base/zeros.h"
#include "journal/little_endian.h"
#include "text/numbers.h"

// A binlog is a sequence of records. Each begins with the length of a tube's name. beanstalkd
// writes a whole record (name, the struct of the job, its body) for a put and when it compacts, and
// a short record (a length of 0 and the struct) for every later change. Entry decodes one record
// and checks its lengths and numbers. BinlogReader converts the entries, file by file, to facts.
namespace tubed::journal {

// The formats differ in the unit of time and in the fields after the state.
struct BinlogReader::Format {
  std::size_t struct_bytes = 0;
  std::uint64_t nanoseconds = 0;  // a unit of time

  static Result<Format> of(std::uint32_t version);
};

namespace {

constexpr std::uint32_t kVersion5 = 5;
constexpr std::uint32_t kVersion7 = 7;
constexpr std::size_t kIntBytes = 4;
constexpr std::size_t kLineEndBytes = 2;
constexpr std::uint64_t kMaxBodyBytes = kMaxJobBytesCeiling + kLineEndBytes;
// A record is damaged if its id exceeds all earlier ids by more than this. Ids may jump, because a
// binlog can begin with copies of very old jobs; but even at 100,000 jobs per second a server needs
// five years for this many.
constexpr JobId kMaxIdJump = JobId{1} << 44;
constexpr JobId kMaxId = JobId{1} << 62;
constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

// Offsets in the struct.
constexpr std::size_t kId = 0;
constexpr std::size_t kPriority = 8;
constexpr std::size_t kDelay = 16;
constexpr std::size_t kTtr = 24;
constexpr std::size_t kBodyBytes = 32;
constexpr std::size_t kCreated = 40;
constexpr std::size_t kDeadline = 48;
constexpr std::size_t kReserves = 56;
constexpr std::size_t kTimeouts = 60;
constexpr std::size_t kReleases = 64;
constexpr std::size_t kBuries = 68;
constexpr std::size_t kKicks = 72;
constexpr std::size_t kState = 76;

enum class State : std::uint8_t { deleted, ready, reserved, buried, delayed };

template <class T>
T load(std::string_view bytes, std::size_t at) {
  return load_little<T>(bytes.substr(at, sizeof(T)).data());
}

bool zeros_from(std::string_view bytes, std::size_t at) {
  return at >= bytes.size() || all_zeros(bytes.substr(at));
}

// True for a name that commands accept. Some versions accepted a '-' at the beginning.
bool is_tube_name(std::string_view name) {
  return std::ranges::all_of(name, [](char c) {
    const bool is_alphanumeric =
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_alphanumeric || std::string_view("-+/;.$_()").find(c) != std::string_view::npos;
  });
}

Seconds whole_seconds_up(std::int64_t nanoseconds) {
  const std::int64_t seconds =
      nanoseconds / kNanosecondsPerSecond + (nanoseconds % kNanosecondsPerSecond > 0 ? 1 : 0);
  return {static_cast<std::uint32_t>(std::min<std::int64_t>(seconds, UINT32_MAX))};
}

}  // namespace

Result<BinlogReader::Format> BinlogReader::Format::of(std::uint32_t version) {
  if (version == kVersion5) return Format{.struct_bytes = 77, .nanoseconds = 1'000};
  if (version == kVersion7) return Format{.struct_bytes = 80, .nanoseconds = 1};
  if (version == kVersion5 << 24 || version == kVersion7 << 24) {
    return Error{"was written by a machine of the other byte order; it can only be read there"};
  }
  return Error{fmt::format("is of format {}; only 5 and 7 can be read", version)};
}

// One record of the file, with times in nanoseconds.
struct BinlogReader::Entry {
  std::string_view tube;  // empty: a short record
  std::string_view body;
  JobId id = 0;
  Priority priority = 0;
  std::int64_t delay = 0;
  std::int64_t ttr = 0;
  std::int64_t created = 0;
  std::int64_t deadline = 0;
  JobCounters counters;
  State state = State::deleted;

  std::uint64_t body_bytes = 0;  // according to the struct, with the line end

  std::size_t bytes = 0;      // of the record, as far as its lengths are plausible
  std::string_view bad = {};  // a literal: why it is damaged; or empty

  bool whole() const { return !tube.empty(); }

  // Decodes the record at the beginning of `bytes`.
  static Entry parse(std::string_view bytes, const Format& format);

 private:
  void take_struct(std::string_view record, const Format& format);
  void take_body(std::string_view bytes);
};

BinlogReader::Entry BinlogReader::Entry::parse(std::string_view bytes, const Format& format) {
  Entry entry;
  entry.bytes = kIntBytes + format.struct_bytes;
  if (bytes.size() < kIntBytes) {
    entry.bad = "the file ends in a record";
    return entry;
  }
  const auto name_bytes = load<std::uint32_t>(bytes, 0);
  if (name_bytes > kMaxTubeNameBytes) {
    entry.bad = "a tube's name is too long";
    return entry;
  }
  entry.bytes += name_bytes;
  if (bytes.size() < entry.bytes) {
    entry.bad = "the file ends in a record";
    return entry;
  }
  entry.tube = bytes.substr(kIntBytes, name_bytes);
  const std::string_view record = bytes.substr(kIntBytes + name_bytes, format.struct_bytes);
  entry.take_struct(record, format);
  if (entry.bad.empty() && entry.whole()) entry.take_body(bytes);
  return entry;
}

void BinlogReader::Entry::take_struct(std::string_view record, const Format& format) {
  const auto time_at = [&](std::size_t at) -> std::int64_t {
    const auto value = load<std::uint64_t>(record, at);
    if (value > static_cast<std::uint64_t>(INT64_MAX) / format.nanoseconds) bad = "a time is wrong";
    return static_cast<std::int64_t>(value * format.nanoseconds);
  };
  id = load<std::uint64_t>(record, kId);
  priority = load<std::uint32_t>(record, kPriority);
  delay = time_at(kDelay);
  ttr = time_at(kTtr);
  created = time_at(kCreated);
  deadline = time_at(kDeadline);
  counters = {.reserves = load<std::uint32_t>(record, kReserves),
              .timeouts = load<std::uint32_t>(record, kTimeouts),
              .releases = load<std::uint32_t>(record, kReleases),
              .buries = load<std::uint32_t>(record, kBuries),
              .kicks = load<std::uint32_t>(record, kKicks)};
  const auto state_byte = load<std::uint8_t>(record, kState);
  if (state_byte > static_cast<std::uint8_t>(State::delayed)) bad = "a job's state is none";
  state = static_cast<State>(state_byte);
  body_bytes = load<std::uint32_t>(record, kBodyBytes);
  if (whole() && state == State::deleted) bad = "a whole record of a deleted job";
  if (id == 0 || id > kMaxId) bad = "a job's id is none";
  if (!is_tube_name(tube)) bad = "a tube's name is none";
}

void BinlogReader::Entry::take_body(std::string_view from) {
  if (body_bytes < kLineEndBytes || body_bytes > kMaxBodyBytes) {
    bad = "a body's length is wrong";
    return;
  }
  const std::size_t at = bytes;
  bytes += body_bytes;
  if (from.size() < bytes) {
    bad = "the file ends in a body";
    return;
  }
  body = from.substr(at, bytes - at - kLineEndBytes);
  if (from.substr(bytes - kLineEndBytes, kLineEndBytes) != "\r\n") bad = "a body has no end";
}

std::optional<std::uint64_t> binlog_number(std::string_view name) {
  constexpr std::string_view kPrefix = "binlog.";
  if (!name.starts_with(kPrefix)) return {};
  const std::string_view digits = name.substr(kPrefix.size());
  if (digits.empty() || digits.front() == '0') return {};
  const auto number = parse_number<std::uint64_t>(digits);
  // Rejects the largest number, because the next number must exist as well.
  return number == UINT64_MAX ? std::nullopt : number;
}

Result<std::optional<TornBinlog>> BinlogReader::read(std::string_view image, bool newest) {
  // beanstalkd creates a file empty or filled with zeros before it writes to it.
  if (zeros_from(image, 0)) return std::optional<TornBinlog>();
  if (image.size() < kIntBytes) {
    if (newest) return std::optional(TornBinlog{0, "the file ends in its version"});
    return Error{"is damaged at byte 0: the file ends in its version"};
  }
  const auto format = TRY(Format::of(load<std::uint32_t>(image, 0)));

  std::size_t offset = kIntBytes;
  while (!zeros_from(image, offset)) {
    const std::string_view rest = image.substr(offset);
    Entry entry = Entry::parse(rest, format);
    if (entry.bad.empty() && entry.id >= next_job_id_ && entry.id - next_job_id_ >= kMaxIdJump) {
      entry.bad = "a job's id is far beyond all ids before it";
    }
    if (!entry.bad.empty()) {
      if (is_torn(entry, rest, format, newest)) {
        return std::optional(TornBinlog{offset, entry.bad});
      }
      return Error{fmt::format("is damaged at byte {}: {}", offset, entry.bad)};
    }
    TRY(tell(entry));
    offset += entry.bytes;
  }
  return std::optional<TornBinlog>();
}

// True if a crash may have left this damaged record at the beginning of `rest`. beanstalkd writes
// from front to back, so zeros follow, or in the newest file nothing. The length of a torn body is
// as it was written, so no record can lie within the body: if one does, the length is damaged.
bool BinlogReader::is_torn(const Entry& entry, std::string_view rest, const Format& format,
                           bool newest) const {
  if (TUBED_PLANTED(newest_binlog_ends_anywhere) && newest) return true;
  const bool ends_here = newest && entry.bytes >= rest.size();
  const bool zeros_follow = entry.bytes < rest.size() && zeros_from(rest, entry.bytes);
  return (ends_here || zeros_follow) && !has_record(rest.substr(1), format);
}

// True if `bytes` contains a whole record, or a short record of a known job. O(bytes).
bool BinlogReader::has_record(std::string_view bytes, const Format& format) const {
  const std::size_t least = kIntBytes + format.struct_bytes;
  const std::size_t last = bytes.find_last_not_of('\0');
  bytes = bytes.substr(0, last == std::string_view::npos ? 0 : last + least);
  for (std::size_t at = 0; at + least <= bytes.size(); ++at) {
    const std::string_view rest = bytes.substr(at);
    const auto name_bytes = load<std::uint32_t>(rest, 0);
    if (name_bytes > kMaxTubeNameBytes) continue;
    const Entry entry = Entry::parse(rest, format);
    if (!entry.bad.empty() || entry.created == 0) continue;
    if (entry.whole()) return true;
    if (resting_.contains(entry.id) && entry.body_bytes >= kLineEndBytes &&
        entry.body_bytes <= kMaxBodyBytes) {
      return true;
    }
  }
  return false;
}

Result<void> BinlogReader::tell(const Entry& entry) {
  ++records_;
  next_job_id_ = std::max(next_job_id_, entry.id + 1);
  const auto known = resting_.find(entry.id);
  const bool is_known = known != resting_.end();
  if (!is_known && !entry.whole()) return {};
  if (entry.state == State::deleted) {
    resting_.erase(known);
    sink_.fact(Removed{.id = entry.id});
    return {};
  }

  Placement place = placement_of(entry);
  if (place.state == JobState::buried) {
    // A whole record of a known job is a copy made by compaction: the job was not moved.
    const bool is_copy = is_known && entry.whole() && known->second.state == JobState::buried;
    place.bury_order = is_copy ? known->second.bury_order : next_bury_order_++;
  }
  resting_[entry.id] = {.state = place.state, .bury_order = place.bury_order, .until = place.until};
  if (is_known) {
    sink_.fact(Placed{.id = entry.id, .place = place, .counters = entry.counters});
    return {};
  }
  Bytes body = Bytes::allocate(static_cast<std::uint32_t>(entry.body.size()));
  if (!body) return Error{fmt::format("no memory for the body of job {}", entry.id)};
  std::ranges::copy(entry.body, body.writable().begin());
  sink_.fact(Added{.id = entry.id,
                   .tube = entry.tube,
                   .ttr = Seconds{std::max(whole_seconds_up(entry.ttr).count, 1U)},
                   .created = clock_.to_monotonic(entry.created),
                   .body = std::move(body),
                   .place = place,
                   .counters = entry.counters});
  return {};
}

Placement BinlogReader::placement_of(const Entry& entry) const {
  Placement place;
  place.priority = entry.priority;
  place.delay = whole_seconds_up(entry.delay);
  switch (entry.state) {
    case State::buried:
      place.state = JobState::buried;
      break;
    case State::delayed:
      place.state = JobState::delayed;
      place.until = clock_.to_monotonic(entry.deadline);
      break;
    case State::ready:
    case State::reserved:  // its client is disconnected
    case State::deleted:
      break;
  }
  return place;
}

BinlogJobs BinlogReader::jobs(Time now) const {
  BinlogJobs jobs;
  for (const auto& [id, rest] : resting_) {
    const bool is_delayed = rest.state == JobState::delayed && rest.until > now;
    auto& count = rest.state == JobState::buried ? jobs.buried
                  : is_delayed                   ? jobs.delayed
                                                 : jobs.ready;
    ++count;
  }
  return jobs;
}

}  // namespace tubed::journal
