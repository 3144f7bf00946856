#include "journal/record.h"

// The fields of a record are listed once, in journal/layout.h. Sizer, Writer and Reader walk
// through that list. Each has a member function `field` for each kind of field and a member
// function `value` for each type of value. The Writer assumes zeroed memory. The Reader records the
// first reason why a record is impossible and continues, which is safe because of its precondition:
// the payload has the fixed bytes. The body is copied last, after everything else was checked.
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/overloaded.h"
#include "base/zeros.h"
#include "journal/layout.h"
#include "journal/little_endian.h"

namespace tubed::journal {

namespace {

using layout::fixed_bytes;
using layout::for_each_field;
using layout::Kind;

constexpr std::size_t kChecked = 4;  // where the checksummed bytes begin
constexpr std::uint8_t kSet = 1;     // a flag
constexpr std::size_t kTagZeros = 2;

constexpr std::size_t padded(std::size_t bytes) {
  return (bytes + kRecordAlignment - 1) & ~(kRecordAlignment - 1);
}

// Returns the size of a record with a payload of this many bytes.
constexpr std::size_t whole(std::size_t payload) {
  return padded(kRecordHeaderBytes + payload);
}

static_assert(whole(fixed_bytes<BatchHeader>) == kBatchHeaderBytes);
static_assert(whole(fixed_bytes<Placed>) == kPlacedBytes);
static_assert(whole(fixed_bytes<Removed>) == kRemovedBytes);
static_assert(whole(fixed_bytes<Held>) == kHeldBytes);
static_assert(whole(fixed_bytes<Applied>) == kAppliedBytes);

template <class Record>
std::size_t tag_bytes(const Record& record) {
  std::size_t bytes = 0;
  layout::for_each_tag_of(record, [&bytes](std::uint8_t, std::string_view text, std::uint32_t) {
    bytes += layout::kTagHeaderBytes + text.size();
  });
  return bytes;
}

// --- Sizes

class Sizer {
 public:
  template <auto Path, class Record>
  void field(const layout::Text<Path>& field, const Record& record) {
    bytes_ += field.in(record).size();
  }
  template <class Record>
  void field(const layout::Tags& /*field*/, const Record& record) {
    bytes_ += tag_bytes(record);
  }
  template <auto Path, class Record>
  void field(const layout::Body<Path>& field, const Record& record) {
    bytes_ += field.in(record).size();
  }
  template <class Field, class Record>
  void field(const Field& /*field*/, const Record& /*record*/) {}  // counted in fixed_bytes

  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

template <class Record>
[[gnu::always_inline]] inline std::size_t payload_bytes(const Record& record) {
  Sizer sizer;
  for_each_field<Record>([&](const auto& field) { sizer.field(field, record); });
  return fixed_bytes<Record> + sizer.bytes();
}

// --- Writing

// Writes consecutive fields into zeroed memory.
class Writer {
 public:
  Writer(char* at, const WallClock& clock) : at_(at), clock_(clock) {}

  void header(std::size_t payload) {
    TUBED_ASSERT(payload <= std::numeric_limits<std::uint32_t>::max());
    at_ += kChecked;
    value(static_cast<std::uint32_t>(payload));
  }

  template <class T>
  requires std::is_integral_v<T>
  void value(T number) {
    store_little(at_, number);
    at_ += sizeof number;
  }
  void value(bool flag) { value(static_cast<std::uint8_t>(flag ? kSet : 0)); }
  void value(Kind kind) { value(static_cast<std::uint8_t>(kind)); }
  void value(Seconds seconds) { value(seconds.count); }
  void value(Time time) { value(clock_.to_wall(time)); }
  void value(JobState state) {
    TUBED_ASSERT(state != JobState::reserved);
    value(static_cast<std::uint8_t>(state));
  }
  void value(const JobCounters& counters) {
    layout::for_each_counter(counters,
                             [this](const char*, std::uint32_t counter) { value(counter); });
  }

