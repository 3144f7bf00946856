#include "tubectl/jobs/record.h"

#include <algorithm>
#include <array>
#include <limits>

namespace tubed::tubectl {
namespace {

// Limits a number from the server to the largest that the protocol accepts.
std::uint32_t narrow(std::uint64_t number) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(number, std::numeric_limits<std::uint32_t>::max()));
}

// A tag, and the lines of stats-job with its first and second part.
struct TagLines {
  std::string_view word;
  std::string_view first;
  std::string_view second = {};     // may be empty
  std::string_view no_second = {};  // second part that the tag may omit
};

constexpr std::array<TagLines, 6> kTagLines{{{"idp", "idempotency-key", "idempotency-ttl", "0"},
                                             {"max", "max-attempts", "dead"},
                                             {"ttl", "ttl"},
                                             {"grp", "group"},
                                             {"aft", "after-group"},
                                             {"con", "concurrency-key", "concurrency-limit", "1"}}};

// Some servers report the lines of all tags for each job, empty if it has no such tag.
std::string tags_without(std::string_view left_out, const client::StatsBlock& stats) {
  std::string tags;
  for (const TagLines& tag : kTagLines) {
    if (tag.word == left_out) continue;
    const auto first = stats.text(tag.first).value_or("");
    if (first.empty()) continue;
    tags.append(tags.empty() ? "" : " ").append(tag.word).append(":").append(first);
    const auto second = stats.text(tag.second).value_or("");
    if (!second.empty() && second != tag.no_second) tags.append(":").append(second);
  }
  return tags;
}

constexpr std::string_view kAfter = "aft";

}  // namespace

std::string tags_of(const client::StatsBlock& stats) {
  return tags_without("", stats);
}

std::optional<JobRecord> record_of(const client::StatsBlock& stats) {
  const auto id = stats.number("id");
  const auto tube = stats.text("tube");
  const auto state = state_named(stats.text("state").value_or(""));
  if (!id || !tube || !state) return std::nullopt;
  JobRecord job;
  job.id = *id;
  job.tube = *tube;
  job.state = *state;
  job.priority = narrow(stats.count("pri"));
  if (*state == JobState::delayed) {
    job.delay_seconds = std::max(1U, narrow(stats.count("time-left")));
  }
  job.ttr_seconds = narrow(stats.count("ttr"));
  job.age_seconds = stats.count("age");
  job.reserves = stats.count("reserves");
  job.timeouts = stats.count("timeouts");
  job.releases = stats.count("releases");
  job.buries = stats.count("buries");
  job.kicks = stats.count("kicks");
  job.tags = tags_without(*state == JobState::delayed ? "" : kAfter, stats);
  return job;
}

bool may_be_held(const JobRecord& job) {
  const std::string tags = " " + job.tags;
  return job.state == JobState::delayed && job.delay_seconds <= 1 &&
         tags.find(" aft:") != tags.npos;
}

}  // namespace tubed::tubectl
