// The file of a DayHistory:
//
//   8 bytes   "tubedhis"
//   4 bytes   the version of the format, kVersion
//   4 bytes   the number of bytes of the contents
//   contents
//   4 bytes   CRC-32C of everything before
//
// The contents are numbers of 7 bits a byte, the least significant first; each byte but the last of
// a number has its highest bit set (LEB128). The other numbers are little-endian.
//
//   the time of the file, in seconds since 1970
//   the points of the server
//   the number of tubes, and for each: the length of its name, the name, its points
//
// Points are their number, and for each: the minute, as the difference to that of the point before,
// the milliseconds, and its numbers in the order of the columns.
#include <algorithm>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "api/day_history.h"
#include "base/crc32c.h"
#include "facts/types.h"

namespace tubed::api {

namespace {

constexpr std::string_view kMagic = "tubedhis";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kVersionAt = kMagic.size();
constexpr std::size_t kLengthAt = kVersionAt + 4;
constexpr std::size_t kHeadBytes = kLengthAt + 4;
constexpr std::size_t kSumBytes = 4;
// The clock of the process that wrote the file may have been ahead by this.
constexpr std::chrono::minutes kAhead{1};

// The bytes of the longest number of 64 and of 32 bits.
constexpr std::size_t kLong = 10;
constexpr std::size_t kShort = 5;
constexpr std::size_t kCountsOfPoint = DayHistory::kCounts.size();
constexpr std::size_t kMostServerBytes =
    kLong +
    DayHistory::kMinutes * (2 * kShort + (DayHistory::kGauges.size() + kCountsOfPoint) * kLong);
constexpr std::size_t kMostTubeBytes =
    kLong + kMaxTubeNameBytes + kLong +
    DayHistory::kMinutes * (2 + DayHistory::kTubeGauges.size() + kCountsOfPoint) * kShort;
static_assert(kHeadBytes + 2 * kLong + kMostServerBytes + DayHistory::kMostTubes * kMostTubeBytes +
                  kSumBytes <=
              DayHistory::kMostFileBytes);

void append_fixed(std::uint32_t number, std::string& text) {
  for (unsigned shift = 0; shift < 32; shift += 8) text += static_cast<char>(number >> shift);
}

// Precondition: the text has 4 bytes there.
std::uint32_t fixed_at(std::string_view text, std::size_t at) {
  std::uint32_t number = 0;
  for (unsigned i = 0; i < 4; ++i)
    number |= std::uint32_t{static_cast<unsigned char>(text[at + i])} << (8 * i);
  return number;
}

void append_number(std::uint64_t number, std::string& text) {
  for (; number >= 0x80; number >>= 7) text += static_cast<char>(number | 0x80);
  text += static_cast<char>(number);
}

template <class Points>
void append_points(const Points& series, std::string& text) {
  append_number(series.size(), text);
  std::uint32_t before = 0;
  series.visit(0, [&](const auto& point) {
    append_number(point.minute - before, text);
    append_number(point.milliseconds, text);
    for (const std::uint64_t number : point.numbers) append_number(number, text);
    before = point.minute;
  });
}

// Reads contents. After the first error all numbers are 0, and is_whole() is false.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  // A greater number is an error.
  std::uint64_t number(std::uint64_t most) {
    std::uint64_t number = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      const std::uint64_t bits = byte & 0x7F;
      if (shift == 63 && bits > 1) break;
      number |= bits << shift;
      if ((byte & 0x80) != 0) continue;
      if (number > most) break;
      return number;
    }
    return fail();
  }
  std::string_view text(std::size_t bytes) {
    if (bytes > rest_.size()) {
      fail();
      return {};
    }
    const std::string_view text = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return text;
  }
  std::uint64_t fail() {
    failed_ = true;
    rest_ = {};
    return 0;
  }
  bool failed() const { return failed_; }
  bool is_whole() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

// `last`: no point is of a later minute.
template <class Number, std::size_t kGauges, std::size_t kCounts>
void read_points(Reader& reader, std::uint32_t last, Series<Number, kGauges, kCounts>& series) {
  using Points = Series<Number, kGauges, kCounts>;
  const std::uint64_t count = reader.number(Points::kMinutes);
  std::uint32_t minute = 0;
  for (std::uint64_t i = 0; i < count && !reader.failed(); ++i) {
    const auto later = static_cast<std::uint32_t>(reader.number(last - minute));
    if (i > 0 && later == 0) reader.fail();
    minute += later;
    typename Points::Point point{
        .minute = minute, .milliseconds = static_cast<std::uint32_t>(reader.number(UINT32_MAX))};
    for (Number& number : point.numbers)
      number = static_cast<Number>(reader.number(std::numeric_limits<Number>::max()));
    if (!reader.failed()) series.append(point);
  }
}

}  // namespace

std::string DayHistory::to_file(Duration wall) const {
  // Most numbers take a byte or two.
  constexpr std::size_t kUsualPoint = 16;
  std::string text(kMagic);
  text.reserve(tubes_.size() * kMinutes * kUsualPoint);
  append_fixed(kVersion, text);
  append_fixed(0, text);
  append_number(static_cast<std::uint64_t>(whole_seconds(wall)), text);
  append_points(server_, text);
  append_number(tubes_.size(), text);
  for (const TubeHistory& tube : tubes_) {
    append_number(tube.name.size(), text);
    text += tube.name;
    append_points(tube.series, text);
  }
  std::string length;
  append_fixed(static_cast<std::uint32_t>(text.size() - kHeadBytes), length);
  text.replace(kLengthAt, length.size(), length);
  append_fixed(crc32c(0, text), text);
  return text;
}

Result<void> DayHistory::load(std::string_view file, Duration wall) {
  const auto damaged = [](std::string_view why) {
    return Error{.message = fmt::format("it is damaged: {}", why), .kind = Error::Kind::damaged};
  };
  if (file.size() < kHeadBytes + kSumBytes) return damaged("it is too short");
  if (!file.starts_with(kMagic)) return damaged("its beginning is that of another file");
  const std::uint32_t version = fixed_at(file, kVersionAt);
  if (version != kVersion)
    return Error{fmt::format("its version is {}, and this program knows {}", version, kVersion)};
  if (fixed_at(file, kLengthAt) != file.size() - kHeadBytes - kSumBytes)
    return damaged("its length is another");
  const std::size_t end = file.size() - kSumBytes;
  if (crc32c(0, file.substr(0, end)) != fixed_at(file, end)) return damaged("its checksum differs");

  const std::uint32_t last = minute_of(wall) + static_cast<std::uint32_t>(kAhead.count());
  Reader reader(file.substr(kHeadBytes, end - kHeadBytes));
  const std::uint64_t written = reader.number(UINT64_MAX);
  if (written > static_cast<std::uint64_t>(whole_seconds(wall + kAhead)))
    return Error{"it is from the future: the clock was set back"};
  DayHistory read;
  read_points(reader, last, read.server_);
  const std::uint64_t tubes = reader.number(kMostTubes);
  for (std::uint64_t i = 0; i < tubes && !reader.failed(); ++i) {
    const std::string_view name = reader.text(reader.number(kMaxTubeNameBytes));
    if (!is_tube_name(name) || read.has(name)) reader.fail();
    TubeHistory tube{.name = std::string(name), .last_seen = minute_of(wall)};
    read_points(reader, last, tube.series);
    read.tubes_.push_back(std::move(tube));
  }
  if (!reader.is_whole()) return damaged("its contents are not those of a history");
  read.newest_ = minute_of(wall);
  *this = std::move(read);
  return {};
}

}  // namespace tubed::api
