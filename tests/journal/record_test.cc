// Encoding and decoding facts, and bytes that are not facts.
#include "journal/record.h"

#include <limits>

#include <doctest/doctest.h>

#include "base/crc32c.h"
#include "journal/format.h"
#include "journal/little_endian.h"
#include "tests/journal/sample.h"

namespace tubed::journal {

namespace {

using sample::kClock;
using sample::sealed;

constexpr std::uint32_t kSeed = 0x12345678;

std::string encoded(const Fact& fact, const WallClock& clock = kClock) {
  std::string bytes;
  append_record(bytes, kSeed, fact, clock);
  return bytes;
}

std::string encoded(const BatchHeader& batch) {
  std::string bytes(kBatchHeaderBytes, 'x');
  write_batch_header(bytes, kSeed, batch);
  return bytes;
}

Parsed parse(std::string_view bytes) {
  return parse_record<kLastVersion>(bytes, kSeed, kClock);
}

std::string payload_of(std::string_view record) {
  return std::string(record.substr(8, load_little<std::uint32_t>(record.data() + 4)));
}

// Parses a record after changing one byte of its payload and recomputing its checksum.
std::string_view reason_with(std::string payload, std::size_t at, int byte) {
  payload[at] = static_cast<char>(byte);
  const std::string record = sealed(payload, kSeed);
  const Parsed parsed = parse(record);
  CHECK(parsed.kind == Parsed::Kind::bad);
  return parsed.reason;
}

Added sample_added() {
  return std::get<Added>(sample::every_fact().front());
}

constexpr std::string_view kNotZero = "the record has bytes that should be zero and are not";
constexpr std::string_view kBadLength = "the record has a length that its kind cannot have";

}  // namespace

TEST_CASE("a record is its checksum, its length, its fields and zeros") {
  const std::string bytes = encoded(Fact(Removed{.id = 0x1122334455667788}));
  const std::string rest("\x10\0\0\0\x04\0\0\0\0\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11", 20);
  CHECK(bytes.substr(4) == rest);
  CHECK(load_little<std::uint32_t>(bytes.data()) == crc32c(kSeed, rest));

  const std::string paused = encoded(
      Fact(Paused{.tube = "abc", .duration = Seconds{1}, .until = Time()}), WallClock{Duration(2)});
  const std::string fields(
      "\x13\0\0\0\x05\x03\0\0\x01\0\0\0\x02\0\0\0\0\0\0\0"
      "abc\0\0\0\0\0",
      28);
  CHECK(paused.substr(4) == fields);
}

TEST_CASE("a batch header has exactly these bytes") {
  const std::string bytes = encoded(BatchHeader{.directory = 0x0102030405060708,
                                                .offset = 0x40,
                                                .lsn = 5,
                                                .durable = 4,
                                                .next_job_id = 9,
                                                .written = -1,
                                                .facts = 0x11223344,
                                                .jobs = 0x21,
                                                .clean = true});
  const std::string rest(
      "\x40\0\0\0\x01\x01\0\0\x44\x33\x22\x11\x08\x07\x06\x05\x04\x03\x02\x01"
      "\x40\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0"
      "\xff\xff\xff\xff\xff\xff\xff\xff\x21\0\0\0\0\0\0\0",
      68);
  CHECK(bytes.size() == 72);
  CHECK(bytes.substr(4) == rest);
  CHECK(load_little<std::uint32_t>(bytes.data()) == crc32c(kSeed, rest));
}

TEST_CASE("every fact is read as it was written") {
  for (const Fact& fact : sample::every_fact()) {
    const std::string bytes = encoded(fact);
    CHECK(bytes.size() == record_bytes(fact));
    const Parsed parsed = parse(bytes);
    REQUIRE(parsed.kind == Parsed::Kind::record);
    CHECK(parsed.bytes == bytes.size());
    CHECK(sample::same(parsed.record, Record(fact)));
  }
}

TEST_CASE("consecutive random facts are read as they were written") {
  std::mt19937_64 random(1);
  std::vector<Fact> facts;
  std::string bytes;
  for (int i = 0; i < 5'000; ++i) {
    facts.push_back(sample::random_fact(random));
    const std::size_t before = bytes.size();
    CHECK_FALSE(append_record(bytes, kSeed, facts.back(), kClock));
    REQUIRE(bytes.size() - before == record_bytes(facts.back()));
    REQUIRE(bytes.size() % kRecordAlignment == 0);
  }
  std::string_view rest = bytes;
  for (const Fact& fact : facts) {
    const Parsed parsed = parse(rest);
    REQUIRE(parsed.kind == Parsed::Kind::record);
    REQUIRE(sample::same(parsed.record, Record(fact)));
    rest.remove_prefix(parsed.bytes);
  }
  CHECK(parse(rest).kind == Parsed::Kind::end);
}

TEST_CASE("a batch header is read as it was written") {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100; ++i) {
    const BatchHeader batch = {.directory = random(),
                               .offset = random(),
                               .lsn = random(),
                               .durable = random(),
                               .next_job_id = random(),
                               .written = static_cast<std::int64_t>(random()),
                               .facts = static_cast<std::uint32_t>(random()),
                               .jobs = random(),
                               .clean = random() % 2 == 0};
    const Parsed parsed = parse(encoded(batch));
    REQUIRE(parsed.kind == Parsed::Kind::record);
    CHECK(parsed.bytes == kBatchHeaderBytes);
    CHECK(std::get<BatchHeader>(parsed.record) == batch);
  }
}

