#include "journal/record.h"

#include <bit>
#include <cstring>
#include <limits>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/zeros.h"
#include "journal/little_endian.h"

namespace tubed::journal {

namespace {

// The first byte of a payload. 0 is none, so that zeros are no record.
enum class Kind : std::uint8_t { group = 1, added = 2, placed = 3, removed = 4, paused = 5 };

// What stands before the texts.
constexpr std::size_t kGroupPayload = 64;
constexpr std::size_t kAddedPayload = 64;
constexpr std::size_t kPlacedPayload = 48;
constexpr std::size_t kRemovedPayload = 16;
constexpr std::size_t kPausedPayload = 16;

constexpr std::size_t kChecked = 4;  // the checksum covers what stands from here on
constexpr std::uint8_t kClean = 1;   // the flags of a group

constexpr std::size_t padded(std::size_t bytes) {
  return (bytes + kRecordAlignment - 1) & ~(kRecordAlignment - 1);
}

constexpr std::size_t whole(std::size_t payload) {
  return padded(kRecordHeaderBytes + payload);
}

static_assert(whole(kGroupPayload) == kGroupBytes);
static_assert(whole(kPlacedPayload) == kPlacedBytes);
static_assert(whole(kRemovedPayload) == kRemovedBytes);

// --- Writing

// Writes fields one behind the other into memory that is zero.
class Writer {
 public:
  explicit Writer(char* at) : at_(at) {}

  template <class T>
  void number(T value) {
    store_little(at_, value);
    at_ += sizeof value;
  }
  void kind(Kind kind) { number(static_cast<std::uint8_t>(kind)); }
  void text(std::string_view text) {
    if (!text.empty()) std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  void skip(std::size_t bytes) { at_ += bytes; }

  void header(std::size_t payload) {
    TUBED_ASSERT(payload <= std::numeric_limits<std::uint32_t>::max());
    skip(kChecked);
    number(static_cast<std::uint32_t>(payload));
  }
  void counters(const JobCounters& counters) {
    number(counters.reserves);
    number(counters.timeouts);
    number(counters.releases);
    number(counters.buries);
    number(counters.kicks);
  }

 private:
  char* at_;
};

std::uint8_t length_of(std::string_view tube) {
  TUBED_ASSERT(!tube.empty() && tube.size() <= kMaxTubeNameBytes);
  return static_cast<std::uint8_t>(tube.size());
}

std::uint8_t number_of(JobState state) {
  TUBED_ASSERT(state != JobState::reserved);
  return static_cast<std::uint8_t>(state);
}

// The field that means what the state makes of it.
std::uint64_t place_of(const Placement& place, const WallClock& clock) {
  switch (place.state) {
    case JobState::delayed:
      return std::bit_cast<std::uint64_t>(clock.to_wall(place.until));
    case JobState::buried:
      return place.bury_order;
    case JobState::ready:
    case JobState::reserved:
      return 0;
  }
  return 0;
}

void write_added(char* at, const Added& added, const WallClock& clock) {
  Writer writer(at);
  const std::size_t body_bytes = added.body.size();
  writer.header(kAddedPayload + added.tube.size() + body_bytes);
  writer.kind(Kind::added);
  writer.number(number_of(added.place.state));
  writer.number(length_of(added.tube));
  writer.skip(1);
  writer.number(added.place.priority);
  writer.number(added.id);
  writer.number(added.place.delay.count);
  writer.number(added.ttr.count);
  writer.number(clock.to_wall(added.created));
  writer.number(place_of(added.place, clock));
  writer.counters(added.counters);
  writer.number(static_cast<std::uint32_t>(body_bytes));
  writer.text(added.tube);
}

void write_placed(char* at, const Placed& placed, const WallClock& clock) {
  Writer writer(at);
  writer.header(kPlacedPayload);
  writer.kind(Kind::placed);
  writer.number(number_of(placed.place.state));
  writer.skip(2);
  writer.number(placed.place.priority);
  writer.number(placed.id);
  writer.number(place_of(placed.place, clock));
  writer.number(placed.place.delay.count);
  writer.counters(placed.counters);
}

void write_removed(char* at, const Removed& removed) {
  Writer writer(at);
  writer.header(kRemovedPayload);
  writer.kind(Kind::removed);
  writer.skip(7);
  writer.number(removed.id);
}

void write_paused(char* at, const Paused& paused, const WallClock& clock) {
  Writer writer(at);
  writer.header(kPausedPayload + paused.tube.size());
  writer.kind(Kind::paused);
  writer.number(length_of(paused.tube));
  writer.skip(2);
  writer.number(paused.duration.count);
  writer.number(clock.to_wall(paused.until));
  writer.text(paused.tube);
}

// What follows `at` and its checksum, up to the end of `out`.
std::uint32_t checksum_from(const std::string& out, std::size_t at, std::uint32_t seed) {
  return crc32c(seed, std::string_view(out).substr(at + kChecked));
}

std::optional<std::size_t> append_added(std::string& out, std::uint32_t seed, const Added& added,
                                        const WallClock& clock, std::size_t refer_from) {
  const std::size_t at = out.size();
  const std::string_view body = added.body.view();
  const std::size_t before_body = kRecordHeaderBytes + kAddedPayload + added.tube.size();
  const std::size_t bytes = padded(before_body + body.size());
  if (body.size() < refer_from) {
    out.resize(at + bytes);
    write_added(out.data() + at, added, clock);
    if (!body.empty()) std::memcpy(out.data() + at + before_body, body.data(), body.size());
    store_little(out.data() + at, checksum_from(out, at, seed));
    return {};
  }
  out.resize(at + before_body);
  write_added(out.data() + at, added, clock);
  std::uint32_t checksum = crc32c(checksum_from(out, at, seed), body);
  const std::size_t padding = bytes - before_body - body.size();
  out.append(padding, '\0');
  checksum = crc32c(checksum, std::string_view(out).substr(at + before_body));
  store_little(out.data() + at, checksum);
  return at + before_body;
}

// --- Reading

// Reads fields one behind the other. Whoever uses it has checked that they are there.
class Reader {
 public:
  explicit Reader(std::string_view payload) : payload_(payload) {}