  template <auto... Path, class Record>
  void field(const layout::Value<Path...>& field, const Record& record) {
    value(field.in(record));
  }
  template <auto Path, class Record>
  void field(const layout::Place<Path>& field, const Record& record) {
    const Placement& place = field.in(record);
    switch (place.state) {
      case JobState::delayed:
        return value(place.until);
      case JobState::buried:
        return value(place.bury_order);
      case JobState::ready:
      case JobState::reserved:
        return value(std::uint64_t{0});
    }
  }
  template <auto Path, class Number, std::size_t Bytes, class Record>
  void field(const layout::Member<layout::LengthTag<Number>, Path, Bytes>& field,
             const Record& record) {
    const std::size_t length = field.in(record).size();
    TUBED_ASSERT(length <= std::numeric_limits<Number>::max());
    value(static_cast<Number>(length));
  }
  template <std::size_t Count, class Record>
  void field(const layout::Zeros<Count>& /*field*/, const Record& /*record*/) {
    at_ += Count;
  }
  template <auto Path, class Record>
  void field(const layout::Text<Path>& field, const Record& record) {
    text(field.in(record));
  }
  template <class Record>
  void field(const layout::TagsLength& /*field*/, const Record& record) {
    value(static_cast<std::uint32_t>(tag_bytes(record)));
  }
  template <class Record>
  void field(const layout::Tags& /*field*/, const Record& record) {
    layout::for_each_tag_of(
        record, [this](std::uint8_t code, std::string_view words, std::uint32_t number) {
          value(code);
          value(static_cast<std::uint8_t>(words.size()));
          at_ += kTagZeros;
          value(number);
          if (!words.empty()) text(words);
        });
  }
  // append_added() copies the body or leaves it out.
  template <auto Path, class Record>
  void field(const layout::Body<Path>& /*field*/, const Record& /*record*/) {}

 private:
  void text(std::string_view text) {
    TUBED_ASSERT(!text.empty() && text.size() <= kMaxTubeNameBytes);
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }

  char* at_;
  const WallClock& clock_;
};

template <class Record>
void write_record(char* at, const Record& record, const WallClock& clock) {
  Writer writer(at, clock);
  writer.header(payload_bytes(record));
  writer.value(layout::Layout<Record>::kind);
  for_each_field<Record>([&](const auto& field) { writer.field(field, record); });
}

// Returns the checksum of the record at `at`, the last in `out`.
std::uint32_t checksum_from(const std::string& out, std::size_t at, std::uint32_t seed) {
  return crc32c(seed, std::string_view(out).substr(at + kChecked));
}

// Appends a fact without a body.
template <class T>
void append_short(std::string& out, std::uint32_t seed, const T& fact, const WallClock& clock) {
  const std::size_t at = out.size();
  out.resize(at + whole(payload_bytes(fact)));
  write_record(out.data() + at, fact, clock);
  store_little(out.data() + at, checksum_from(out, at, seed));
}

// `T` is Added or AddedWithTags.
template <class T>
std::optional<std::size_t> append_added(std::string& out, std::uint32_t seed, const T& added,
                                        const WallClock& clock, std::size_t refer_from) {
  const std::size_t at = out.size();
  const std::string_view body = added.body.view();
  const std::size_t before_body = kRecordHeaderBytes + payload_bytes(added) - body.size();
  const std::size_t bytes = padded(before_body + body.size());
  if (body.size() < refer_from) {
    out.resize(at + bytes);
    write_record(out.data() + at, added, clock);
    if (!body.empty()) std::memcpy(out.data() + at + before_body, body.data(), body.size());
    store_little(out.data() + at, checksum_from(out, at, seed));
    return {};
  }
  out.resize(at + before_body);
  write_record(out.data() + at, added, clock);
  std::uint32_t checksum = crc32c(checksum_from(out, at, seed), body);
  const std::size_t padding = bytes - before_body - body.size();
  out.append(padding, '\0');
  checksum = crc32c(checksum, std::string_view(out).substr(at + before_body));
  store_little(out.data() + at, checksum);
  return at + before_body;
}

// --- Reading

constexpr std::string_view kCutShort = "the record is cut short";
constexpr std::string_view kBadChecksum = "the record does not match its checksum";
constexpr std::string_view kUnknownKind = "the record is of an unknown kind";
constexpr std::string_view kBadLength = "the record has a length that its kind cannot have";
constexpr std::string_view kNotZero = "the record has bytes that should be zero and are not";
constexpr std::string_view kBadState = "the record names no state that a job can rest in";
constexpr std::string_view kBadTags = "the record has tags that no put can have";

// Reads consecutive fields and records the first reason why the record is impossible. Precondition:
// the payload has at least the record's fixed bytes.
class Reader {
 public:
  Reader(std::string_view payload, const WallClock& clock) : payload_(payload), clock_(clock) {}

