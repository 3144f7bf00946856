#include "tests/journal/sample.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/crc32c.h"
#include "journal/little_endian.h"
#include "journal/segment.h"

namespace tubed::journal::sample {

namespace {

const std::string& longest_tube() {
  static const std::string tube(kMaxTubeNameBytes, 't');
  return tube;
}

constexpr std::string_view kBinary{"\0\r\n\xff\x01\x80 \"\\x\0\0\0", 13};

Time at_second(std::int64_t second) {
  return Time(std::chrono::seconds(second));
}

bool same_facts(const Added& a, const Added& b) {
  return a.id == b.id && a.tube == b.tube && a.ttr == b.ttr && a.created == b.created &&
         a.body.view() == b.body.view() && a.place == b.place && a.counters == b.counters;
}

bool same_facts(const Placed& a, const Placed& b) {
  return a.id == b.id && a.place == b.place && a.counters == b.counters;
}

bool same_facts(const PlacedWithMarks& a, const PlacedWithMarks& b) {
  return same_facts(static_cast<const Placed&>(a), static_cast<const Placed&>(b)) &&
         a.marks == b.marks;
}

bool same_facts(const Held& a, const Held& b) {
  return a.id == b.id && a.until == b.until;
}

bool same_facts(const Applied& a, const Applied& b) {
  return a == b;
}

bool same_facts(const PolicySet& a, const PolicySet& b) {
  return a.tube == b.tube && a.key == b.key && a.value == b.value;
}

bool same_facts(const Removed& a, const Removed& b) {
  return a.id == b.id;
}

bool same_facts(const Paused& a, const Paused& b) {
  return a.tube == b.tube && a.duration == b.duration && a.until == b.until;
}

bool same_facts(const Flushed& a, const Flushed& b) {
  return a.tube == b.tube;
}

bool same_facts(const AddedWithTags& a, const AddedWithTags& b) {
  return same_facts(static_cast<const Added&>(a), static_cast<const Added&>(b)) &&
         a.tags == b.tags && a.marks == b.marks;
}

bool same_facts(const Moved& a, const Moved& b) {
  return a.id == b.id && a.tube == b.tube && a.keeps_key == b.keeps_key;
}

bool same_facts(const Remembered& a, const Remembered& b) {
  return a.id == b.id && a.tube == b.tube && a.key == b.key && a.until == b.until;
}

// --- Random values, often boundary values

template <class T>
T any(std::mt19937_64& random) {
  switch (random() % 4) {
    case 0:
      return std::numeric_limits<T>::min();
    case 1:
      return std::numeric_limits<T>::max();
    default:
      return static_cast<T>(random());
  }
}

// Not so far from zero that the wall clock saturates.
Time any_time(std::mt19937_64& random) {
  return Time(Duration(static_cast<std::int64_t>(random() >> 3U) - (std::int64_t{1} << 60)));
}

std::string_view any_tube(std::mt19937_64& random) {
  static const std::array<std::string, 5> tubes = {"default", "a", std::string("\0\xff\n", 3),
                                                   longest_tube(), "tube-with-a-name"};
  return tubes[random() % tubes.size()];
}

Placement any_place(std::mt19937_64& random) {
  Placement place;
  place.state = static_cast<JobState>(random() % 3);
  place.priority = any<Priority>(random);
  place.delay = Seconds{any<std::uint32_t>(random)};
  if (place.state == JobState::delayed) place.until = any_time(random);
  if (place.state == JobState::buried) place.bury_order = any<std::uint64_t>(random);
  return place;
}

JobCounters any_counters(std::mt19937_64& random) {
  JobCounters counters;
  counters.reserves = any<std::uint32_t>(random);
  counters.timeouts = any<std::uint32_t>(random);
  counters.releases = any<std::uint32_t>(random);
  counters.buries = any<std::uint32_t>(random);
  counters.kicks = any<std::uint32_t>(random);
  return counters;
}

Bytes any_body(std::mt19937_64& random) {
  std::string text(random() % (random() % 8 == 0 ? 5'000 : 40), '\0');
  for (char& c : text) c = static_cast<char>(random());
  return Bytes::copy_of(text);
}

}  // namespace

bool same(const Fact& one, const Fact& other) {
  return std::visit(
      [&](const auto& a) {
        const auto* b = std::get_if<std::remove_cvref_t<decltype(a)>>(&other);
        return b != nullptr && same_facts(a, *b);
      },
      one);
}

bool same(const Record& one, const Record& other) {
  const auto* fact = std::get_if<Fact>(&one);
  const auto* other_fact = std::get_if<Fact>(&other);
  if (fact != nullptr && other_fact != nullptr) return same(*fact, *other_fact);
  const auto* batch = std::get_if<BatchHeader>(&one);
  const auto* other_batch = std::get_if<BatchHeader>(&other);
  return batch != nullptr && other_batch != nullptr && *batch == *other_batch;
}

Added added(JobId id, std::string_view tube, std::string_view body) {
  Added added;
  added.id = id;
  added.tube = tube;
  added.body = Bytes::copy_of(body);
  return added;
}

std::vector<Fact> every_fact() {
  const JobCounters counters = {
      .reserves = 1, .timeouts = 2, .releases = 3, .buries = 4, .kicks = 5};
  Placement ready;
  ready.priority = 1024;
  ready.delay = Seconds{3};
  Placement delayed;
  delayed.state = JobState::delayed;
  delayed.delay = Seconds{30};
  delayed.until = at_second(1030) + Duration(1);
  Placement buried;
  buried.state = JobState::buried;
  buried.priority = 0xffffffff;
  buried.bury_order = 7;

  Added first = added(1, kDefaultTube, "hello");
  first.ttr = Seconds{60};
  first.created = at_second(1000);
  first.place = ready;
  Added second = added(2, longest_tube(), "");
  second.ttr = Seconds{1};
  second.created = at_second(1001);
  second.place = delayed;
  Added third = added(3, "b", kBinary);
  third.ttr = Seconds{0xffffffff};
  third.created = at_second(-5);
  third.place = buried;
  third.counters = counters;
  return {
      first,
      second,
      third,
      Removed{.id = 4},
      Placed{.id = 1, .place = ready, .counters = {}},
      Placed{.id = 2, .place = delayed, .counters = counters},
      Placed{.id = 3, .place = buried, .counters = counters},
      Paused{.tube = kDefaultTube, .duration = Seconds{60}, .until = at_second(1060)},
      Paused{.tube = "b", .duration = Seconds{0}, .until = at_second(1000)},
      Removed{.id = 0x123456789},
  };
}

std::vector<Fact> every_fact_of_version_2() {
  std::vector<Fact> facts = every_fact();
  facts.push_back(Flushed{.tube = kDefaultTube});
  facts.push_back(Flushed{.tube = longest_tube()});
  facts.push_back(Removed{.id = 1});
  const Added plain = added(5, "b", kBinary);
  facts.push_back(AddedWithTags{plain, {.unique_key = "k", .cooldown = {}}});
  Added longest = added(6, longest_tube(), "");
  longest.place.state = JobState::delayed;
  longest.place.until = at_second(1030);
  facts.push_back(
      AddedWithTags{longest, {.unique_key = longest_tube(), .cooldown = Seconds{0xffffffff}}});
  facts.push_back(Removed{.id = 6});
  facts.push_back(
      Remembered{.id = 6, .tube = longest_tube(), .key = longest_tube(), .until = at_second(5000)});
  facts.push_back(Remembered{.id = 7, .tube = "b", .key = "user/42", .until = at_second(1000)});
  facts.push_back(Moved{.id = 5, .tube = longest_tube(), .keeps_key = true});
  facts.push_back(Moved{.id = 2, .tube = "b"});
  JobMarks marks{.reserves = 1, .timeouts = 2, .releases = 3};
  Added dead = added(8, "dead", "body");
  facts.push_back(AddedWithTags{dead, {.max_attempts = 5, .dead = "dead"}, marks});
  facts.push_back(AddedWithTags{added(9, "b", ""), {.time_to_live = Seconds{60}}});
  facts.push_back(AddedWithTags{
      added(11, "b", ""), {.concurrency_key = longest_tube(), .concurrency_limit = 0xffffffff}});
  Added member = added(12, "b", "body");
  facts.push_back(
      AddedWithTags{member, {.group = "g", .after = longest_tube()}, {.after_done = true}});
  member.id = 13;
  member.place.state = JobState::delayed;
  member.place.until = kNever;
  facts.push_back(AddedWithTags{member, {.after = "g"}});
  Added brief = added(14, "b", "");
  brief.ttr = {1};
  facts.push_back(AddedWithTags{brief, {.ttr_short_by_ms = 999}});
  marks.dead_from = longest_tube();
  marks.reason = DeathReason::expired;
  dead.id = 10;
  facts.push_back(AddedWithTags{
      dead,
      {.unique_key = "k", .max_attempts = 0xffffffff, .time_to_live = Seconds{0xffffffff}},
      marks});
  Placed placed;
  placed.id = 9;
  placed.place.state = JobState::buried;
  placed.place.priority = 7;
  placed.place.bury_order = 4;
  placed.counters.reserves = 5;
  facts.push_back(PlacedWithMarks{placed, marks});
  facts.push_back(PlacedWithMarks{placed, {.releases = 0xffffffff}});
  facts.push_back(PolicySet{.tube = "b", .key = "backoff", .value = "5:60"});
  facts.push_back(PolicySet{.tube = longest_tube(), .key = "dead", .value = longest_tube()});
  facts.push_back(PolicySet{.tube = "b", .key = "ttl", .value = kNoPolicyValue});
  return facts;
}

std::vector<Fact> every_fact_of_version_3() {
  std::vector<Fact> facts = every_fact_of_version_2();
  facts.push_back(Held{.id = 2, .until = at_second(1060) + Duration(1)});
  facts.push_back(Held{.id = 0x123456789, .until = kNever});
  facts.push_back(Applied{.index = 1, .term = 2, .chain = 3});
  facts.push_back(Applied{.index = UINT64_MAX, .term = 0x123456789, .chain = 0xfedcba9876543210});
  return facts;
}

Fact random_fact(std::mt19937_64& random) {
  const auto any_added = [&random] {
    Added added;
    added.id = any<JobId>(random);
    added.tube = any_tube(random);
    added.ttr = Seconds{any<std::uint32_t>(random)};
    added.created = any_time(random);
    added.body = any_body(random);
    added.place = any_place(random);
    added.counters = any_counters(random);
    return added;
  };
  const auto any_marks = [&random] {
    JobMarks marks;
    marks.reserves = any<std::uint32_t>(random);
    marks.timeouts = any<std::uint32_t>(random);
    marks.releases = any<std::uint32_t>(random) | 1;
    marks.reason = static_cast<DeathReason>(random() % 5);
    marks.after_done = random() % 2 == 0;
    if (marks.reason != DeathReason::none && random() % 2 == 0) marks.dead_from = any_tube(random);
    return marks;
  };
  switch (random() % 12) {
    case 11:
      return Held{.id = any<JobId>(random), .until = any_time(random)};
    case 10:
      return Applied{.index = any<std::uint64_t>(random),
                     .term = any<std::uint64_t>(random),
                     .chain = any<std::uint64_t>(random)};
    case 9:
      return PolicySet{
          .tube = any_tube(random), .key = any_tube(random), .value = any_tube(random)};
    case 8: {
      PlacedWithMarks placed;
      placed.id = any<JobId>(random);
      placed.place = any_place(random);
      placed.counters = any_counters(random);
      placed.marks = any_marks();
      return placed;
    }
    case 7:
      return Moved{
          .id = any<JobId>(random), .tube = any_tube(random), .keeps_key = random() % 2 == 0};
    case 6:
      return Remembered{.id = any<JobId>(random),
                        .tube = any_tube(random),
                        .key = any_tube(random),
                        .until = any_time(random)};
    case 5: {
      AddedWithTags added{any_added(), {}, any_marks()};
      if (random() % 2 == 0) {
        added.tags.unique_key = any_tube(random);
        added.tags.cooldown = Seconds{any<std::uint32_t>(random)};
      }
      if (random() % 2 == 0) {
        added.tags.max_attempts = any<std::uint32_t>(random);
        if (random() % 2 == 0) added.tags.dead = any_tube(random);
      }
      if (random() % 2 == 0) {
        added.tags.concurrency_key = any_tube(random);
        added.tags.concurrency_limit = any<std::uint32_t>(random) | 1;
      }
      if (random() % 2 == 0) added.tags.group = any_tube(random);
      if (random() % 2 == 0) added.tags.after = any_tube(random);
      if (random() % 2 == 0) added.tags.time_to_live = Seconds{any<std::uint32_t>(random)};
      if (random() % 2 == 0 && added.ttr.count > 0) {
        added.tags.ttr_short_by_ms = static_cast<std::uint16_t>(1 + random() % 999);
      }
      return added;
    }
    case 4:
      return Flushed{.tube = any_tube(random)};
    case 0:
      return any_added();
    case 1: {
      Placed placed;
      placed.id = any<JobId>(random);
      placed.place = any_place(random);
      placed.counters = any_counters(random);
      return placed;
    }
    case 2:
      return Removed{.id = any<JobId>(random)};
    default: {
      Paused paused;
      paused.tube = any_tube(random);
      paused.duration = Seconds{any<std::uint32_t>(random)};
      paused.until = any_time(random);
      return paused;
    }
  }
}

std::vector<Fact> removals(JobId first, JobId last) {
  std::vector<Fact> facts;
  for (JobId id = first; id <= last; ++id) {
    // Constructed in place: for a move, g++ 12 warns that it may be uninitialized.
    std::get<Removed>(facts.emplace_back(std::in_place_type<Removed>)).id = id;
  }
  return facts;
}

Image::Image(std::uint64_t sequence, Lsn lsn, std::uint64_t directory)
    : sequence_(sequence),
      directory_(directory),
      next_lsn_(lsn),
      header_{.directory = directory, .sequence = sequence, .created = kNow},
      bytes_(encode_header(header_)) {}

Image& Image::batch(bool clean) {
  const std::size_t at = bytes_.size();
  starts_.push_back(at);
  bytes_.append(kBatchHeaderBytes, '\0');
  batch_ = {.directory = directory_,
            .offset = at,
            .lsn = next_lsn_,
            .durable = next_lsn_,
            .next_job_id = next_job_id_,
            .written = kNow,
            .clean = clean};
  write_batch_header();
  return *this;
}

void Image::write_batch_header() {
  if (batch_.offset == 0) return;
  batch_.facts = static_cast<std::uint32_t>(next_lsn_ - batch_.lsn);
  batch_.jobs = jobs_.size();
  journal::write_batch_header({bytes_.data() + batch_.offset, kBatchHeaderBytes},
                              seed_of(sequence_), batch_);
}

Image& Image::fact(const Fact& fact) {
  starts_.push_back(bytes_.size());
  append_record(bytes_, seed_of(sequence_), fact, kClock);
  header_.version = std::max(header_.version, version_needed(fact));
  bytes_.replace(0, kSegmentHeaderBytes, encode_header(header_));
  ++next_lsn_;
  if (const Added* added = added_in(fact)) {
    use_ids_below(added->id + 1);
    jobs_.insert(added->id);
  } else if (const auto* removed = std::get_if<Removed>(&fact)) {
    use_ids_below(removed->id + 1);
    jobs_.erase(removed->id);
  }
  write_batch_header();
  return *this;
}

Image& Image::with_jobs(std::vector<JobId> ids) {
  jobs_ = {ids.begin(), ids.end()};
  return *this;
}

Image& Image::use_ids_below(JobId next) {
  next_job_id_ = std::max(next_job_id_, next);
  return *this;
}

Image& Image::zeros(std::size_t bytes) {
  bytes_.append(bytes, '\0');
  return *this;
}

Image& Image::raw(std::string_view bytes) {
  bytes_.append(bytes);
  return *this;
}

std::string sealed(std::string_view payload, std::uint32_t seed) {
  std::string record(kRecordHeaderBytes, '\0');
  store_little(record.data() + 4, static_cast<std::uint32_t>(payload.size()));
  record.append(payload);
  record.resize((record.size() + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment);
  store_little(record.data(), crc32c(seed, std::string_view(record).substr(4)));
  return record;
}

void Collected::record(std::uint64_t segment, std::uint64_t offset, std::size_t bytes,
                       const Record& record) {
  Entry entry{segment, offset, bytes, record, {}};
  if (const auto* fact = std::get_if<Fact>(&record)) entry.fact.emplace(*fact);
  entries_.push_back(std::move(entry));
}

std::vector<Fact> Collected::facts() const {
  std::vector<Fact> facts;
  for (const Entry& entry : entries_) {
    if (entry.fact) facts.push_back(entry.fact->fact());
  }
  return facts;
}

std::vector<BatchHeader> Collected::batches() const {
  std::vector<BatchHeader> batches;
  for (const Entry& entry : entries_) {
    if (const auto* batch = std::get_if<BatchHeader>(&entry.record)) batches.push_back(*batch);
  }
  return batches;
}

}  // namespace tubed::journal::sample
