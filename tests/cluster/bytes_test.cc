// Entries and messages as bytes, and the small parts of a node: the lease and the clock.
#include <string>

#include <doctest/doctest.h>

#include "cluster/cluster_clock.h"
#include "cluster/entry.h"
#include "cluster/lease.h"
#include "cluster/message.h"
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

TEST_CASE("a frame with any bit flipped, or of any other length, is no message") {
  const std::string frame = encode(sample_message());
  for (std::size_t i = 0; i < frame.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = frame;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      CHECK_FALSE(decode(damaged));
    }
  }
  for (std::size_t bytes = 0; bytes < frame.size(); ++bytes)
    CHECK_FALSE(decode(frame.substr(0, bytes)));
  CHECK_FALSE(decode(frame + "x"));
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
  later[2] = 2;  // features
  CHECK_FALSE(read_entry_header(later));
}

TEST_CASE("the chain depends on every part of an entry, and on all before it") {
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
  CHECK(lease.end({1}, 1) == kNever);  // alone
  lease.answered(2, Time(1s));
  CHECK(lease.end(voters, 1) == Time(1s) + 270ms);
  lease.answered(3, Time(2s));
  CHECK(lease.end(voters, 1) == Time(2s) + 270ms);
  lease.answered(3, Time(1s));  // late
  CHECK(lease.end(voters, 1) == Time(2s) + 270ms);
  // Of five, the second newest of the others.
  CHECK(lease.end({1, 2, 3, 4, 5}, 1) == Time(1s) + 270ms);
  // A leader that is no voter needs two others.
  CHECK(lease.end({2, 3, 4}, 1) == Time(1s) + 270ms);
  lease.give_up();
  CHECK(lease.end(voters, 1) == Time::min());
  lease.take_back();
  CHECK(lease.end(voters, 1) == Time(2s) + 270ms);
  lease.give_up();
  lease.reset();
  CHECK(lease.end(voters, 1) == Time::min());
  lease.answered(2, Time(3s));
  CHECK(lease.end(voters, 1) == Time(3s) + 270ms);
}

TEST_CASE("the time of the cluster goes on from the leader before, whatever the wall clock says") {
  ClusterClock clock;
  CHECK_FALSE(clock.is_set());
  clock.observe(Time(10s), Time(1h));
  clock.observe(Time(12s), Time(1h) + 1s);  // a frame that was on its way for a second
  CHECK(clock.at(Time(12s)) == Time(1h) + 2s);
  clock.lead(Time(13s), Time(5h), Time(1h));
  CHECK(clock.at(Time(14s)) == Time(1h) + 4s);
  CHECK(clock.local(Time(1h) + 4s) == Time(14s));
  CHECK(clock.local(kNever) == kNever);
  // Never before the newest entry.
  clock.lead(Time(15s), Time(), Time(2h));
  CHECK(clock.at(Time(15s)) == Time(2h));
}

TEST_CASE("a leader that has heard of none takes its wall clock, or the newest entry's time") {
  ClusterClock clock;
  clock.lead(Time(1s), Time(5h), Time(4h));
  CHECK(clock.at(Time(2s)) == Time(5h) + 1s);
  ClusterClock behind;
  behind.lead(Time(1s), Time(3h), Time(4h));
  CHECK(behind.at(Time(2s)) == Time(4h) + 1s);
}

}  // namespace tubed::cluster