  template <class T>
  requires std::is_integral_v<T>
  void value(T& number) {
    number = load_little<T>(payload_.data() + at_);
    at_ += sizeof(T);
  }
  void value(bool& flag) {
    const auto flags = number<std::uint8_t>();
    if ((flags & ~kSet) != 0) refuse(kNotZero);
    flag = (flags & kSet) != 0;
  }
  void value(Seconds& seconds) { value(seconds.count); }
  void value(Time& time) { time = clock_.to_monotonic(number<std::int64_t>()); }
  void value(JobState& state) {
    const auto resting = number<std::uint8_t>();
    if (resting > static_cast<std::uint8_t>(JobState::buried)) return refuse(kBadState);
    state = static_cast<JobState>(resting);
  }
  void value(JobCounters& counters) {
    layout::for_each_counter(counters,
                             [this](const char*, std::uint32_t& counter) { value(counter); });
  }

  template <auto... Path, class Record>
  void field(const layout::Value<Path...>& field, Record& record) {
    value(field.in(record));
  }
  // The state has been read before.
  template <auto Path, class Record>
  void field(const layout::Place<Path>& field, Record& record) {
    Placement& place = field.in(record);
    if (place.state == JobState::delayed) return value(place.until);
    if (place.state == JobState::buried) return value(place.bury_order);
    if (number<std::uint64_t>() != 0) refuse(kNotZero);
  }
  template <auto Path, class Number, std::size_t Bytes, class Record>
  void field(const layout::Member<layout::LengthTag<Number>, Path, Bytes>& /*field*/,
             Record& /*record*/) {
    const std::size_t length = number<Number>();
    if constexpr (std::is_same_v<Number, std::uint8_t>) {
      text_bytes_[texts_++] = length;
      if (length == 0) refuse(kBadLength);
    } else {
      body_bytes_ = length;
    }
  }
  template <class Record>
  void field(const layout::TagsLength& /*field*/, Record& /*record*/) {
    tags_bytes_ = number<std::uint32_t>();
  }
  template <std::size_t Count, class Record>
  void field(const layout::Zeros<Count>& /*field*/, Record& /*record*/) {
    if (!all_zeros(bytes(Count))) refuse(kNotZero);
  }
  template <auto Path, class Record>
  void field(const layout::Text<Path>& field, Record& record) {
    const std::size_t length = text_bytes_[texts_read_++];
    if (length < 1 || length > kMaxTubeNameBytes || length > payload_.size() - at_) {
      return refuse(kBadLength);
    }
    field.in(record) = bytes(length);
  }
  template <class Record>
  void field(const layout::Tags& /*field*/, Record& record) {
    if (tags_bytes_ > payload_.size() - at_) return refuse(kBadLength);
    const std::string_view tags = bytes(tags_bytes_);
    if (!Reader(tags, clock_).read_tags(record)) refuse(kBadTags);
  }
  template <auto Path, class Record>
  void field(const layout::Body<Path>& field, Record& record) {
    if (body_bytes_ != payload_.size() - at_) return refuse(kBadLength);
    // Copied only if everything else is valid. Exhausted memory ends the process: it must not look
    // like damage.
    if (reason_.empty()) field.in(record) = Bytes::copy_of(bytes(body_bytes_));
  }

  // Called after the last field. Returns why the record is impossible, or an empty text.
  std::string_view end() {
    if (at_ != payload_.size()) refuse(kBadLength);
    return reason_;
  }

