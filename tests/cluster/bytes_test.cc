// Entries and messages as bytes, and small parts of a node: the lease and the clock.
#include <array>
#include <string>

#include <doctest/doctest.h>

#include "base/crc32c.h"
#include "cluster/cluster_clock.h"
#include "cluster/control.h"
#include "cluster/entry.h"
#include "cluster/lease.h"
#include "cluster/levels.h"
#include "cluster/member.h"
#include "cluster/membership.h"
#include "cluster/message.h"
#include "journal/little_endian.h"
#include "tests/engine/recording.h"

namespace tubed::cluster {

namespace {

using namespace std::chrono_literals;

Message sample_message() {
  return {.cluster = 7,
          .from = 1,
          .to = 2,
          .sent = Time(5s),
          .echo = Time(4s),
          .time = Time(3h),
          .type = MessageType::append,
          .term = 9,
          .index = 10,
          .log_term = 8,
          .commit = 6,
          .rejected = 3,
          .granted = true,
          .pre_vote = false,
          .disrupt_leader = true,
          .entries = {{.term = 9, .type = EntryType::facts, .data = Bytes::copy_of("abc")},
                      {.term = 9, .type = EntryType::barrier, .data = Bytes::copy_of("")},
                      {.term = 9, .type = EntryType::change, .data = Bytes::copy_of("x")}}};
}

Hello sample_hello() {
  return {.purpose = Purpose::fetch,
          .level = 2,
          .cluster = 7,
          .from = 1,
          .to = 2,
          .address = "a@127.0.0.1:1",
          .configuration_index = 9,
          .name = "b",
          .invites = true};
}

// Checks that `decode` accepts `frame`, and rejects it when shorter, longer or with a flipped bit.
template <class Decode>
void check_every_damage(const std::string& frame, Decode decode_it) {
  CHECK(frame_bytes(frame) == frame.size());
  CHECK(decode_it(frame));
  for (std::size_t i = 0; i < frame.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = frame;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      CHECK_FALSE(decode_it(damaged));
    }
  }
  for (std::size_t bytes = 0; bytes < frame.size(); ++bytes)
    CHECK_FALSE(decode_it(frame.substr(0, bytes)));
  CHECK_FALSE(decode_it(frame + "x"));
}

// Returns the frame with the byte at `at` replaced and its CRC corrected.
std::string with_byte(std::string frame, std::size_t at, char byte) {
  frame[at] = byte;
  const std::uint32_t crc = crc32c(0, std::string_view(frame).substr(kFrameHeaderBytes));
  journal::store_little(frame.data() + 4, crc);
  return frame;
}

}  // namespace

TEST_CASE("a message is decoded as it was encoded") {
  const Message message = sample_message();
  const std::string frame = encode(message);
  CHECK(frame_bytes(frame) == frame.size());
  const auto read = decode(frame);
  REQUIRE(read);
  CHECK(encode(*read) == frame);
  CHECK(read->entries.size() == 3);
  CHECK(read->entries[0].data.view() == "abc");
  CHECK(read->sent == Time(5s));
  CHECK(read->granted);
  CHECK_FALSE(read->pre_vote);
}

TEST_CASE("a frame with any bit flipped, or of any other length, is not decoded") {
  check_every_damage(encode(sample_message()), decode);
}

