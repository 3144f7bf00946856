// The job that stats-job describes, as a JobRecord.
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

// From the reply to stats-job, so without the body. Nothing: these are not the stats of a job. A
// delayed job gets at least 1 s, so that it stays delayed. A job that is not delayed waits for no
// group any more, so it gets no tag aft, with which a put would hold it again.
std::optional<JobRecord> record_of(const client::StatsBlock& stats);

// From the same reply: all tags, as a put has them. Empty: none.
std::string tags_of(const client::StatsBlock& stats);

// A record_of() a job that a group holds. True also in the last second of another delay.
bool may_be_held(const JobRecord& job);

}  // namespace tubed::tubectl
