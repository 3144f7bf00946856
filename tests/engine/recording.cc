#include "tests/engine/recording.h"

#include <utility>

#include "base/overloaded.h"

namespace tubed::engine {

namespace {

std::string text(std::uint64_t number) {
  return std::to_string(number);
}

std::string quoted(const Bytes& body) {
  if (!body) return "no body";
  std::string line(1, '\'');
  line += body.view();
  line += '\'';
  return line;
}

std::string describe_added(const Added& added) {
  return "added " + text(added.id) + " to " + std::string(added.tube) + " at " +
         describe(added.created) + ", ttr " + text(added.ttr.count) + ", " + quoted(added.body) +
         ": " + describe(added.place) + describe(added.counters);
}

std::string describe_paused(const Paused& paused) {
  return "paused " + std::string(paused.tube) + " for " + text(paused.duration.count) + " until " +
         describe(paused.until);
}

}  // namespace

std::string describe(Time time) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  if (time == kNever) return "never";
  const std::int64_t count = time.time_since_epoch().count();
  return count % kSecond == 0 ? std::to_string(count / kSecond) + "s"
                              : std::to_string(count) + "ns";
}

std::string describe(const Placement& place) {
  std::string line = std::string(name_of(place.state)) + " " + text(place.priority);
  if (place.delay.count > 0) line += " delay " + text(place.delay.count);
  const bool timed = place.state == JobState::delayed || place.until != Time();
  if (timed) line += " until " + describe(place.until);
  const bool ordered = place.state == JobState::buried || place.bury_order != 0;
  if (ordered) line += " order " + text(place.bury_order);
  return line;
}

std::string describe(const JobCounters& counters) {
  std::string line;
  if (counters.reserves > 0) line += " reserves=" + text(counters.reserves);
  if (counters.timeouts > 0) line += " timeouts=" + text(counters.timeouts);
  if (counters.releases > 0) line += " releases=" + text(counters.releases);
  if (counters.buries > 0) line += " buries=" + text(counters.buries);
  if (counters.kicks > 0) line += " kicks=" + text(counters.kicks);
  return line;
}

std::string describe(const JobMarks& marks) {
  std::string line;
  if (marks.reserves > 0) line += " reserves-before=" + text(marks.reserves);
  if (marks.timeouts > 0) line += " timeouts-before=" + text(marks.timeouts);
  if (marks.releases > 0) line += " releases-before=" + text(marks.releases);
  if (marks.after_done) line += " after-done";
  if (!marks.dead_from.empty()) line += " dead-from=" + std::string(marks.dead_from);
  if (marks.reason != DeathReason::none) line += " dead=" + std::string(word_of(marks.reason));
  return line;
}

std::string describe(const Fact& fact) {
  return std::visit(
      Overloaded{[](const Added& added) { return describe_added(added); },
                 [](const Placed& placed) {
                   return "placed " + text(placed.id) + ": " + describe(placed.place) +
                          describe(placed.counters);
                 },
                 [](const Removed& removed) { return "removed " + text(removed.id); },
                 [](const Paused& paused) { return describe_paused(paused); },
                 [](const Flushed& flushed) { return "flushed " + std::string(flushed.tube); },
                 [](const AddedWithTags& added) {
                   std::string tags = text_of(added.tags);
                   if (const std::uint16_t less = added.tags.ttr_short_by_ms; less > 0) {
                     tags += (tags.empty() ? "less " : " less ") + text(less) + "ms";
                   }
                   return describe_added(added) + (tags.empty() ? "" : " ") + tags +
                          describe(added.marks);
                 },
                 [](const PlacedWithMarks& placed) {
                   return "placed " + text(placed.id) + ": " + describe(placed.place) +
                          describe(placed.counters) + describe(placed.marks);
                 },
                 [](const PolicySet& policy) {
                   return "policy of " + std::string(policy.tube) + ": " + std::string(policy.key) +
                          " " + std::string(policy.value);
                 },
                 [](const Moved& moved) {
                   return "moved " + text(moved.id) + " to " + std::string(moved.tube) +
                          (moved.keeps_key ? " with its key" : "");
                 },
                 [](const Held& held) {
                   return "held " + text(held.id) + " until " + describe(held.until);
                 },
                 [](const Applied& applied) {
                   return "applied " + text(applied.index) + " of term " + text(applied.term) +
                          ", chain " + text(applied.chain);
                 },
                 [](const Remembered& key) {
                   return "remembered " + text(key.id) + " in " + std::string(key.tube) + ": " +
                          std::string(key.key) + " until " + describe(key.until);
                 }},
      fact);
}

std::string describe(const Notice& notice) {
  const std::string session = text(notice.session) + " ";
  switch (notice.kind) {
    case Notice::Kind::reserved:
      return session + "reserved " + text(notice.job) + " " + quoted(notice.body);
    case Notice::Kind::timed_out:
      return session + "timed out" + (notice.job == 0 ? "" : " for " + text(notice.job));
    case Notice::Kind::deadline_soon:
      return session + "deadline soon";
    case Notice::Kind::deleted:
      return session + "deleted " + text(notice.job);
    case Notice::Kind::buried:
      return session + "buried " + text(notice.job);
    case Notice::Kind::not_found:
      return session + "not found " + text(notice.job);
  }
  return session;
}

std::string describe(const Retirement& retirement) {
  std::string line = std::to_string(retirement.job) + " ";
  line.append(word_of(retirement.reason)).append(" to ").append(retirement.to);
  return line + describe(retirement.counters);
}

void Recording::fact(const Fact& fact) {
  log_.emplace_back(fact, now_);
  lines_.push_back(describe(fact));
  facts_.push_back(lines_.back());
}

void Recording::notice(const Notice& notice) {
  lines_.push_back(describe(notice));
  notices_.push_back(lines_.back());
}

void Recording::retired(const Retirement& retirement) {
  retirements_.push_back(describe(retirement));
}

Lines Recording::take() {
  facts_.clear();
  notices_.clear();
  return std::exchange(lines_, {});
}

}  // namespace tubed::engine