TEST_CASE("a large body is left out, and the rest of the record is the same") {
  std::mt19937_64 random(3);
  for (std::uint32_t bytes = 0; bytes < 40; ++bytes) {
    Added added = sample_added();
    Bytes body = Bytes::allocate(bytes);
    for (char& c : body.writable()) c = static_cast<char>(random());
    added.body = body;
    const std::string copied = "before" + encoded(Fact(added));
    std::string referred = "before";
    const auto at = append_record(referred, kSeed, added, kClock, bytes);
    REQUIRE(at);
    CHECK(referred.size() == copied.size() - bytes);
    referred.insert(*at, body.view());
    CHECK(referred == copied);

    std::string whole = "before";
    CHECK_FALSE(append_record(whole, kSeed, added, kClock, bytes + 1));
    CHECK(whole == copied);
  }
}

TEST_CASE("zeros or no bytes are the end") {
  for (std::size_t bytes = 0; bytes < 100; ++bytes) {
    const Parsed parsed = parse(std::string(bytes, '\0'));
    CHECK(parsed.kind == Parsed::Kind::end);
    CHECK(parsed.bytes == 0);
  }
  CHECK(parse(std::string(8, '\0') + "something").kind == Parsed::Kind::end);
}

TEST_CASE("a cut record is bad, wherever it is cut") {
  for (const Fact& fact : sample::every_fact()) {
    const std::string bytes = encoded(fact);
    for (std::size_t cut = 1; cut < bytes.size(); ++cut) {
      const Parsed parsed = parse(std::string_view(bytes).substr(0, cut));
      REQUIRE(parsed.kind == Parsed::Kind::bad);
      REQUIRE(parsed.reason == "the record is cut short");
    }
  }
}

TEST_CASE("a changed bit is noticed, wherever it is") {
  for (const Fact& fact : sample::every_fact()) {
    std::string bytes = encoded(fact);
    for (char& c : bytes) {
      for (int bit = 0; bit < 8; ++bit) {
        c = static_cast<char>(c ^ (1 << bit));
        REQUIRE(parse(bytes).kind == Parsed::Kind::bad);
        c = static_cast<char>(c ^ (1 << bit));
      }
    }
  }
}

TEST_CASE("a record of another segment is bad") {
  for (const Fact& fact : sample::every_fact()) {
    const Parsed parsed = parse_record<kLastVersion>(encoded(fact), kSeed + 1, kClock);
    CHECK(parsed.kind == Parsed::Kind::bad);
    CHECK(parsed.reason == "the record does not match its checksum");
  }
}

