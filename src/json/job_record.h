// JobRecord: a job as it goes from one place to another, and as a line of JSON.
//
// It knows no server: the caller passes the line.
//
// The JSON form is the format of tubectl export and import and of test-dump and test-load, and so a
// stable format: keys are added and never renamed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "facts/types.h"
#include "json/json.h"

namespace tubed::json {

// The values that most clients use: a job put by hand is not more urgent than theirs.
inline constexpr Priority kUsualPriority = 1024;
inline constexpr std::uint32_t kUsualTtrSeconds = 60;

struct JobRecord {
  JobId id = 0;
  std::string tube{kDefaultTube};
  JobState state = JobState::ready;
  Priority priority = kUsualPriority;
  std::uint32_t delay_seconds = 0;  // the remaining delay
  std::uint32_t ttr_seconds = kUsualTtrSeconds;
  std::uint64_t age_seconds = 0;
  std::uint64_t reserves = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t releases = 0;
  std::uint64_t buries = 0;
  std::uint64_t kicks = 0;
  std::string tags;  // as a put has them, "idp:key:300"; empty: none
  std::string body;
};

// Returns the state with this name in stats-job, such as "ready". Nothing: no state has the name.
std::optional<JobState> state_named(std::string_view name);

// One object: id, tube, state, priority, delay, ttr, age, the counters, tags if the job has any,
// and the body last.
Json as_json(const JobRecord& job);

// Reads such an object. Only the body must be there; else the job is as JobRecord has it. Keys that
// it does not know are passed over. The error says what is wrong, without the line's number.
Result<JobRecord> read_record(std::string_view line);

}  // namespace tubed::json