TEST_CASE("control frames are decoded as they were encoded, unless they are damaged") {
  const std::string hello = encode(sample_hello());
  CHECK(decode_hello(hello) == sample_hello());
  check_every_damage(hello, decode_hello);
  const Welcome welcome{
      .status = WelcomeStatus::busy, .level = 3, .configuration_index = 8, .name = "b"};
  CHECK(decode_welcome(encode(welcome)) == welcome);
  check_every_damage(encode(welcome), decode_welcome);
  const Request request{.path = "/cluster/add", .body = "{}"};
  CHECK(decode_request(encode(request)) == request);
  check_every_damage(encode(request), decode_request);
  const Response response{.status = 404, .body = "{\"error\":\"x\"}"};
  CHECK(decode_response(encode(response)) == response);
  check_every_damage(encode(response), decode_response);
  Hello with_nonce = sample_hello();
  with_nonce.nonce = std::string(kNonceBytes, 'n');
  CHECK(decode_hello(encode(with_nonce)) == with_nonce);
  CHECK(encode(with_nonce).size() == hello.size() + 1 + kNonceBytes);
  check_every_damage(encode(with_nonce), decode_hello);
  for (Hello with_settings : {sample_hello(), with_nonce}) {
    const std::size_t bytes = hello.size() + 1 + with_settings.nonce.size();
    with_settings.settings = {{"limits.job_bytes", 0x0102'0304'0506'0708}, {"policy", 9}};
    const std::string frame = encode(with_settings);
    CHECK(frame.size() == bytes + 4 + (4 + 16 + 8) + (4 + 6 + 8));
    CHECK(decode_hello(frame) == with_settings);
    check_every_damage(frame, decode_hello);
    with_settings.settings.assign(kMostSettingDigests, {std::string(kMostSettingName, 'n'), 1});
    CHECK(decode_hello(encode(with_settings)) == with_settings);
    with_settings.settings.front().name += 'n';
    CHECK_FALSE(decode_hello(encode(with_settings)));
    with_settings.settings.assign(kMostSettingDigests + 1, {"n", 1});
    CHECK_FALSE(decode_hello(encode(with_settings)));
  }
  with_nonce.nonce.pop_back();
  CHECK_FALSE(decode_hello(encode(with_nonce)));
  const Challenge challenge{std::string(kNonceBytes, 'c')};
  CHECK(decode_challenge(encode(challenge)) == challenge);
  check_every_damage(encode(challenge), decode_challenge);
  CHECK_FALSE(decode_challenge(encode(Challenge{"short"})));
  const Proof proof{std::string(kProofBytes, 'p')};
  CHECK(decode_proof(encode(proof)) == proof);
  check_every_damage(encode(proof), decode_proof);
  CHECK_FALSE(decode_proof(encode(Proof{"short"})));
  // Texts may be empty.
  CHECK(decode_request(encode(Request{})) == Request{});
}

TEST_CASE("a control frame is not mistaken for a frame of another type") {
  const std::array<std::string, 7> frames = {encode(sample_hello()),
                                             encode(Welcome{}),
                                             encode(Request{}),
                                             encode(Response{}),
                                             encode(sample_message()),
                                             encode(Challenge{std::string(kNonceBytes, 'c')}),
                                             encode(Proof{std::string(kProofBytes, 'p')})};
  for (std::size_t i = 0; i < frames.size(); ++i) {
    CHECK(decode_hello(frames[i]).has_value() == (i == 0));
    CHECK(decode_welcome(frames[i]).has_value() == (i == 1));
    CHECK(decode_request(frames[i]).has_value() == (i == 2));
    CHECK(decode_response(frames[i]).has_value() == (i == 3));
    CHECK(decode(frames[i]).has_value() == (i == 4));
    CHECK(decode_challenge(frames[i]).has_value() == (i == 5));
    CHECK(decode_proof(frames[i]).has_value() == (i == 6));
  }
}

TEST_CASE("control frames of another version, with unknown values or long texts are not decoded") {
  constexpr std::size_t kVersion = kFrameHeaderBytes;
  constexpr std::size_t kValue = kFrameHeaderBytes + 4;
  const std::string hello = encode(sample_hello());
  CHECK(with_byte(hello, kVersion, 1) == hello);
  CHECK_FALSE(decode_hello(with_byte(hello, kVersion, 2)));
  CHECK(decode_hello(with_byte(hello, kValue, 3))->purpose == Purpose::request);
  CHECK_FALSE(decode_hello(with_byte(hello, kValue, 0)));
  CHECK_FALSE(decode_hello(with_byte(hello, kValue, 4)));
  CHECK_FALSE(decode_hello(with_byte(hello, kValue + 3, 1)));
  const std::string welcome = encode(Welcome{});
  CHECK_FALSE(decode_welcome(with_byte(welcome, kValue, 0)));
  CHECK_FALSE(decode_welcome(with_byte(welcome, kValue, 9)));
  const std::string longest(kMostControlText, 'x');
  CHECK(decode_request(encode(Request{.path = longest, .body = longest})));
  CHECK_FALSE(decode_request(encode(Request{.path = longest + "x", .body = ""})));
  CHECK_FALSE(decode_request(encode(Request{.path = "", .body = longest + "x"})));
  CHECK_FALSE(decode_response(encode(Response{.body = longest + "x"})));
  Hello far = sample_hello();
  far.address = longest + "x";
  CHECK_FALSE(decode_hello(encode(far)));
  far = sample_hello();
  far.name = longest + "x";
  CHECK_FALSE(decode_hello(encode(far)));
  CHECK_FALSE(decode_welcome(encode(Welcome{.name = longest + "x"})));
}

TEST_CASE("the address of a member is a name, a host and a port") {
  const auto read = parse_member_address("a-1_b.C@10.0.0.2:11302");
  REQUIRE(read);
  CHECK(*read == MemberAddress{.name = "a-1_b.C", .host = "10.0.0.2", .port = 11302});
  CHECK(read->endpoint() == "10.0.0.2:11302");
  CHECK(to_string(*read) == "a-1_b.C@10.0.0.2:11302");
  const auto v6 = parse_member_address("b@[2001:DB8:0:0::0001]:1");
  REQUIRE(v6);
  CHECK(v6->host == "2001:db8::1");
  CHECK(v6->endpoint() == "[2001:db8::1]:1");
  CHECK(to_string(*v6) == "b@[2001:db8::1]:1");
  CHECK(parse_member_address(to_string(*v6)) == v6);
  CHECK_FALSE(read->has_host_name());
  CHECK_FALSE(v6->has_host_name());
  const auto named = parse_member_address("b@B-1.Tubed.:11302");
  REQUIRE(named);
  CHECK(*named == MemberAddress{.name = "b", .host = "b-1.tubed", .port = 11302});
  CHECK(named->has_host_name());
  CHECK(named->endpoint() == "b-1.tubed:11302");
  CHECK(to_string(*named) == "b@b-1.tubed:11302");
  CHECK(parse_member_address("a@localhost:1")->host == "localhost");
  CHECK(name_in("a@b:1") == "a");
  CHECK(name_in("a") == "a");
  for (const char* text : {"",
                           "a",
                           "@",
                           "a@",
                           "a@10.0.0.2",
                           "a@10.0.0.2:",
                           "a@10.0.0.2:0",
                           "a@10.0.0.2:65536",
                           "a@10.0.0.2:+1",
                           "a@10.0.0.2: 1",
                           "a@10.0.0.2:1 ",
                           "@10.0.0.2:1",
                           "10.0.0.2:1",
                           "a b@10.0.0.2:1",
                           "a@b@10.0.0.2:1",
                           "a@[localhost]:1",
                           "a@10.0.0.256:1",
                           "a@b.7:1",
                           "a@b",
                           "a@b:",
                           "a@b:0",
                           "a@b_c:1",
                           "a@b.-c:1",
                           "a@[10.0.0.2]:1",
                           "a@::1:1",
                           "a@[::1:1",
                           "a@::1]:1",
                           "a@[]:1",
                           "a@:1",
                           "a@[::1]",
                           "a:1@10.0.0.2",
                           "a@[[::1]]:1",
                           "a@[::1%1]:1"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_member_address(text));
  }
  CHECK(is_node_name(std::string(32, 'a')));
  CHECK_FALSE(is_node_name(std::string(33, 'a')));
  CHECK_FALSE(is_node_name(""));
  CHECK_FALSE(is_node_name("a@"));
  CHECK_FALSE(is_node_name("\xc3\xa4"));
}

TEST_CASE("a standby that stays has a mark after its address, which other members never have") {
  const std::vector<Member> members = {
      {.id = 1, .role = MemberRole::voter, .address = "a@10.0.0.1:11302"},
      {.id = 2, .role = MemberRole::standby, .address = "b@10.0.0.2:11302"},
      {.id = 3, .role = MemberRole::standby, .address = "c@10.0.0.3:11302", .stays = true}};
  const auto encoded = encode_members(members);
  REQUIRE(encoded.ok());
  CHECK(encoded->find(std::string_view("c@10.0.0.3:11302 stays\0\0", 24)) != std::string::npos);
  CHECK(encoded->find("stays") == encoded->rfind("stays"));
  CHECK(decode_members(*encoded) == members);
  // A promotion removes the mark. A voter has none.
  std::vector<Member> voters = members;
  voters[2].role = MemberRole::voter;
  const auto promoted = encode_members(voters);
  REQUIRE(promoted.ok());
  CHECK(promoted->find("stays") == std::string::npos);
  CHECK_FALSE(decode_members(*promoted)->back().stays);
}

TEST_CASE("the length of a frame is known from its first bytes, and bounded") {
  const std::string frame = encode(sample_message());
  CHECK_FALSE(frame_bytes(frame.substr(0, 3)));
  CHECK(frame_bytes(frame.substr(0, 4)) == frame.size());
  CHECK(frame_bytes("\xff\xff\xff\xff") == 0);
  CHECK(frame_bytes(std::string(4, '\0')) == 0);
}

TEST_CASE("an entry has its facts in order") {
  EntryWriter writer;
  engine::Recording expected;
  const auto add = [&](const Fact& fact) {
    writer.add(fact);
    expected.fact(fact);
  };
  Added added;
  added.id = 4;
  added.tube = "a";
  added.created = Time(1h);
  added.body = Bytes::copy_of("body");
  add(added);
  add(Held{.id = 4, .until = Time(2h)});
  Placed placed;
  placed.id = 4;
  placed.place.state = JobState::buried;
  placed.place.bury_order = 3;
  add(placed);
  add(Removed{.id = 4});
  CHECK(writer.facts() == 4);
  const Bytes entry = writer.finish({.time = Time(3h), .chain = 99, .leader = 2});
  CHECK(writer.facts() == 0);
  const auto header = read_entry_header(entry.view());
  REQUIRE(header);
  CHECK(*header ==
        EntryHeader{.facts = 4, .next_job_id = 5, .time = Time(3h), .chain = 99, .leader = 2});
  engine::Recording found;
  CHECK(read_facts(entry.view(), found));
  CHECK(found.take_facts() == expected.take_facts());
  // An entry without facts.
  const Bytes empty = writer.finish({.chain = 1});
  CHECK(empty.size() == kEntryHeaderBytes);
  CHECK(read_facts(empty.view(), found));
}

TEST_CASE("a damaged entry, or one of a later version, is not read") {
  EntryWriter writer;
  writer.add(Removed{.id = 4});
  const Bytes entry = writer.finish({});
  engine::Recording found;
  for (std::size_t i = kEntryHeaderBytes; i < entry.size(); ++i) {
    std::string damaged(entry.view());
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    // The last bytes are padding, which must be zero.
    CHECK_FALSE(read_facts(damaged, found));
  }
  CHECK_FALSE(read_facts(entry.view().substr(0, entry.size() - 1), found));
  CHECK_FALSE(read_facts(entry.view().substr(0, 20), found));
  std::string later(entry.view());
  later[0] = 2;
  CHECK_FALSE(read_entry_header(later));
  later[0] = 1;
  later[2] = kFeatureLevel + 1;
  CHECK_FALSE(read_entry_header(later));
}

TEST_CASE("the chain depends on every part of an entry, and on all entries before it") {
  const Entry entry{.term = 1, .type = EntryType::facts, .data = Bytes::copy_of("abc")};
  const Chain chain = chain_after(1, 2, entry);
  CHECK(chain_after(1, 2, entry) == chain);
  CHECK(chain_after(2, 2, entry) != chain);
  CHECK(chain_after(1, 3, entry) != chain);
  Entry other = entry;
  other.term = 2;
  CHECK(chain_after(1, 2, other) != chain);
  other = entry;
  other.type = EntryType::change;
  CHECK(chain_after(1, 2, other) != chain);
  other = entry;
  other.data = Bytes::copy_of("abd");
  CHECK(chain_after(1, 2, other) != chain);
}

TEST_CASE("a lease lasts nine tenths of an election timeout from what a majority has answered") {
  const std::vector<NodeId> voters{1, 2, 3};
  Lease lease(300ms);
  CHECK(lease.end(voters, 1) == Time::min());
  CHECK(lease.end({1}, 1) == kNever);  // a single voter
  lease.answered(2, Time(1s));
  CHECK(lease.end(voters, 1) == Time(1s) + 270ms);
  lease.answered(3, Time(2s));
  CHECK(lease.end(voters, 1) == Time(2s) + 270ms);
  lease.answered(3, Time(1s));  // late
  CHECK(lease.end(voters, 1) == Time(2s) + 270ms);
  // Of five voters, the second newest of the others counts.
  CHECK(lease.end({1, 2, 3, 4, 5}, 1) == Time(1s) + 270ms);
  // A leader that is not a voter needs two others.
  CHECK(lease.end({2, 3, 4}, 1) == Time(1s) + 270ms);
  lease.give_up(3);
  lease.reset();
  CHECK(lease.end(voters, 1) == Time::min());
  lease.answered(2, Time(3s));
  CHECK(lease.end(voters, 1) == Time(3s) + 270ms);
}

TEST_CASE("a lease that was given up returns when the successor has answered a later frame") {
  const std::vector<NodeId> voters{1, 2, 3};
  Lease lease(300ms);
  lease.answered(2, Time(1s));
  lease.give_up(3);
  CHECK(lease.given_up());
  CHECK(lease.end(voters, 1) == Time::min());
  lease.answered(3, Time(2s));  // the successor may still take over
  CHECK(lease.given_up());
  lease.transfer_ended(Time(2s));
  lease.transfer_ended(Time(3s));  // the first time counts
  lease.answered(3, Time(2s));     // sent before that
  lease.answered(2, Time(9s));     // another voter
  CHECK(lease.end(voters, 1) == Time::min());
  CHECK_FALSE(lease.is_stranded(Time(2s) + 1200ms));
  CHECK(lease.is_stranded(Time(2s) + 1201ms));
  lease.answered(3, Time(2s) + 1ms);
  CHECK_FALSE(lease.is_stranded(Time(9s)));
  CHECK(lease.end(voters, 1) == Time(9s) + 270ms);
  // The next transfer is another one.
  lease.give_up(3);
  lease.answered(3, Time(9s));
  CHECK(lease.end(voters, 1) == Time::min());
  CHECK_FALSE(lease.is_stranded(Time(99s)));
}

TEST_CASE(
    "the time of the cluster continues from the previous leader, whatever the wall clock says") {
  ClusterClock clock;
  CHECK_FALSE(clock.is_set());
  clock.observe(Time(10s), Time(1h));
  clock.observe(Time(12s), Time(1h) + 1s);  // a frame that was under way for a second
  CHECK(clock.at(Time(12s)) == Time(1h) + 2s);
  clock.lead(Time(13s), Time(5h), Time(1h));
  CHECK(clock.at(Time(14s)) == Time(1h) + 4s);
  CHECK(clock.local(Time(1h) + 4s) == Time(14s));
  CHECK(clock.local(kNever) == kNever);
  // Never before the newest entry.
  clock.lead(Time(15s), Time(), Time(2h));
  CHECK(clock.at(Time(15s)) == Time(2h));
}

TEST_CASE("a leader that has heard of no other takes its wall clock, or the newest entry's time") {
  ClusterClock clock;
  clock.lead(Time(1s), Time(5h), Time(4h));
  CHECK(clock.at(Time(2s)) == Time(5h) + 1s);
  ClusterClock behind;
  behind.lead(Time(1s), Time(3h), Time(4h));
  CHECK(behind.at(Time(2s)) == Time(4h) + 1s);
}

}  // namespace tubed::cluster