TEST_CASE("an unknown kind is bad") {
  CHECK(parse(sealed("", kSeed)).kind == Parsed::Kind::bad);
  for (int kind = 0; kind < 256; ++kind) {
    if (kind >= 1 && kind <= 13) continue;
    CHECK(reason_with(std::string(16, '\0'), 0, kind) == "the record is of an unknown kind");
  }
}

TEST_CASE("bytes that no field has must be zero") {
  const std::string batch = payload_of(encoded(BatchHeader{}));
  CHECK(reason_with(batch, 1, 2) == kNotZero);
  for (std::size_t at = 2; at < 4; ++at) CHECK(reason_with(batch, at, 1) == kNotZero);
  const auto facts = sample::every_fact();
  CHECK(reason_with(payload_of(encoded(facts[0])), 3, 1) == kNotZero);
  const std::string removed = payload_of(encoded(facts[3]));
  for (std::size_t at = 1; at < 8; ++at) CHECK(reason_with(removed, at, 1) == kNotZero);
  const std::string placed = payload_of(encoded(facts[4]));
  for (std::size_t at = 2; at < 4; ++at) CHECK(reason_with(placed, at, 1) == kNotZero);
  const std::string paused = payload_of(encoded(facts[7]));
  for (std::size_t at = 2; at < 4; ++at) CHECK(reason_with(paused, at, 1) == kNotZero);
  for (const Fact& fact : {Fact(Held{}), Fact(Applied{})}) {
    const std::string payload = payload_of(encoded(fact));
    for (std::size_t at = 1; at < 8; ++at) CHECK(reason_with(payload, at, 1) == kNotZero);
  }
  // The padding is checked too.
  std::string padded = encoded(facts[7]);
  padded.back() = 1;
  store_little(padded.data(), crc32c(kSeed, std::string_view(padded).substr(4)));
  CHECK(parse(padded).reason == kNotZero);
}

TEST_CASE("the place of a ready job is zero") {
  const auto facts = sample::every_fact();
  CHECK(reason_with(payload_of(encoded(facts[0])), 32, 1) == kNotZero);
  CHECK(reason_with(payload_of(encoded(facts[4])), 16, 1) == kNotZero);
}

TEST_CASE("a job rests in one of three states") {
  const auto facts = sample::every_fact();
  for (const std::size_t fact : {0U, 4U}) {
    for (const int state : {3, 4, 255}) {
      CHECK(reason_with(payload_of(encoded(facts[fact])), 1, state) ==
            "the record names no state that a job can rest in");
    }
  }
}

TEST_CASE("tags must be possible") {
  constexpr std::string_view kBadTags = "the record has tags that no put can have";
  const Added job = sample::added(1, "b", "body");
  const auto with_tags = [&job](std::string_view key) {
    return payload_of(encoded(AddedWithTags{job, {.unique_key = key, .cooldown = {}}}));
  };
  const std::string added = with_tags("key");
  constexpr std::size_t kAt = 69;  // of the tag: its kind, its length, 2 zeros, a number, its text
  for (const int kind : {0, 8, 255}) CHECK(reason_with(added, kAt, kind) == kBadTags);
  for (const int length : {0, 2, 4, 255}) CHECK(reason_with(added, kAt + 1, length) == kBadTags);
  for (const std::size_t zero : {2U, 3U}) CHECK(reason_with(added, kAt + zero, 1) == kBadTags);
  // The total length of all tags: no tag, part of a tag, more than the record has.
  for (const int length : {0, 7, 10, 12}) CHECK(reason_with(added, 64, length) != "");
  CHECK(reason_with(added, 67, 255) == kBadLength);
  // The same tag twice.
  std::string twice = added;
  twice[64] = 22;
  twice.insert(kAt, added.substr(kAt, 11));
  CHECK(reason_with(twice, 64, 22) == kBadTags);
}

