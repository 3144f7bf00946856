#include "cluster/raft_file.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "base/zeros.h"
#include "journal/little_endian.h"
#include "text/numbered_name.h"

// docs/internals/raft-log-format.md describes the layout. A batch has two checksums: one of its
// header, so the header is recognized even if its records are incomplete, and one of its records.
// Both are seeded with a value derived from the file's number, so the bytes of another file are not
// mistaken for a batch.
namespace tubed::cluster {

namespace {

using journal::load_little;
using journal::store_little;

constexpr std::string_view kNamePrefix = "raft.";
constexpr std::string_view kUnfinished = ".new";
constexpr std::uint64_t kAlignment = 8;

// Offsets of the fields of a file's header. Magic, version and checksum keep their offsets in all
// future versions.
namespace file_header {
constexpr std::string_view kMagic = "tubedrft";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kBytesAt = 12;
constexpr std::size_t kClusterAt = 16;
constexpr std::size_t kNumberAt = 24;
constexpr std::size_t kFileBytesAt = 32;
constexpr std::size_t kReservedAt = 40;
constexpr std::size_t kChecksumAt = 60;
}  // namespace file_header

// In the header of a batch.
namespace batch_header {
constexpr std::string_view kMagic = "rbat";
constexpr char kResetFlag = 1;
constexpr std::size_t kChecksumAt = 0;
constexpr std::size_t kMagicAt = 4;
constexpr std::size_t kOffsetAt = 8;
constexpr std::size_t kNumberAt = 16;
constexpr std::size_t kFirstAt = 24;
constexpr std::size_t kClusterAt = 32;
constexpr std::size_t kBytesAt = 40;
constexpr std::size_t kEntriesAt = 48;
constexpr std::size_t kRecordsChecksumAt = 52;
constexpr std::size_t kFlagsAt = 56;
constexpr std::size_t kReservedAt = 57;
}  // namespace batch_header

// In a record.
namespace record {
constexpr std::size_t kIndexAt = 0;
constexpr std::size_t kTermAt = 8;
constexpr std::size_t kDataBytesAt = 16;
constexpr std::size_t kTypeAt = 20;
constexpr std::size_t kReservedAt = 21;
constexpr std::uint64_t kHeaderBytes = 24;
}  // namespace record

// No log reaches these indexes. After the largest, the next index would be 0.
constexpr Index kIndexesEnd = UINT64_MAX - UINT32_MAX;

// Smaller data is copied into the batch, to keep the number of pieces in a write small.
constexpr std::size_t kShareBytes = 4096;

constexpr std::string_view kPadding{"\0\0\0\0\0\0\0", 7};

std::uint64_t padding_of(std::uint64_t bytes) {
  return (kAlignment - bytes % kAlignment) % kAlignment;
}

std::uint32_t seed_of(std::uint64_t file) {
  char number[sizeof file];
  store_little(number, file);
  return crc32c(crc32c(0, "raft"), {number, sizeof number});
}

bool is_known(std::uint8_t type) {
  return type >= static_cast<std::uint8_t>(EntryType::facts) &&
         type <= static_cast<std::uint8_t>(EntryType::change);
}

// Returns the header at `offset` if its magic and its checksum match.
std::optional<std::string_view> header_at(std::string_view image, std::uint64_t offset,
                                          std::uint32_t seed) {
  using namespace batch_header;
  if (offset > image.size() || image.size() - offset < kRaftBatchHeaderBytes) return {};
  const std::string_view bytes = image.substr(offset, kRaftBatchHeaderBytes);
  if (!bytes.substr(kMagicAt).starts_with(kMagic)) return {};
  const auto checksum = load_little<std::uint32_t>(bytes.data() + kChecksumAt);
  if (crc32c(seed, bytes.substr(kMagicAt)) != checksum) return {};
  return bytes;
}

RaftBatchHeader decode_batch_header(std::string_view bytes) {
  using namespace batch_header;
  const char* const at = bytes.data();
  return {.offset = load_little<std::uint64_t>(at + kOffsetAt),
          .number = load_little<std::uint64_t>(at + kNumberAt),
          .first = load_little<std::uint64_t>(at + kFirstAt),
          .cluster = load_little<std::uint64_t>(at + kClusterAt),
          .bytes = load_little<std::uint64_t>(at + kBytesAt),
          .entries = load_little<std::uint32_t>(at + kEntriesAt),
          .reset = bytes[kFlagsAt] == kResetFlag};
}

// Returns an empty text if every field is possible.
std::string_view fault_of(std::string_view bytes, const RaftBatchHeader& header,
                          std::uint64_t offset, std::uint64_t cluster, std::uint64_t room) {
  using namespace batch_header;
  if (header.offset != offset) return "the batch names another place than its own";
  if (header.cluster != cluster) return "the batch belongs to another cluster";
  if (!header.reset && bytes[kFlagsAt] != 0) return "the batch has unknown flags";
  if (!all_zeros(bytes.substr(kReservedAt))) return "the batch has unknown fields";
  if (header.number == 0) return "the batch has no number";
  if (header.first == 0 || header.first >= kIndexesEnd) return "no log comes to its index";
  if (header.bytes > room) return "the batch is longer than its file";
  if (header.bytes % kAlignment != 0) return "the length of the batch is impossible";
  return {};
}

// Returns an empty text if `entries` has received all records of the batch.
std::string read_records(std::string_view bytes, const RaftBatchHeader& header,
                         std::vector<Entry>& entries) {
  using namespace record;
  Index index = header.first;
  while (!bytes.empty()) {
    const char* const at = bytes.data();
    if (bytes.size() < kHeaderBytes) return "a record is shorter than its header";
    const auto data_bytes = load_little<std::uint32_t>(at + kDataBytesAt);
    const std::uint64_t whole = kHeaderBytes + data_bytes + padding_of(data_bytes);
    if (whole > bytes.size()) return fmt::format("entry {} is longer than its batch", index);
    const auto type = static_cast<std::uint8_t>(bytes[kTypeAt]);
    const bool possible =
        load_little<std::uint64_t>(at + kIndexAt) == index && is_known(type) &&
        load_little<std::uint64_t>(at + kTermAt) != 0 &&
        all_zeros(bytes.substr(kReservedAt, kHeaderBytes - kReservedAt)) &&
        all_zeros(bytes.substr(kHeaderBytes + data_bytes, padding_of(data_bytes)));
    if (!possible) return fmt::format("the record of entry {} is impossible", index);
    entries.push_back({.term = load_little<std::uint64_t>(at + kTermAt),
                       .type = static_cast<EntryType>(type),
                       .data = Bytes::copy_of(bytes.substr(kHeaderBytes, data_bytes))});
    bytes.remove_prefix(whole);
    ++index;
  }
  if (entries.size() == header.entries) return {};
  return fmt::format("the batch has {} entries and says {}", entries.size(), header.entries);
}

}  // namespace

// --- Files

std::string raft_file_name(std::uint64_t number) {
  return numbered_name(kNamePrefix, number);
}

std::optional<std::uint64_t> raft_file_number(std::string_view name) {
  return number_of_name(kNamePrefix, name);
}

bool is_unfinished_raft_file(std::string_view name) {
  return name.starts_with(kNamePrefix) && name.ends_with(kUnfinished);
}

std::string encode_header(const RaftFileHeader& header) {
  using namespace file_header;
  std::string image(kRaftFileHeaderBytes, '\0');
  char* const at = image.data();
  std::ranges::copy(kMagic, at);
  store_little(at + kVersionAt, kVersion);
  store_little(at + kBytesAt, static_cast<std::uint32_t>(kRaftFileHeaderBytes));
  store_little(at + kClusterAt, header.cluster);
  store_little(at + kNumberAt, header.number);
  store_little(at + kFileBytesAt, header.bytes);
  store_little(at + kChecksumAt, crc32c(0, {at, kChecksumAt}));
  return image;
}

Result<RaftFileHeader> decode_header(std::string_view image, std::uint64_t number) {
  using namespace file_header;
  const auto damaged = [](std::string message) {
    return Error{.message = std::move(message), .kind = Error::Kind::damaged};
  };
  if (!image.starts_with(kMagic)) return damaged("is not a file of a Raft log");
  if (image.size() < kRaftFileHeaderBytes) return damaged("has a damaged header");
  const char* const at = image.data();
  if (crc32c(0, {at, kChecksumAt}) != load_little<std::uint32_t>(at + kChecksumAt)) {
    return damaged("has a damaged header");
  }
  const auto version = load_little<std::uint32_t>(at + kVersionAt);
  if (version != kVersion) {
    return Error{
        fmt::format("has format version {}; this tubed reads version {}", version, kVersion)};
  }
  const RaftFileHeader header = {.cluster = load_little<std::uint64_t>(at + kClusterAt),
                                 .number = load_little<std::uint64_t>(at + kNumberAt),
                                 .bytes = load_little<std::uint64_t>(at + kFileBytesAt)};
  const std::string_view reserved = image.substr(kReservedAt, kChecksumAt - kReservedAt);
  if (load_little<std::uint32_t>(at + kBytesAt) != kRaftFileHeaderBytes || !all_zeros(reserved)) {
    return damaged("has a header with fields that its version does not have");
  }
  if (header.number != number) return damaged(fmt::format("calls itself file {}", header.number));
  return header;
}

// --- Writing a batch

std::uint64_t record_bytes(const Entry& entry) {
  return record::kHeaderBytes + entry.data.size() + padding_of(entry.data.size());
}

void RaftBatch::add_small(std::string_view bytes) {
  if (bytes.empty()) return;
  if (pieces_.empty() || pieces_.back().data) pieces_.push_back({.data = {}, .at = small_.size()});
  pieces_.back().bytes += bytes.size();
  small_ += bytes;
}

void RaftBatch::add(Index index, const Entry& entry) {
  using namespace record;
  char header[kHeaderBytes] = {};
  store_little(header + kIndexAt, index);
  store_little(header + kTermAt, entry.term);
  store_little(header + kDataBytesAt, entry.data.size());
  header[kTypeAt] = static_cast<char>(entry.type);
  add_small({header, sizeof header});
  if (entry.data.size() < kShareBytes) {
    add_small(entry.data.view());
  } else {
    pieces_.push_back({.data = entry.data, .bytes = entry.data.size()});
  }
  add_small(kPadding.substr(0, padding_of(entry.data.size())));
  record_bytes_ += record_bytes(entry);
  ++entries_;
}

void RaftBatch::finish(RaftBatchHeader header, std::uint64_t file) {
  using namespace batch_header;
  const std::uint32_t seed = seed_of(file);
  std::uint32_t records = seed;
  header_.clear();
  for (const std::string_view piece : pieces()) records = crc32c(records, piece);
  header_.assign(kRaftBatchHeaderBytes, '\0');
  char* const at = header_.data();
  std::ranges::copy(kMagic, at + kMagicAt);
  store_little(at + kOffsetAt, header.offset);
  store_little(at + kNumberAt, header.number);
  store_little(at + kFirstAt, header.first);
  store_little(at + kClusterAt, header.cluster);
  store_little(at + kBytesAt, record_bytes_);
  store_little(at + kEntriesAt, entries_);
  store_little(at + kRecordsChecksumAt, records);
  header_[kFlagsAt] = header.reset ? kResetFlag : '\0';
  store_little(at + kChecksumAt, crc32c(seed, std::string_view(header_).substr(kMagicAt)));
}

std::vector<std::string_view> RaftBatch::pieces() const {
  std::vector<std::string_view> pieces;
  pieces.reserve(pieces_.size() + 1);
  if (!header_.empty()) pieces.emplace_back(header_);
  const std::string_view small = small_;
  for (const Piece& piece : pieces_) {
    pieces.push_back(piece.data ? piece.data.view() : small.substr(piece.at, piece.bytes));
  }
  return pieces;
}

void RaftBatch::clear() {
  header_.clear();
  small_.clear();
  pieces_.clear();
  record_bytes_ = 0;
  entries_ = 0;
}

// --- Reading a batch

ParsedBatch parse_batch(std::string_view image, std::uint64_t offset, std::uint64_t file,
                        std::uint64_t cluster) {
  using Kind = ParsedBatch::Kind;
  ParsedBatch parsed;
  if (offset >= image.size() || all_zeros(image.substr(offset))) return parsed;
  const std::uint32_t seed = seed_of(file);
  const auto bytes = header_at(image, offset, seed);
  if (!bytes) {
    parsed.kind = Kind::torn;
    parsed.reason = "a batch should follow, and other bytes do";
    return parsed;
  }
  parsed.header_whole = true;
  parsed.header = decode_batch_header(*bytes);
  const std::uint64_t begin = offset + kRaftBatchHeaderBytes;
  const std::string_view fault =
      fault_of(*bytes, parsed.header, offset, cluster, image.size() - begin);
  if (!fault.empty()) {
    parsed.kind = Kind::bad;
    parsed.reason = fault;
    return parsed;
  }
  const std::string_view records = image.substr(begin, parsed.header.bytes);
  const auto checksum =
      load_little<std::uint32_t>(bytes->data() + batch_header::kRecordsChecksumAt);
  if (crc32c(seed, records) != checksum) {
    parsed.kind = Kind::torn;
    parsed.reason = "the entries of a batch do not match their checksum";
    return parsed;
  }
  parsed.reason = read_records(records, parsed.header, parsed.entries);
  parsed.kind = parsed.reason.empty() ? Kind::whole : Kind::bad;
  return parsed;
}

std::optional<RaftBatchHeader> find_batch(std::string_view image, std::uint64_t offset,
                                          std::uint64_t file, std::uint64_t cluster) {
  const std::uint32_t seed = seed_of(file);
  std::uint64_t at = offset + padding_of(offset);
  for (; at < image.size(); at += kAlignment) {
    const auto bytes = header_at(image, at, seed);
    if (!bytes) continue;
    const RaftBatchHeader header = decode_batch_header(*bytes);
    if (header.offset == at && header.cluster == cluster) return header;
  }
  return {};
}

}  // namespace tubed::cluster
