// The frames of a fetch, as bytes.
#include "cluster/transfer.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cluster/control.h"
#include "cluster/message.h"

namespace tubed::cluster {

namespace {

// A frame of each type.
std::vector<TransferFrame> every_frame() {
  TransferEntries entries{.first = 5, .entries = {}};
  entries.entries.push_back({.term = 2, .type = EntryType::facts, .data = Bytes::copy_of("abc")});
  entries.entries.push_back({.term = 3, .type = EntryType::change, .data = Bytes::copy_of("")});
  return {TransferFile{.bytes = 1'234'567'890'123, .name = "journal.0000000001"},
          TransferBlock{"some bytes"},
          TransferRemoval{"journal.0000000002"},
          TransferEnd{.files = 2, .bytes = 77},
          TransferAlive{},
          TransferPosition{{.index = 9, .term = 3, .chain = 0xfedcba9876543210}},
          TransferLog{.first = 4, .configuration_index = 2, .configuration = "members"},
          entries,
          TransferDone{},
          TransferFailure{"no space"}};
}

}  // namespace

TEST_CASE("each frame of a transfer is read as it was written") {
  std::uint8_t type = kFirstTransferType;
  for (const TransferFrame& frame : every_frame()) {
    const std::string bytes = encode(frame);
    CHECK(static_cast<std::uint8_t>(bytes[kFrameHeaderBytes + 1]) == type++);
    const auto read = decode_transfer(bytes);
    REQUIRE(read.has_value());
    CHECK(read->index() == frame.index());
    CHECK(encode(*read) == bytes);
  }
}

TEST_CASE("the entries of a transfer keep their members") {
  const std::string bytes = encode(every_frame()[7]);
  const auto read = decode_transfer(bytes);
  REQUIRE(read.has_value());
  const auto& piece = std::get<TransferEntries>(*read);
  CHECK(piece.first == 5);
  REQUIRE(piece.entries.size() == 2);
  CHECK(piece.entries[0].term == 2);
  CHECK(piece.entries[0].type == EntryType::facts);
  CHECK(piece.entries[0].data.view() == "abc");
  CHECK(piece.entries[1].type == EntryType::change);
  CHECK(piece.entries[1].data.size() == 0);
}

TEST_CASE("a frame of a transfer that is damaged, cut or of another type is refused") {
  for (const TransferFrame& frame : every_frame()) {
    const std::string bytes = encode(frame);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ 1);
      CHECK_FALSE(decode_transfer(changed).has_value());
      CHECK_FALSE(decode_transfer(std::string_view(bytes).substr(0, i)).has_value());
    }
    CHECK_FALSE(decode_transfer(bytes + "x").has_value());
  }
  CHECK_FALSE(decode_transfer(encode(Hello{})).has_value());
  CHECK_FALSE(decode_transfer(encode(TransferBlock{})).has_value());
}

TEST_CASE("no entry of a transfer has index 0, term 0 or an unknown type") {
  const auto is_read = [](const TransferEntries& entries) {
    return decode_transfer(encode(entries)).has_value();
  };
  const auto entry = [](Term term, std::uint8_t type) {
    return Entry{.term = term, .type = static_cast<EntryType>(type), .data = Bytes::copy_of("x")};
  };
  CHECK(is_read({.first = 1, .entries = {entry(1, 1)}}));
  CHECK_FALSE(is_read({.first = 0, .entries = {entry(1, 1)}}));
  CHECK_FALSE(is_read({.first = 1, .entries = {entry(0, 1)}}));
  CHECK_FALSE(is_read({.first = 1, .entries = {entry(1, 0)}}));
  CHECK_FALSE(is_read({.first = 1, .entries = {entry(1, 4)}}));
}

}  // namespace tubed::cluster