TEST_CASE("lengths must agree to the byte") {
  const auto facts = sample::every_fact();
  const std::string added = payload_of(encoded(facts[0]));  // 7 bytes of tube, 5 of body
  for (const int tube : {0, 6, 8, 201, 255}) CHECK(reason_with(added, 2, tube) == kBadLength);
  for (const int body : {0, 4, 6, 255}) CHECK(reason_with(added, 60, body) == kBadLength);
  CHECK(reason_with(added, 63, 255) == kBadLength);  // a body of nearly 4 GiB
  const std::string paused = payload_of(encoded(facts[7]));
  for (const int tube : {0, 6, 8, 201}) CHECK(reason_with(paused, 1, tube) == kBadLength);

  std::vector<std::string> payloads = {payload_of(encoded(BatchHeader{}))};
  for (const Fact& fact : facts) payloads.push_back(payload_of(encoded(fact)));
  for (const std::string& payload : payloads) {
    for (std::size_t bytes = 1; bytes <= payload.size() + 20; ++bytes) {
      if (bytes == payload.size()) continue;
      std::string other = payload;
      other.resize(bytes);
      REQUIRE(parse(sealed(other, kSeed)).kind == Parsed::Kind::bad);
    }
  }
  // Lengths that are consistent but too long for a tube.
  std::string long_tube = added.substr(0, 64) + std::string(201, 't');
  long_tube[2] = '\xc9';
  long_tube[60] = 0;
  CHECK(parse(sealed(long_tube, kSeed)).reason == kBadLength);
}

TEST_CASE("a length beyond the end is bad, however large") {
  std::string bytes = encoded(Fact(Removed{.id = 1}));
  for (const std::uint32_t length : {17U, 24U, 0x7fffffffU, 0xfffffff8U, 0xffffffffU}) {
    store_little(bytes.data() + 4, length);
    CHECK(parse(bytes).reason == "the record is cut short");
  }
}

TEST_CASE("garbage with a valid checksum is bad, or a record that encodes to the same bytes") {
  std::mt19937_64 random(4);
  const WallClock wall_only;
  int records = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string payload;
    if (random() % 2 == 0) {
      const Fact fact = sample::random_fact(random);
      payload = payload_of(encoded(fact));
      for (auto changes = random() % 4; changes > 0; --changes) {
        payload[random() % std::min<std::size_t>(payload.size(), 70)] =
            static_cast<char>(random() % 4 == 0 ? random() : random() % 4);
      }
    } else {
      payload.resize(1 + random() % 80);
      for (char& c : payload) c = static_cast<char>(random() % 3 == 0 ? random() : 0);
      payload[0] = static_cast<char>(random() % 7);
    }
    const std::string bytes = sealed(payload, kSeed);
    const Parsed parsed = parse_record<kLastVersion>(bytes, kSeed, wall_only);
    REQUIRE(parsed.kind != Parsed::Kind::end);
    if (parsed.kind == Parsed::Kind::bad) continue;
    ++records;
    const auto* batch = std::get_if<BatchHeader>(&parsed.record);
    REQUIRE((batch ? encoded(*batch) : encoded(std::get<Fact>(parsed.record), wall_only)) == bytes);
  }
  CHECK(records > 10'000);
}

TEST_CASE("garbage is never a record") {
  std::mt19937_64 random(5);
  for (int i = 0; i < 100'000; ++i) {
    std::string bytes(random() % 120, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (bytes.size() >= 8)
      store_little(bytes.data() + 4, static_cast<std::uint32_t>(random() % 90));
    REQUIRE(parse(bytes).kind != Parsed::Kind::record);
  }
}

TEST_CASE("the wall clock converts in both directions, and saturates") {
  using Limits = std::numeric_limits<std::int64_t>;
  const WallClock ahead{Duration(1'000)};
  CHECK(ahead.to_wall(Time(Duration(-5))) == 995);
  CHECK(ahead.to_monotonic(995) == Time(Duration(-5)));
  CHECK(ahead.to_wall(kNever) == Limits::max());
  CHECK(ahead.to_monotonic(Limits::min()) == Time::min());
  const WallClock behind{Duration(-1'000)};
  CHECK(behind.to_wall(Time::min()) == Limits::min());
  CHECK(behind.to_monotonic(Limits::max()) == kNever);
  CHECK(WallClock{}.to_monotonic(Limits::max()) == kNever);
}

}  // namespace tubed::journal
