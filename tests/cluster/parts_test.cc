// Parts of appends: their bytes, their assembly, and what a node does with them.
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/crc32c.h"
#include "cluster/founding.h"
#include "cluster/node.h"
#include "cluster/part.h"
#include "journal/little_endian.h"
#include "tests/journal/test_disk.h"

namespace tubed::cluster {

namespace {

using namespace std::chrono_literals;

Part sample_part() {
  return {.cluster = 0x0807'0605'0403'0201,
          .from = 17,
          .to = 18,
          .sent = Time(5s),
          .term = 9,
          .frame = 3,
          .offset = 4,
          .total = 9,
          .bytes = "abc"};
}

// A follower in a cluster of three, and what it sends.
struct Follower final : NodeHost {
  explicit Follower(Level level = kFeatureLevel) {
    RaftLogOptions log;
    log.file_bytes = 64 << 10;
    log.cluster = 7;
    std::vector<Member> members;
    for (NodeId id = 1; id <= 3; ++id)
      members.push_back({.id = id, .address = "node " + std::to_string(id)});
    REQUIRE(found(disk, log, 1, members, level).ok());
    NodeOptions options;
    options.log = log;
    node = Node::open(disk, *this, options, founding_position(7)).value();
  }

  Time clock() const override { return now; }
  void send(NodeId to, std::string frame) override {
    CHECK(to == 2);
    sent.push_back(*decode(frame));
  }
  void node_changed() override {}
  void fetch_state(NodeId /*from*/) override {}
  void node_failed(const std::string& reason) override { FAIL(reason); }
  void raft_log_full(bool /*full*/, const std::string& /*reason*/) override {}

  // Receives this part of the append, as the leader of the term 2 sends it.
  void receive(std::size_t offset, std::size_t bytes, std::uint64_t frame = 1, Term term = 2) {
    const std::string append = encode(message());
    CHECK(node->receive(2, encode(Part{.cluster = 7,
                                       .from = 2,
                                       .to = 1,
                                       .sent = Time(std::chrono::seconds(++leader_time)),
                                       .term = term,
                                       .frame = frame,
                                       .offset = static_cast<std::uint32_t>(offset),
                                       .total = static_cast<std::uint32_t>(append.size()),
                                       .bytes = std::string_view(append).substr(offset, bytes)})) ==
          "");
  }
  static Message message() {
    Message append;
    append.cluster = 7;
    append.from = 2;
    append.to = 1;
    append.term = 2;
    append.index = append.log_term = append.commit = 1;
    append.entries.push_back({.term = 2, .data = Bytes::copy_of(std::string(1000, 'x'))});
    return append;
  }
  void store() {
    for (int i = 0; i < 3; ++i) {
      node->tick();
      disk.run_all();
    }
  }