 private:
  // The payload consists of tags only. Returns false if they are impossible.
  template <class Record>
  bool read_tags(Record& record) {
    at_ = 0;
    std::uint8_t last = 0;
    while (payload_.size() - at_ >= layout::kTagHeaderBytes) {
      const auto code = number<std::uint8_t>();
      const auto length = number<std::uint8_t>();
      const bool zeros = all_zeros(bytes(kTagZeros));
      const auto value = number<std::uint32_t>();
      const bool fits = length <= kMaxTubeNameBytes && length <= payload_.size() - at_;
      if (!zeros || !fits || code <= last) return false;
      last = code;
      if (!set_tag(record, code, bytes(length), value)) return false;
    }
    return at_ == payload_.size() && last > 0;
  }
  static bool set_tag(AddedWithTags& added, std::uint8_t code, std::string_view text,
                      std::uint32_t number) {
    switch (static_cast<Tag>(code)) {
      case Tag::unique:
        added.tags.unique_key = text;
        added.tags.cooldown = {number};
        return !text.empty();
      case Tag::max_attempts:
        added.tags.max_attempts = number;
        added.tags.dead = text;
        return true;
      case Tag::time_to_live:
        added.tags.time_to_live = Seconds{number};
        return text.empty();
      case Tag::concurrency:
        added.tags.concurrency_key = text;
        added.tags.concurrency_limit = number;
        return !text.empty() && number > 0;
      case Tag::group:
        added.tags.group = text;
        return !text.empty() && number == 0;
      case Tag::after:
        added.tags.after = text;
        return !text.empty() && number == 0;
      case Tag::ttr_short_by_ms:
        added.tags.ttr_short_by_ms = static_cast<std::uint16_t>(number);
        return text.empty() && number > 0 && number < 1000 && added.ttr.count > 0;
    }
    return set_mark(added.marks, code, text, number);
  }
  static bool set_tag(PlacedWithMarks& placed, std::uint8_t code, std::string_view text,
                      std::uint32_t number) {
    return set_mark(placed.marks, code, text, number);
  }
  static bool set_mark(JobMarks& marks, std::uint8_t code, std::string_view text,
                       std::uint32_t number) {
    if (number == 0) return false;
    switch (static_cast<Mark>(code)) {
      case Mark::reserves:
        marks.reserves = number;
        return text.empty();
      case Mark::timeouts:
        marks.timeouts = number;
        return text.empty();
      case Mark::releases:
        marks.releases = number;
        return text.empty();
      case Mark::dead:
        if (number > static_cast<std::uint32_t>(DeathReason::expired)) return false;
        marks.reason = static_cast<DeathReason>(number);
        marks.dead_from = text;
        return true;
      case Mark::after_done:
        marks.after_done = true;
        return text.empty() && number == 1;
    }
    return false;
  }
  template <class T>
  T number() {
    T number{};
    value(number);
    return number;
  }
  std::string_view bytes(std::size_t count) {
    const std::string_view bytes = payload_.substr(at_, count);
    at_ += count;
    return bytes;
  }
  void refuse(std::string_view reason) {
    if (reason_.empty()) reason_ = reason;
  }

