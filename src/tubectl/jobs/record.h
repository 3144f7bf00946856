// Converts the reply to stats-job to a JobRecord.
#pragma once

#include <optional>

#include "client/stats_block.h"
#include "json/job_record.h"
#include "tubectl/json.h"

namespace tubed::tubectl {

using json::as_json;
using json::JobRecord;
using json::kUsualPriority;
using json::kUsualTtrSeconds;
using json::read_record;
using json::state_named;

// Returns the job without its body. No value: these are not the stats of a job. A delayed job gets
// a delay of at least 1 s, to stay delayed. A job that is not delayed no longer waits for a group,
// so it gets no tag aft: a put with that tag would hold it again.
std::optional<JobRecord> record_of(const client::StatsBlock& stats);

// All tags in the same reply, as they are written in a put. Empty: none.
std::string tags_of(const client::StatsBlock& stats);

// True if a group may hold the job; also true in the last second of another delay.
bool may_be_held(const JobRecord& job);

}  // namespace tubed::tubectl
