#include "journal/segment.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "base/zeros.h"
#include "journal/little_endian.h"
#include "text/numbered_name.h"

// The header of a segment is encoded and decoded here, field by field, because its layout must
// remain readable for every later version. Records are decoded by the Format that the header names.
namespace tubed::journal {

namespace {

constexpr std::string_view kNamePrefix = "journal.";
constexpr std::string_view kMagic = "tubedjnl";

// Offsets of the fields of a header. Magic, version and checksum keep their offsets in all future
// versions.
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kBytesAt = 12;
constexpr std::size_t kDirectoryAt = 16;
constexpr std::size_t kSequenceAt = 24;
constexpr std::size_t kCreatedAt = 32;
constexpr std::size_t kReservedAt = 40;
constexpr std::size_t kChecksumAt = 60;

bool is_segment(std::string_view image) {
  return image.starts_with(kMagic);
}

bool is_whole(std::string_view image) {
  if (image.size() < kSegmentHeaderBytes) return false;
  const auto checksum = load_little<std::uint32_t>(image.data() + kChecksumAt);
  return crc32c(0, image.substr(0, kChecksumAt)) == checksum;
}

// The headers differ in one byte of the version and in the checksum. A crash during the write may
// leave each of these bytes old or new, and the old header may itself be such a mixture.
std::optional<std::uint32_t> version_being_raised(std::string_view image) {
  if (image.size() < kSegmentHeaderBytes) return {};
  std::array<std::string, kLastVersion - kFirstVersion + 1> whole;
  for (std::uint32_t version = kFirstVersion; version <= kLastVersion; ++version) {
    std::string& header = whole[version - kFirstVersion] = image.substr(0, kSegmentHeaderBytes);
    store_little(header.data() + kVersionAt, version);
    store_little(header.data() + kChecksumAt, crc32c(0, header.substr(0, kChecksumAt)));
  }
  const auto is_mixture_up_to = [&](std::uint32_t version) {
    const auto end = whole.begin() + (version - kFirstVersion + 1);
    for (std::size_t i = 0; i < kSegmentHeaderBytes; ++i) {
      const bool found = std::any_of(whole.begin(), end,
                                     [&](const auto& header) { return header[i] == image[i]; });
      if (!found) return false;
    }
    return true;
  };
  for (std::uint32_t version = kFirstVersion + 1; version <= kLastVersion; ++version) {
    if (is_mixture_up_to(version)) return version;
  }
  return {};
}

const Format& format_of(std::string_view image) {
  const auto version = version_of(image);
  const Format* const format = version ? find_format(*version) : nullptr;
  return format == nullptr ? last_format() : *format;
}

}  // namespace

std::string segment_name(std::uint64_t sequence) {
  return numbered_name(kNamePrefix, sequence);
}

std::optional<std::uint64_t> sequence_of(std::string_view name) {
  return number_of_name(kNamePrefix, name);
}

std::uint32_t seed_of(std::uint64_t sequence) {
  char number[sizeof sequence];
  store_little(number, sequence);
  return crc32c(crc32c(0, "segment"), {number, sizeof number});
}

std::string encode_header(const SegmentHeader& header) {
  std::string image(kSegmentHeaderBytes, '\0');
  char* const at = image.data();
  std::ranges::copy(kMagic, at);
  store_little(at + kVersionAt, header.version);
  store_little(at + kBytesAt, static_cast<std::uint32_t>(kSegmentHeaderBytes));
  store_little(at + kDirectoryAt, header.directory);
  store_little(at + kSequenceAt, header.sequence);
  store_little(at + kCreatedAt, header.created);
  store_little(at + kChecksumAt, crc32c(0, {at, kChecksumAt}));
  return image;
}

std::optional<std::uint32_t> version_of(std::string_view image) {
  if (!is_segment(image)) return {};
  if (!is_whole(image)) return version_being_raised(image);
  return load_little<std::uint32_t>(image.data() + kVersionAt);
}

bool has_unknown_version(std::string_view image) {
  const auto version = version_of(image);
  return version && find_format(*version) == nullptr;
}

Result<SegmentHeader> decode_header(std::string_view image, std::uint64_t sequence) {
  if (!is_segment(image)) return Error{"is not a segment of a tubed journal"};
  const auto version = version_of(image);
  if (!version) return Error{"has a damaged header"};
  if (find_format(*version) == nullptr) {
    return Error{fmt::format("has format version {}; this tubed reads versions {} to {}", *version,
                             kFirstVersion, kLastVersion)};
  }
  const char* const at = image.data();
  const std::string_view reserved = image.substr(kReservedAt, kChecksumAt - kReservedAt);
  if (load_little<std::uint32_t>(at + kBytesAt) != kSegmentHeaderBytes || !all_zeros(reserved)) {
    return Error{"has a header with fields that its version does not have"};
  }
  const SegmentHeader header = {.directory = load_little<std::uint64_t>(at + kDirectoryAt),
                                .sequence = load_little<std::uint64_t>(at + kSequenceAt),
                                .created = load_little<std::int64_t>(at + kCreatedAt),
                                // After a crash in raise_version(), the next write raises it again.
                                .version = is_whole(image) ? *version : kFirstVersion,
                                .torn_version = is_whole(image) ? 0 : *version};
  if (header.sequence != sequence) {
    return Error{fmt::format("calls itself segment {}", header.sequence)};
  }
  return header;
}

Result<std::vector<SegmentFile>> list_segments(FileReader& storage) {
  auto files = TRY(storage.list());
  std::vector<SegmentFile> segments;
  for (const FileInfo& file : files) {
    if (const auto sequence = sequence_of(file.name)) segments.push_back({*sequence, file.bytes});
  }
  std::ranges::sort(segments, {}, &SegmentFile::sequence);
  return segments;
}

Result<std::string> read_segment(FileReader& storage, std::uint64_t sequence) {
  auto file = TRY(storage.open(segment_name(sequence)));
  auto image = storage.read(file);
  storage.close(file);
  return image;
}

SegmentReader::SegmentReader(std::string_view image, std::uint64_t sequence, const WallClock& clock)
    : SegmentReader(image, sequence, clock, format_of(image)) {}

Parsed SegmentReader::next() {
  Parsed parsed = format_->parse(image_.substr(std::min(offset_, image_.size())), seed_, clock_);
  const auto* batch = std::get_if<BatchHeader>(&parsed.record);
  if (parsed.kind == Parsed::Kind::record && batch != nullptr && batch->offset != offset_) {
    parsed.kind = Parsed::Kind::bad;
    parsed.reason = "the group names another place than its own";
  }
  if (parsed.kind == Parsed::Kind::record) offset_ += parsed.bytes;
  return parsed;
}

std::optional<BatchHeader> SegmentReader::find_batch() {
  const std::uint64_t misaligned = offset_ % kRecordAlignment;
  std::uint64_t at = offset_ + (misaligned == 0 ? 0 : kRecordAlignment - misaligned);
  const std::size_t batch_header_bytes = format_->batch_header_bytes;
  for (; at < image_.size() && image_.size() - at >= batch_header_bytes; at += kRecordAlignment) {
    const std::string_view bytes = image_.substr(at, batch_header_bytes);
    if (!format_->may_be_batch_header(bytes)) continue;
    const Parsed parsed = format_->parse(bytes, seed_, clock_);
    const auto* batch = std::get_if<BatchHeader>(&parsed.record);
    if (parsed.kind != Parsed::Kind::record || batch == nullptr || batch->offset != at) continue;
    offset_ = at + batch_header_bytes;
    return *batch;
  }
  return {};
}

}  // namespace tubed::journal
