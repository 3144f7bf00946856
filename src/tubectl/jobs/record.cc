#include "tubectl/jobs/record.h"

#include <algorithm>
#include <limits>

namespace tubed::tubectl {
namespace {

// A number from the server that does not fit becomes the largest that the protocol accepts.
std::uint32_t narrow(std::uint64_t number) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(number, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

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
  if (const auto key = stats.text("idempotency-key")) {
    const JobTags tags{.unique_key = *key, .cooldown = {narrow(stats.count("idempotency-ttl"))}};
    job.tags = text_of(tags);
  }
  return job;
}

}  // namespace tubed::tubectl