  std::string_view payload_;
  const WallClock& clock_;
  std::size_t at_ = 1;                       // after the kind
  std::array<std::size_t, 3> text_bytes_{};  // of the texts still to come
  std::size_t texts_ = 0;                    // lengths read
  std::size_t texts_read_ = 0;
  std::size_t tags_bytes_ = 0;
  std::size_t body_bytes_ = 0;
  std::string_view reason_;
};

// Reads a payload whose checksum matches. Returns why it is impossible, or an empty text.
template <class T>
std::string_view read_record(std::string_view payload, const WallClock& clock, T& record) {
  if (payload.size() < fixed_bytes<T>) return kBadLength;
  Reader reader(payload, clock);
  for_each_field<T>([&](const auto& field) { reader.field(field, record); });
  return reader.end();
}

template <class T>
std::string_view read_fact(std::string_view payload, const WallClock& clock, Record& record) {
  return read_record(payload, clock, std::get<T>(record.emplace<Fact>(std::in_place_type<T>)));
}

// Returns the version of the format that introduced a kind.
constexpr std::uint32_t first_version_of(Kind kind) {
  if (kind > Kind::policy_set) return 3;
  return kind > Kind::paused ? 2 : 1;
}

std::string_view read_payload(std::string_view payload, std::uint32_t version,
                              const WallClock& clock, Record& record) {
  if (payload.empty() || first_version_of(static_cast<Kind>(payload.front())) > version) {
    return kUnknownKind;
  }
  switch (static_cast<Kind>(payload.front())) {
    case Kind::batch_header:
      return read_record(payload, clock, record.emplace<BatchHeader>());
    case Kind::added:
      return read_fact<Added>(payload, clock, record);
    case Kind::placed:
      return read_fact<Placed>(payload, clock, record);
    case Kind::removed:
      return read_fact<Removed>(payload, clock, record);
    case Kind::paused:
      return read_fact<Paused>(payload, clock, record);
    case Kind::flushed:
      return read_fact<Flushed>(payload, clock, record);
    case Kind::added_with_tags:
      return read_fact<AddedWithTags>(payload, clock, record);
    case Kind::remembered:
      return read_fact<Remembered>(payload, clock, record);
    case Kind::moved:
      return read_fact<Moved>(payload, clock, record);
    case Kind::placed_with_marks:
      return read_fact<PlacedWithMarks>(payload, clock, record);
    case Kind::policy_set:
      return read_fact<PolicySet>(payload, clock, record);
    case Kind::held:
      return read_fact<Held>(payload, clock, record);
    case Kind::applied:
      return read_fact<Applied>(payload, clock, record);
  }
  return kUnknownKind;
}

}  // namespace

// --- Clocks

std::int64_t WallClock::to_wall(Time time) const {
  if (time == kNever) return std::numeric_limits<std::int64_t>::max();
  std::int64_t wall = 0;
  const std::int64_t since_zero = time.time_since_epoch().count();
  if (!__builtin_add_overflow(since_zero, offset.count(), &wall)) return wall;
  return offset.count() < 0 ? std::numeric_limits<std::int64_t>::min()
                            : std::numeric_limits<std::int64_t>::max();
}

Time WallClock::to_monotonic(std::int64_t wall) const {
  if (wall == std::numeric_limits<std::int64_t>::max()) return kNever;
  std::int64_t since_zero = 0;
  if (!__builtin_sub_overflow(wall, offset.count(), &since_zero)) return Time(Duration(since_zero));
  return offset.count() > 0 ? Time::min() : Time::max();
}

// --- Records

std::size_t added_bytes(std::size_t tube_bytes, std::size_t body_bytes) {
  return whole(fixed_bytes<Added> + tube_bytes + body_bytes);
}

std::size_t record_bytes(const Fact& fact) {
  return std::visit([](const auto& any) { return whole(payload_bytes(any)); }, fact);
}

std::optional<std::size_t> append_record(std::string& out, std::uint32_t seed, const Fact& fact,
                                         const WallClock& clock, std::size_t refer_from) {
  using Position = std::optional<std::size_t>;
  return std::visit(Overloaded{[&](const Added& added) -> Position {
                                 return append_added(out, seed, added, clock, refer_from);
                               },
                               [&](const AddedWithTags& added) -> Position {
                                 return append_added(out, seed, added, clock, refer_from);
                               },
                               [&](const auto& other) -> Position {
                                 append_short(out, seed, other, clock);
                                 return {};
                               }},
                    fact);
}

void write_batch_header(std::span<char> out, std::uint32_t seed, const BatchHeader& batch) {
  TUBED_ASSERT(out.size() == kBatchHeaderBytes);
  std::memset(out.data(), 0, out.size());
  write_record(out.data(), batch, WallClock{});
  const std::string_view checked(out.data() + kChecked, out.size() - kChecked);
  store_little(out.data(), crc32c(seed, checked));
}

bool looks_like_batch_header(std::string_view bytes) {
  return load_little<std::uint32_t>(bytes.data() + kChecked) == fixed_bytes<BatchHeader> &&
         bytes[kRecordHeaderBytes] == static_cast<char>(Kind::batch_header);
}

std::uint32_t version_needed(const Fact& fact) {
  return std::visit(
      []<class T>(const T& /*fact*/) { return first_version_of(layout::Layout<T>::kind); }, fact);
}

namespace {

// Reads the record into `parsed`. Returns why it is bad, or an empty text.
template <std::uint32_t kVersion>
std::string_view parse_into(Parsed& parsed, std::string_view bytes, std::uint32_t seed,
                            const WallClock& clock) {
  if (bytes.size() < kRecordHeaderBytes) return all_zeros(bytes) ? std::string_view() : kCutShort;
  if (load_little<std::uint64_t>(bytes.data()) == 0) return {};
  const auto checksum = load_little<std::uint32_t>(bytes.data());
  const std::size_t payload = load_little<std::uint32_t>(bytes.data() + kChecked);
  if (payload > bytes.size() - kRecordHeaderBytes) return kCutShort;
  parsed.bytes = whole(payload);
  if (parsed.bytes > bytes.size()) return kCutShort;
  const std::string_view checked = bytes.substr(kChecked, parsed.bytes - kChecked);
  if (crc32c(seed, checked) != checksum) return kBadChecksum;
  const std::string_view padding =
      bytes.substr(kRecordHeaderBytes + payload, parsed.bytes - kRecordHeaderBytes - payload);
  if (!all_zeros(padding)) return kNotZero;
  parsed.kind = Parsed::Kind::record;
  return read_payload(bytes.substr(kRecordHeaderBytes, payload), kVersion, clock, parsed.record);
}

}  // namespace

// All paths return the same variable, so no record is moved.
template <std::uint32_t kVersion>
Parsed parse_record(std::string_view bytes, std::uint32_t seed, const WallClock& clock) {
  Parsed parsed;
  parsed.reason = parse_into<kVersion>(parsed, bytes, seed, clock);
  if (!parsed.reason.empty()) {
    parsed.kind = Parsed::Kind::bad;
    parsed.bytes = 0;
    parsed.record = BatchHeader();
  }
  return parsed;
}

template Parsed parse_record<1>(std::string_view bytes, std::uint32_t seed, const WallClock& clock);
template Parsed parse_record<2>(std::string_view bytes, std::uint32_t seed, const WallClock& clock);
template Parsed parse_record<3>(std::string_view bytes, std::uint32_t seed, const WallClock& clock);

}  // namespace tubed::journal
