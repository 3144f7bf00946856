#include "cluster/raft_file.h"

#include <algorithm>

#include "base/crc32c.h"
#include "tests/cluster/raft_log_rig.h"

namespace tubed::cluster {

namespace {

using Kind = ParsedBatch::Kind;

constexpr std::uint64_t kFile = 7;

std::string joined(const RaftBatch& batch) {
  std::string bytes;
  for (const std::string_view piece : batch.pieces()) bytes += piece;
  return bytes;
}

// Returns the image of a file with one batch of these entries and `rest` zeros.
std::string image_of(const std::vector<Entry>& entries, std::size_t rest = 128) {
  RaftBatch batch;
  Index index = 5;
  for (const Entry& entry : entries) batch.add(index++, entry);
  batch.finish({.offset = 64, .number = 3, .first = 5, .cluster = kTestCluster}, kFile);
  std::string image =
      encode_header({.cluster = kTestCluster, .number = kFile, .bytes = 64 + batch.bytes() + rest});
  CHECK(batch.bytes() == joined(batch).size());
  return image + joined(batch) + std::string(rest, '\0');
}

ParsedBatch parsed(const std::string& image, std::uint64_t cluster = kTestCluster) {
  return parse_batch(image, 64, kFile, cluster);
}

}  // namespace

TEST_CASE("a file's name has its number, and each number has exactly one name") {
  CHECK(raft_file_name(1) == "raft.0000000001");
  CHECK(raft_file_number("raft.0000000001") == 1);
  CHECK(raft_file_number(raft_file_name(UINT64_MAX)) == UINT64_MAX);
  for (const char* other : {"raft.1", "raft.00000000001", "raft.0000000000", "raft.0000000001.new",
                            "raft.", "raft.-000000001", "journal.0000000001", ""}) {
    CHECK(!raft_file_number(other));
  }
}

TEST_CASE("a file has exactly these bytes") {
  const std::string image =
      image_of({entry_of(0x22, "abc"), entry_of(0x23, "", EntryType::change)});
  const auto expect_bytes = [&](std::size_t at, std::string_view bytes) {
    CHECK(std::string_view(image).substr(at, bytes.size()) == bytes);
  };
  using namespace std::string_view_literals;
  expect_bytes(0, "tubedrft\1\0\0\0\x40\0\0\0"sv);
  expect_bytes(16, "\xf0\xde\xbc\x9a\x78\x56\x34\x12\7\0\0\0\0\0\0\0"sv);
  expect_bytes(32, "\x38\1\0\0\0\0\0\0"sv);
  expect_bytes(40, std::string(20, '\0'));
  expect_bytes(68, "rbat\x40\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\5\0\0\0\0\0\0\0"sv);
  expect_bytes(96, "\xf0\xde\xbc\x9a\x78\x56\x34\x12\x38\0\0\0\0\0\0\0\2\0\0\0"sv);
  expect_bytes(120, "\0\0\0\0\0\0\0\0"sv);
  expect_bytes(128, "\5\0\0\0\0\0\0\0\x22\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0abc\0\0\0\0\0"sv);
  expect_bytes(160, "\6\0\0\0\0\0\0\0\x23\0\0\0\0\0\0\0\0\0\0\0\3\0\0\0"sv);
  const std::uint32_t seed = crc32c(0, "raft\7\0\0\0\0\0\0\0"sv);
  const auto number_at = [&](std::size_t at) {
    std::uint32_t number = 0;
    for (std::size_t i = 4; i-- > 0;)
      number = number << 8U | static_cast<std::uint8_t>(image[at + i]);
    return number;
  };
  const std::string_view bytes = image;
  CHECK(number_at(60) == crc32c(0, bytes.substr(0, 60)));
  CHECK(number_at(64) == crc32c(seed, bytes.substr(68, 60)));
  CHECK(number_at(116) == crc32c(seed, bytes.substr(128, 56)));
}

TEST_CASE("a batch is read as it was written, whatever the length of its data") {
  std::vector<Entry> entries;
  for (const std::size_t bytes : {0U, 1U, 7U, 8U, 9U, 4095U, 4096U, 4097U, 70'000U, 3U, 5000U}) {
    entries.push_back(entry_of(entries.size() + 1, std::string(bytes, 'd'), EntryType::barrier));
  }
  std::uint64_t bytes = kRaftBatchHeaderBytes;
  for (const Entry& entry : entries) bytes += record_bytes(entry);
  const std::string image = image_of(entries);
  const ParsedBatch batch = parsed(image);
  REQUIRE(batch.kind == Kind::whole);
  CHECK(batch.end_offset() == 64 + bytes);
  CHECK(batch.header.number == 3);
  CHECK(batch.header.first == 5);
  REQUIRE(batch.entries.size() == entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    CHECK(batch.entries[i].term == entries[i].term);
    CHECK(batch.entries[i].type == entries[i].type);
    CHECK(batch.entries[i].data.view() == entries[i].data.view());
  }
  CHECK(parse_batch(image, batch.end_offset(), kFile, kTestCluster).kind == Kind::end);
  CHECK(parse_batch(image, image.size(), kFile, kTestCluster).kind == Kind::end);
}

TEST_CASE("a batch with an altered byte or without its end is not accepted") {
  const std::string image =
      image_of({entry_of(2, "some data"), entry_of(3, std::string(40, '\0'))});
  const std::uint64_t end = parsed(image).end_offset();
  for (std::size_t at = 64; at < end; ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string altered = image;
      altered[at] = static_cast<char>(static_cast<std::uint8_t>(altered[at]) ^ (1U << bit));
      CHECK(parsed(altered).kind == Kind::torn);
    }
    CHECK(parsed(image.substr(0, at)).kind != Kind::whole);
  }
}

TEST_CASE("a batch of another file, place or cluster is not accepted") {
  const std::string image = image_of({entry_of(2, "data")});
  CHECK(parse_batch(image, 64, kFile + 1, kTestCluster).kind == Kind::torn);
  CHECK(parsed(image, 1).kind == Kind::bad);
  const std::string moved = image.substr(0, 64) + std::string(8, '\0') + image.substr(64);
  CHECK(parse_batch(moved, 72, kFile, kTestCluster).kind == Kind::bad);
  CHECK(!find_batch(moved, 64, kFile, kTestCluster));
  CHECK(find_batch(image, 0, kFile, kTestCluster)->number == 3);
  CHECK(!find_batch(image, 65, kFile, kTestCluster));
}

TEST_CASE("a header is refused with the reason") {
  const std::string header = encode_header({.cluster = 1, .number = 2, .bytes = 64});
  CHECK(decode_header(header, 2).ok());
  CHECK(decode_header(header, 3).error().message == "calls itself file 2");
  CHECK(decode_header("x", 2).error().message == "is not a file of a Raft log");
  CHECK(decode_header(header.substr(0, 63), 2).error().message == "has a damaged header");
  std::string altered = header;
  altered[30] = 1;
  CHECK(decode_header(altered, 2).error().kind == Error::Kind::damaged);
  std::string newer = header;
  newer[8] = 2;
  const std::uint32_t checksum = crc32c(0, std::string_view(newer).substr(0, 60));
  for (std::size_t i = 0; i < 4; ++i) newer[60 + i] = static_cast<char>(checksum >> 8 * i);
  CHECK(decode_header(newer, 2).error().kind == Error::Kind::other);
  CHECK(decode_header(newer, 2).error().message ==
        "has format version 2; this tubed reads version 1");
}

}  // namespace tubed::cluster