  journal::TestDisk disk;
  Time now{1h};
  int leader_time = 0;
  std::vector<Message> sent;
  std::unique_ptr<Node> node;
};

}  // namespace

TEST_CASE("a part has these bytes") {
  const std::string frame = encode(sample_part());
  constexpr char kBytes[] =
      "\1\7"
      "\1\2\3\4\5\6\7\x08"
      "\x11\0\0\0\0\0\0\0"
      "\x12\0\0\0\0\0\0\0"
      "\0\xf2\x05\x2a\1\0\0\0"
      "\x09\0\0\0\0\0\0\0"
      "\3\0\0\0\0\0\0\0"
      "\4\0\0\0"
      "\x09\0\0\0"
      "\3\0\0\0"
      "abc";
  CHECK(frame.substr(kFrameHeaderBytes) == std::string(kBytes, sizeof kBytes - 1));
  CHECK(is_part(frame));
  CHECK_FALSE(decode(frame));
  const auto part = decode_part(frame);
  REQUIRE(part);
  CHECK(encode(*part) == frame);
  CHECK_FALSE(is_part(encode(Message{})));
  CHECK_FALSE(decode_part(encode(Message{})));
}

TEST_CASE("a damaged or impossible part is not read, and bytes after its last member are ignored") {
  const std::string frame = encode(sample_part());
  for (std::size_t i = 0; i < frame.size(); ++i) {
    std::string damaged = frame;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    CHECK_FALSE(decode_part(damaged));
    CHECK_FALSE(decode_part(frame.substr(0, i)));
  }
  for (const auto& [offset, total, bytes] : {std::tuple{9U, 9U, "abc"},
                                             {7U, 9U, "abc"},
                                             {0U, 0U, "abc"},
                                             {4U, 9U, ""},
                                             {4U, 0xffffffffU, "abc"},
                                             {0xffffffffU, 9U, "abc"}}) {
    Part part = sample_part();
    part.offset = offset;
    part.total = total;
    part.bytes = bytes;
    CHECK_FALSE(decode_part(encode(part)));
  }
  std::string later = frame + "more";
  journal::store_little(later.data(), static_cast<std::uint32_t>(later.size() - 4));
  journal::store_little(later.data() + 4, crc32c(0, std::string_view(later).substr(8)));
  const auto part = decode_part(later);
  REQUIRE(part);
  CHECK(part->bytes == "abc");
}

TEST_CASE("parts are assembled in order, and others are dropped") {
  PartAssembly assembly;
  Part part = sample_part();
  const auto take = [&](std::uint32_t offset, std::string_view bytes, std::uint64_t number = 3,
                        Term term = 9) {
    part.offset = offset;
    part.bytes = bytes;
    part.frame = number;
    part.term = term;
    return assembly.take(part);
  };
  CHECK_FALSE(take(4, "efg"));  // without its beginning
  CHECK_FALSE(take(0, "abcd"));
  CHECK_FALSE(take(4, "xyz", 2));     // of another frame
  CHECK_FALSE(take(4, "xyz", 3, 8));  // of an older term
  CHECK_FALSE(take(0, "xyz", 3, 8));
  CHECK_FALSE(take(5, "xyz"));  // a gap
  CHECK_FALSE(take(4, "efg"));
  CHECK_FALSE(take(4, "efg"));
  CHECK(take(7, "hi") == "abcdefghi");
  CHECK_FALSE(take(7, "hi"));
  // A beginning replaces what was incomplete.
  CHECK_FALSE(take(0, "abcd", 4));
  CHECK_FALSE(take(0, "ABCD", 5));
  CHECK_FALSE(take(4, "efghi", 4));
  CHECK(take(4, "EFGHI", 5) == "ABCDEFGHI");
}

TEST_CASE("a follower answers each part with its time, and the last when the entries are stored") {
  Follower follower;
  follower.receive(0, 400);
  follower.now += 250ms;  // later than without a sign of life
  follower.receive(400, 400);
  REQUIRE(follower.sent.size() == 2);
  CHECK(follower.node->leader() == 2);
  CHECK(follower.node->core().deadline() >= follower.now + 300ms);
  for (int i = 0; i < 2; ++i) {
    const Message& answer = follower.sent[static_cast<std::size_t>(i)];
    CHECK(answer.type == MessageType::append_result);
    CHECK(answer.echo == Time(std::chrono::seconds(i + 1)));
    CHECK(answer.rejected == 0);
    CHECK(answer.index <= 1);
  }
  follower.receive(800, 1000);
  CHECK(follower.sent.size() == 2);
  follower.store();
  REQUIRE(follower.sent.size() == 3);
  CHECK(follower.sent.back().echo == Time(3s));
  CHECK(follower.sent.back().index == 2);
  CHECK(follower.node->log().last() == 2);
}

TEST_CASE("parts with a gap are signs of life and no entries") {
  Follower follower;
  follower.receive(0, 400);
  follower.receive(800, 1000);
  follower.receive(400, 400, 2);
  follower.store();
  CHECK(follower.sent.size() == 3);
  CHECK(follower.sent.back().echo == Time(3s));
  CHECK(follower.node->log().last() == 1);
}

TEST_CASE("a part of an older term is not answered") {
  Follower follower;
  follower.receive(0, 400, 1, 5);
  REQUIRE(follower.sent.size() == 1);
  follower.receive(400, 400, 1, 4);
  CHECK(follower.sent.size() == 1);
  CHECK(follower.node->term() == 5);
}

TEST_CASE("a whole frame that contradicts its parts is dropped") {
  Follower follower;
  follower.receive(0, 400, 1, 3);
  follower.receive(400, 2000, 1, 3);  // its append is of the term 2
  follower.store();
  CHECK(follower.node->log().last() == 1);
}

TEST_CASE("a frame that no node sends is refused before the core sees it") {
  Follower follower;
  Node& node = *follower.node;
  const auto message = [](MessageType type) {
    Message usual;
    usual.cluster = 7;
    usual.from = 2;
    usual.to = 1;
    usual.type = type;
    usual.term = 2;
    usual.index = usual.log_term = 1;
    return usual;
  };
  const auto refused = [&](const Message& forged) {
    const Term term = node.term();
    const std::string_view fault = node.receive(2, encode(forged));
    CHECK(follower.sent.empty());
    CHECK(node.term() == term);
    CHECK(node.log().last() == 1);
    CHECK(node.committed() <= 1);
    return fault;
  };
  const std::string_view beyond = "a term or an index is beyond reason";
  for (const auto type : {MessageType::append, MessageType::append_result, MessageType::vote,
                          MessageType::vote_result, MessageType::timeout_now}) {
    for (const std::uint64_t most : {kMostPosition + 1, UINT64_MAX}) {
      for (auto member : {&Message::term, &Message::index, &Message::log_term, &Message::commit,
                          &Message::rejected}) {
        Message forged = message(type);
        forged.*member = most;
        CHECK(refused(forged) == beyond);
      }
    }
    Message forged = message(type);
    forged.term = 0;
    CHECK(refused(forged) == "it has no term");
    forged = message(type);
    forged.log_term = 3;
    CHECK(refused(forged) == "an entry has a later term than the message");
    forged = message(type);
    forged.from = 3;
    CHECK(refused(forged) == "it names another sender than its connection");
    forged = message(type);
    forged.from = 1;
    CHECK(node.receive(1, encode(forged)) == "it has no sender");
    forged.from = 0;
    CHECK(node.receive(0, encode(forged)) == "it has no sender");
  }
  const auto with_entries = [&](MessageType type, std::initializer_list<Term> terms) {
    Message forged = message(type);
    for (const Term term : terms) forged.entries.push_back({.term = term, .data = {}});
    return refused(forged);
  };
  CHECK(with_entries(MessageType::vote, {1}) == "only an append has entries");
  CHECK(with_entries(MessageType::append, {3}) == "the terms of its entries do not fit");
  CHECK(with_entries(MessageType::append, {0}) == "the terms of its entries do not fit");
  CHECK(with_entries(MessageType::append, {2, 1}) == "the terms of its entries do not fit");
  Message forged = message(MessageType::append);
  forged.log_term = 0;
  CHECK(refused(forged) == "an index and its term do not fit");
  // A change of the members that cannot be read.
  forged = message(MessageType::append);
  forged.entries.push_back(
      {.term = 2, .type = EntryType::change, .data = Bytes::copy_of("nonsense")});
  CHECK(refused(forged) == "no node sends such a message");
  const std::string_view damaged = "it is damaged, or of a type that this version does not know";
  for (const std::uint8_t type : {std::uint8_t{0}, std::uint8_t{8}, std::uint8_t{255}})
    CHECK(refused(message(static_cast<MessageType>(type))) == damaged);
  CHECK(node.receive(2, encode(message(MessageType::vote)).substr(0, 50)) == damaged);
  Part part;
  part.cluster = 7;
  part.from = 2;
  part.to = 1;
  part.term = kMostPosition + 1;
  part.total = 9;
  part.bytes = "x";
  CHECK(node.receive(2, encode(part)) == "no node sends such a message");
  part.term = 2;
  CHECK(node.receive(3, encode(part)) == "it names another sender than its connection");
  part.to = 3;
  CHECK(node.receive(2, encode(part)) == "it is for another node or cluster");
  CHECK(follower.sent.empty());
  // The usual messages.
  CHECK(node.receive(2, encode(message(MessageType::append))) == "");
  CHECK(follower.sent.size() == 1);
}

}  // namespace tubed::cluster
