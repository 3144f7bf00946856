// Feature levels: the frames and files of another version, and clusters of several versions.
#include <string>

#include <doctest/doctest.h>

#include "base/crc32c.h"
#include "cluster/control.h"
#include "cluster/entry.h"
#include "cluster/levels.h"
#include "cluster/message.h"
#include "cluster/node_state.h"
#include "cluster/transfer.h"
#include "journal/little_endian.h"
#include "tests/cluster/world.h"
#include "tests/journal/test_disk.h"

namespace tubed::cluster_test {

namespace {

using namespace std::chrono_literals;
using cluster::kFrameHeaderBytes;
using cluster::Level;

// Returns a frame with this payload after its length and its CRC.
std::string frame_of(std::string_view payload) {
  std::string frame(kFrameHeaderBytes, '\0');
  frame += payload;
  journal::store_little(frame.data(), static_cast<std::uint32_t>(payload.size() + 4));
  journal::store_little(frame.data() + 4, crc32c(0, payload));
  return frame;
}

// Returns the frame as a later version sends it, with more at its end.
std::string with_more(const std::string& frame, std::string_view more) {
  return frame_of(frame.substr(kFrameHeaderBytes) + std::string(more));
}

cluster::Message append_of(cluster::MessageType type) {
  cluster::Message message;
  message.cluster = 7;
  message.from = 1;
  message.to = 2;
  message.type = type;
  message.term = 3;
  if (type == cluster::MessageType::append)
    message.entries.push_back({.term = 3, .data = Bytes::copy_of("abc")});
  return message;
}

// A calm life in which machine `n` begins with levels[n].
Nature calm(std::vector<Level> levels) {
  Nature nature;
  nature.length = 10s;
  nature.levels = std::move(levels);
  nature.crashes = nature.power_losses = nature.partitions = nature.one_way_cuts = 0;
  nature.pauses = nature.resets = nature.clock_steps = nature.stalls = 0;
  nature.transfers = nature.confusions = nature.member_changes = 0;
  return nature;
}

LifeCounts lived(const Nature& nature) {
  World world(nature);
  if (world.live()) FAIL(world.story());
  return world.counts();
}

}  // namespace

TEST_CASE("bytes after the last field of a hello, a welcome or a message are ignored") {
  using cluster::decode;
  using cluster::encode;
  const cluster::Hello hello{
      .level = 3, .cluster = 7, .from = 1, .to = 2, .address = "a@h:1", .name = "b"};
  const cluster::Welcome welcome{.level = 3, .name = "b"};
  for (const std::string_view more : {"x", "a field of a later version", "\0\0\0\0\0\0\0\0\1"}) {
    CHECK(cluster::decode_hello(with_more(encode(hello), more)) == hello);
    CHECK(cluster::decode_welcome(with_more(encode(welcome), more)) == welcome);
    for (int type = 1; type <= 6; ++type) {
      const std::string frame = encode(append_of(static_cast<cluster::MessageType>(type)));
      const auto read = decode(with_more(frame, more));
      REQUIRE(read);
      CHECK(encode(*read) == frame);
    }
  }
  // More than the CRC covers is damage.
  CHECK_FALSE(decode(encode(append_of(cluster::MessageType::append)) + "x"));
}

TEST_CASE("a frame of a later protocol version is recognised if it is intact") {
  const std::string frame = cluster::encode(append_of(cluster::MessageType::append));
  CHECK_FALSE(cluster::later_version(frame));
  const std::string later = frame_of("\2\1what a later version sends");
  CHECK(cluster::later_version(later) == 2);
  CHECK_FALSE(cluster::decode(later));
  CHECK_FALSE(cluster::decode_hello(later));
  CHECK(cluster::later_version(frame_of("\xff")) == 255);
  CHECK_FALSE(cluster::later_version(frame_of("")));
  std::string damaged = later;
  damaged.back() = '?';
  CHECK_FALSE(cluster::later_version(damaged));
  CHECK(cluster::later_version_text(2).find("version 2") != std::string::npos);
}

TEST_CASE("an entry of a higher level is not read") {
  cluster::EntryWriter writer;
  const Bytes entry = writer.finish({.level = 3});
  CHECK_FALSE(cluster::read_entry_header(entry.view(), 2));
  CHECK(cluster::read_entry_header(entry.view(), 3)->level == 3);
  CHECK(cluster::level_of_entry(entry.view()) == 3);
  CHECK(cluster::level_of_entry("") == 0);
}

TEST_CASE("the state of a node keeps the level, in a file that an earlier version refuses") {
  journal::TestDisk disk;
  cluster::NodeState state{.cluster = 7, .node = 1, .configuration = "members", .level = 2};
  REQUIRE(cluster::store_node_state(disk, state).ok());
  CHECK(*cluster::load_node_state(disk).value() == state);
  CHECK(disk.contents("state.0000000001")[8] == 2);
  state.level = cluster::kFirstLevel;
  REQUIRE(cluster::store_node_state(disk, state).ok());
  CHECK(disk.contents("state.0000000002")[8] == 1);
}

TEST_CASE("a transfer carries the level if it is not the first") {
  const cluster::TransferLog log{.first = 4, .configuration_index = 2, .configuration = "members"};
  cluster::TransferLog later = log;
  later.level = 2;
  const auto read = cluster::decode_transfer(cluster::encode(later));
  REQUIRE(read);
  CHECK(std::get<cluster::TransferLog>(*read).level == 2);
  CHECK(cluster::encode(later).size() == cluster::encode(log).size() + sizeof(Level));
}

TEST_CASE("each level says what it allows") {
  for (Level level = cluster::kFirstLevel; level <= cluster::kFeatureLevel; ++level)
    CHECK_FALSE(cluster::what_level_allows(level).empty());
  CHECK_FALSE(cluster::what_level_allows(cluster::kFeatureLevel + 1).empty());
}

// The World checks at each rise that every machine knows the level, and at the end of a life that
// the level in use is the highest that all know.
TEST_CASE("a cluster with a member of a lower and one of a higher level uses the lowest") {
  CHECK(lived(calm({1, 2, 3})).rises == 0);
  CHECK(lived(calm({3, 2, 2})).rises == 3);
  CHECK(lived(calm({2, 3, 1})).rises == 0);
}

TEST_CASE("the level rises when the last member has the higher level") {
  Nature nature = calm({1, 2, 3});
  nature.upgrades = {{.at = Time(2s), .node = 0, .level = 2},
                     {.at = Time(4s), .node = 1, .level = 3},
                     {.at = Time(6s), .node = 0, .level = 3}};
  CHECK(lived(nature).rises == 6);
  nature.upgrades.pop_back();
  CHECK(lived(nature).rises == 3);
}

TEST_CASE("a cluster that begins with the level of its founders does not rise") {
  Nature nature = calm({});
  nature.machine.founding_level = cluster::kFeatureLevel;
  CHECK(lived(nature).rises == 0);
}

}  // namespace tubed::cluster_test
