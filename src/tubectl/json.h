// Statistics as JSON. json/ has the values, and the lines of jobs.
#pragma once

#include <string>

#include "client/stats_block.h"
#include "json/json.h"

namespace tubed::tubectl {

using json::body_of;
using json::from_base64;
using json::Json;
using json::set_body;
using json::to_base64;
using json::to_line;

// stats, stats-tube and stats-job, with the keys of the server. Numbers and truth values are JSON
// numbers and booleans.
Json stats_json(const client::StatsBlock& stats);
// stats_json() of stats-job, and `tags` as they are written in a put, if the job has any.
Json job_json(const client::StatsBlock& job);
// A line for each key, with aligned values, as text for users.
std::string aligned_lines(const Json& object);
// The lines of a job as text: id, tube, state, priority, age, delay, ttr, time_left, the counters,
// and its tags. Scripts may read them.
std::string job_lines(const client::StatsBlock& job);

}  // namespace tubed::tubectl
