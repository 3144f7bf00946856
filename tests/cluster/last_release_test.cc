// Frames between this version and the last release (last_release.h), byte for byte in both
// directions.
#include "tests/cluster/last_release.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "cluster/control.h"
#include "cluster/entry.h"
#include "cluster/message.h"
#include "cluster/node_state.h"
#include "cluster/transfer.h"
#include "tests/journal/test_disk.h"

namespace tubed::cluster {

namespace {

using namespace std::chrono_literals;

std::string in_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char byte : bytes) {
    hex += kDigits[static_cast<unsigned char>(byte) >> 4U];
    hex += kDigits[static_cast<unsigned char>(byte) & 15U];
  }
  return hex;
}

std::string from_hex(std::string_view hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  return bytes;
}

Message message_of(MessageType type) {
  Message message{.cluster = 0x0807'0605'0403'0201,
                  .from = 17,
                  .to = 18,
                  .sent = Time(5s),
                  .echo = Time(4s),
                  .time = Time(3h),
                  .type = type,
                  .term = 9,
                  .index = 10,
                  .log_term = 8,
                  .commit = 6,
                  .rejected = 3,
                  .granted = true,
                  .pre_vote = true,
                  .disrupt_leader = true,
                  .full = true,
                  .entries = {}};
  if (type != MessageType::append) return message;
  message.entries.push_back({.term = 9, .type = EntryType::facts, .data = Bytes::copy_of("facts")});
  message.entries.push_back({.term = 9, .type = EntryType::barrier, .data = Bytes::copy_of("")});
  message.entries.push_back({.term = 9, .type = EntryType::change, .data = Bytes::copy_of("x")});
  return message;
}

Hello hello_of(Purpose purpose) {
  return {.purpose = purpose,
          .level = 1,
          .cluster = 0x0807'0605'0403'0201,
          .from = 17,
          .to = 18,
          .address = "a@10.0.0.1:11302",
          .configuration_index = 9,
          .name = "b",
          .invites = true};
}

Welcome welcome_of(WelcomeStatus status) {
  return {.status = status, .level = 1, .configuration_index = 9, .name = "b"};
}

Bytes entry_of_facts() {
  EntryWriter writer;
  writer.add(Removed{.id = 4});
  return writer.finish({.level = 1, .time = Time(3h), .chain = 99, .leader = 17});
}

std::string stored_state() {
  journal::TestDisk disk;
  const NodeState state{.cluster = 0x0807'0605'0403'0201,
                        .node = 17,
                        .term = 9,
                        .voted_for = 18,
                        .configuration = "members",
                        .configuration_index = 5};
  REQUIRE(store_node_state(disk, state).ok());
  return disk.contents("state.0000000001");
}

// Returns the bytes that this version writes while the cluster uses level 1.
std::vector<std::pair<std::string, std::string>> written_at_level_1() {
  TransferEntries entries{.first = 5, .entries = {}};
  entries.entries.push_back({.term = 2, .type = EntryType::facts, .data = Bytes::copy_of("abc")});
  return {{"append", encode(message_of(MessageType::append))},
          {"append_result", encode(message_of(MessageType::append_result))},
          {"vote", encode(message_of(MessageType::vote))},
          {"vote_result", encode(message_of(MessageType::vote_result))},
          {"fetch", encode(message_of(MessageType::fetch))},
          {"timeout_now", encode(message_of(MessageType::timeout_now))},
          {"hello", encode(hello_of(Purpose::frames))},
          {"hello_fetch", encode(hello_of(Purpose::fetch))},
          {"hello_request", encode(hello_of(Purpose::request))},
          {"welcome", encode(welcome_of(WelcomeStatus::ok))},
          {"welcome_busy", encode(welcome_of(WelcomeStatus::busy))},
          {"request", encode(Request{.path = "/cluster/add", .body = "{}"})},
          {"response", encode(Response{.status = 404, .body = "{}"})},
          {"transfer_file", encode(TransferFile{.bytes = 77, .name = "journal.0000000001"})},
          {"transfer_block", encode(TransferBlock{"some bytes"})},
          {"transfer_removal", encode(TransferRemoval{"journal.0000000002"})},
          {"transfer_end", encode(TransferEnd{.files = 2, .bytes = 77})},
          {"transfer_alive", encode(TransferAlive{})},
          {"transfer_position", encode(TransferPosition{{.index = 9, .term = 3, .chain = 5}})},
          {"transfer_log",
           encode(TransferLog{.first = 4, .configuration_index = 2, .configuration = "members"})},
          {"transfer_entries", encode(entries)},
          {"transfer_done", encode(TransferDone{})},
          {"transfer_failure", encode(TransferFailure{"no space"})},
          {"entry", std::string(entry_of_facts().view())},
          {"node_state", stored_state()}};
}

std::string frame_of_last_release(std::string_view name) {
  for (const GoldenBytes& golden : kLastRelease) {
    if (golden.name == name) return from_hex(golden.hex);
  }
  FAIL("no bytes of " << name);
  return {};
}

}  // namespace

TEST_CASE("this version writes the bytes of the last release while the cluster uses its level") {
  const auto written = written_at_level_1();
  CHECK(written.size() == std::size(kLastRelease));
  for (const auto& frame : written) {
    CAPTURE(frame.first);
    CHECK(in_hex(frame.second) == in_hex(frame_of_last_release(frame.first)));
  }
}

TEST_CASE("this version reads every frame of the last release") {
  for (int type = 1; type <= 6; ++type) {
    const char* const names[] = {"append",      "append_result", "vote",
                                 "vote_result", "fetch",         "timeout_now"};
    const std::string frame = frame_of_last_release(names[type - 1]);
    const auto read = decode(frame);
    REQUIRE(read);
    CHECK(read->type == static_cast<MessageType>(type));
    CHECK(read->entries.size() == (type == 1 ? 3 : 0));
    CHECK(encode(*read) == frame);
  }
  CHECK(decode_hello(frame_of_last_release("hello")) == hello_of(Purpose::frames));
  CHECK(decode_hello(frame_of_last_release("hello_fetch")) == hello_of(Purpose::fetch));
  CHECK(decode_hello(frame_of_last_release("hello_request")) == hello_of(Purpose::request));
  CHECK(decode_welcome(frame_of_last_release("welcome")) == welcome_of(WelcomeStatus::ok));
  CHECK(decode_welcome(frame_of_last_release("welcome_busy")) == welcome_of(WelcomeStatus::busy));
  CHECK(decode_request(frame_of_last_release("request"))->path == "/cluster/add");
  CHECK(decode_response(frame_of_last_release("response"))->status == 404);
  for (const GoldenBytes& golden : kLastRelease) {
    if (!golden.name.starts_with("transfer_")) continue;
    CAPTURE(golden.name);
    const std::string frame = from_hex(golden.hex);
    const auto read = decode_transfer(frame);
    REQUIRE(read);
    CHECK(encode(*read) == frame);
  }
}

TEST_CASE("this version reads an entry and the state of a node of the last release") {
  const auto header = read_entry_header(frame_of_last_release("entry"));
  REQUIRE(header);
  CHECK(header->level == 1);
  CHECK(header->facts == 1);
  CHECK(header->chain == 99);
  journal::TestDisk disk;
  disk.place("state.0000000001", frame_of_last_release("node_state"));
  const auto state = load_node_state(disk);
  REQUIRE(state);
  REQUIRE(*state);
  CHECK((*state)->configuration == "members");
  CHECK((*state)->voted_for == 18);
}

}  // namespace tubed::cluster