  template <class T>
  T number() {
    const T value = load_little<T>(payload_.data() + at_);
    at_ += sizeof(T);
    return value;
  }
  std::string_view text(std::size_t bytes) {
    const std::string_view text = payload_.substr(at_, bytes);
    at_ += bytes;
    return text;
  }
  // Whether bytes that no field has are as they must be.
  bool zeros(std::size_t bytes) { return all_zeros(text(bytes)); }

  JobCounters counters() {
    JobCounters counters;
    counters.reserves = number<std::uint32_t>();
    counters.timeouts = number<std::uint32_t>();
    counters.releases = number<std::uint32_t>();
    counters.buries = number<std::uint32_t>();
    counters.kicks = number<std::uint32_t>();
    return counters;
  }

 private:
  std::string_view payload_;
  std::size_t at_ = 0;
};

constexpr std::string_view kCutShort = "the record is cut short";
constexpr std::string_view kBadChecksum = "the record does not match its checksum";
constexpr std::string_view kUnknownKind = "the record is of an unknown kind";
constexpr std::string_view kBadLength = "the record has a length that its kind cannot have";
constexpr std::string_view kNotZero = "the record has bytes that should be zero and are not";
constexpr std::string_view kBadState = "the record names no state that a job can rest in";

bool is_resting_state(std::uint8_t state) {
  return state <= static_cast<std::uint8_t>(JobState::buried);
}

// False: the place of a ready job is 0.
bool set_place(Placement& placement, std::uint8_t state, std::uint64_t place,
               const WallClock& clock) {
  placement.state = static_cast<JobState>(state);
  if (placement.state == JobState::ready) return place == 0;
  if (placement.state == JobState::buried) {
    placement.bury_order = place;
  } else {
    placement.until = clock.to_monotonic(std::bit_cast<std::int64_t>(place));
  }
  return true;
}

bool is_tube_length(std::size_t bytes) {
  return bytes >= 1 && bytes <= kMaxTubeNameBytes;
}

// Each of these reads a payload whose checksum was right, and returns why it cannot be.
using Reason = std::string_view;

Reason read_group(std::string_view payload, Record& record) {
  if (payload.size() != kGroupPayload) return kBadLength;
  Reader reader(payload);
  reader.number<std::uint8_t>();  // its kind
  const auto flags = reader.number<std::uint8_t>();
  if ((flags & ~kClean) != 0 || !reader.zeros(2)) return kNotZero;
  Group& group = record.emplace<Group>();
  group.facts = reader.number<std::uint32_t>();
  group.directory = reader.number<std::uint64_t>();
  group.offset = reader.number<std::uint64_t>();
  group.number = reader.number<LogNumber>();
  group.durable = reader.number<LogNumber>();
  group.next_job_id = reader.number<JobId>();
  group.written = reader.number<std::int64_t>();
  group.jobs = reader.number<std::uint64_t>();
  group.clean = (flags & kClean) != 0;
  return {};
}

Reason read_added(std::string_view payload, const WallClock& clock, Record& record) {
  if (payload.size() < kAddedPayload) return kBadLength;
  Reader reader(payload);
  reader.number<std::uint8_t>();  // its kind
  const auto state = reader.number<std::uint8_t>();
  const std::size_t tube_bytes = reader.number<std::uint8_t>();
  if (!reader.zeros(1)) return kNotZero;
  if (!is_resting_state(state)) return kBadState;
  Added& added = record.emplace<Added>();
  added.place.priority = reader.number<Priority>();
  added.id = reader.number<JobId>();
  added.place.delay = Seconds{reader.number<std::uint32_t>()};
  added.ttr = Seconds{reader.number<std::uint32_t>()};
  added.created = clock.to_monotonic(reader.number<std::int64_t>());
  if (!set_place(added.place, state, reader.number<std::uint64_t>(), clock)) return kNotZero;
  added.counters = reader.counters();
  const std::size_t body_bytes = reader.number<std::uint32_t>();
  const std::size_t texts = payload.size() - kAddedPayload;
  if (!is_tube_length(tube_bytes) || tube_bytes > texts) return kBadLength;
  if (body_bytes != texts - tube_bytes) return kBadLength;
  added.tube = reader.text(tube_bytes);
  // Without memory the process ends: that must not look like damage.
  added.body = Bytes::copy_of(reader.text(body_bytes));
  return {};
}

Reason read_placed(std::string_view payload, const WallClock& clock, Record& record) {
  if (payload.size() != kPlacedPayload) return kBadLength;
  Reader reader(payload);
  reader.number<std::uint8_t>();  // its kind
  const auto state = reader.number<std::uint8_t>();
  if (!reader.zeros(2)) return kNotZero;
  if (!is_resting_state(state)) return kBadState;
  Placed& placed = record.emplace<Placed>();
  placed.place.priority = reader.number<Priority>();
  placed.id = reader.number<JobId>();
  if (!set_place(placed.place, state, reader.number<std::uint64_t>(), clock)) return kNotZero;
  placed.place.delay = Seconds{reader.number<std::uint32_t>()};
  placed.counters = reader.counters();
  return {};
}

Reason read_removed(std::string_view payload, Record& record) {
  if (payload.size() != kRemovedPayload) return kBadLength;
  Reader reader(payload);
  reader.number<std::uint8_t>();  // its kind
  if (!reader.zeros(7)) return kNotZero;
  record.emplace<Removed>().id = reader.number<JobId>();
  return {};
}

Reason read_paused(std::string_view payload, const WallClock& clock, Record& record) {
  if (payload.size() < kPausedPayload) return kBadLength;
  Reader reader(payload);
  reader.number<std::uint8_t>();  // its kind
  const std::size_t tube_bytes = reader.number<std::uint8_t>();
  if (!reader.zeros(2)) return kNotZero;
  if (!is_tube_length(tube_bytes)) return kBadLength;
  if (tube_bytes != payload.size() - kPausedPayload) return kBadLength;
  Paused& paused = record.emplace<Paused>();
  paused.duration = Seconds{reader.number<std::uint32_t>()};
  paused.until = clock.to_monotonic(reader.number<std::int64_t>());
  paused.tube = reader.text(tube_bytes);
  return {};
}

Reason read_payload(std::string_view payload, const WallClock& clock, Record& record) {
  if (payload.empty()) return kUnknownKind;
  switch (static_cast<Kind>(payload.front())) {
    case Kind::group:
      return read_group(payload, record);
    case Kind::added:
      return read_added(payload, clock, record);
    case Kind::placed:
      return read_placed(payload, clock, record);
    case Kind::removed:
      return read_removed(payload, record);
    case Kind::paused:
      return read_paused(payload, clock, record);
  }
  return kUnknownKind;
}

}  // namespace

// --- Clocks

std::int64_t WallClock::to_wall(Time time) const {
  std::int64_t wall = 0;
  const std::int64_t since_zero = time.time_since_epoch().count();
  if (!__builtin_add_overflow(since_zero, offset.count(), &wall)) return wall;
  return offset.count() < 0 ? std::numeric_limits<std::int64_t>::min()
                            : std::numeric_limits<std::int64_t>::max();
}

Time WallClock::to_monotonic(std::int64_t wall) const {
  std::int64_t since_zero = 0;
  if (!__builtin_sub_overflow(wall, offset.count(), &since_zero)) return Time(Duration(since_zero));
  return offset.count() > 0 ? Time::min() : Time::max();
}

// --- Records

std::size_t added_bytes(std::size_t tube_bytes, std::size_t body_bytes) {
  return whole(kAddedPayload + tube_bytes + body_bytes);
}

std::size_t paused_bytes(std::size_t tube_bytes) {
  return whole(kPausedPayload + tube_bytes);
}

std::size_t record_bytes(const Fact& fact) {
  if (const auto* added = std::get_if<Added>(&fact)) {
    return added_bytes(added->tube.size(), added->body.size());
  }
  if (const auto* paused = std::get_if<Paused>(&fact)) return paused_bytes(paused->tube.size());
  return std::holds_alternative<Placed>(fact) ? kPlacedBytes : kRemovedBytes;
}

std::optional<std::size_t> append_record(std::string& out, std::uint32_t seed, const Fact& fact,
                                         const WallClock& clock, std::size_t refer_from) {
  if (const auto* added = std::get_if<Added>(&fact)) {
    return append_added(out, seed, *added, clock, refer_from);
  }
  const std::size_t at = out.size();
  out.resize(at + record_bytes(fact));
  char* const begin = out.data() + at;
  if (const auto* placed = std::get_if<Placed>(&fact)) write_placed(begin, *placed, clock);
  if (const auto* removed = std::get_if<Removed>(&fact)) write_removed(begin, *removed);
  if (const auto* paused = std::get_if<Paused>(&fact)) write_paused(begin, *paused, clock);
  store_little(begin, checksum_from(out, at, seed));
  return {};
}

void write_group(std::span<char> out, std::uint32_t seed, const Group& group) {
  TUBED_ASSERT(out.size() == kGroupBytes);
  std::memset(out.data(), 0, out.size());
  Writer writer(out.data());
  writer.header(kGroupPayload);
  writer.kind(Kind::group);
  writer.number(static_cast<std::uint8_t>(group.clean ? kClean : 0));
  writer.skip(2);
  writer.number(group.facts);
  writer.number(group.directory);
  writer.number(group.offset);
  writer.number(group.number);
  writer.number(group.durable);
  writer.number(group.next_job_id);
  writer.number(group.written);
  writer.number(group.jobs);
  const std::string_view checked(out.data() + kChecked, out.size() - kChecked);
  store_little(out.data(), crc32c(seed, checked));
}

Parsed parse_record(std::string_view bytes, std::uint32_t seed, const WallClock& clock) {
  Parsed parsed;
  const auto bad = [&parsed](std::string_view reason) -> Parsed& {
    parsed.kind = Parsed::Kind::bad;
    parsed.bytes = 0;
    parsed.record = Group();
    parsed.reason = reason;
    return parsed;
  };
  if (bytes.size() < kRecordHeaderBytes) {
    return all_zeros(bytes) ? parsed : bad(kCutShort);
  }
  if (load_little<std::uint64_t>(bytes.data()) == 0) return parsed;
  const auto checksum = load_little<std::uint32_t>(bytes.data());
  const std::size_t payload = load_little<std::uint32_t>(bytes.data() + kChecked);
  if (payload > bytes.size() - kRecordHeaderBytes) return bad(kCutShort);
  parsed.bytes = whole(payload);
  if (parsed.bytes > bytes.size()) return bad(kCutShort);
  const std::string_view checked = bytes.substr(kChecked, parsed.bytes - kChecked);
  if (crc32c(seed, checked) != checksum) return bad(kBadChecksum);
  const std::string_view padding =
      bytes.substr(kRecordHeaderBytes + payload, parsed.bytes - kRecordHeaderBytes - payload);
  if (!all_zeros(padding)) return bad(kNotZero);
  const std::string_view reason =
      read_payload(bytes.substr(kRecordHeaderBytes, payload), clock, parsed.record);
  if (!reason.empty()) return bad(reason);
  parsed.kind = Parsed::Kind::record;
  return parsed;
}

}  // namespace tubed::journal
