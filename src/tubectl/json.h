// The JSON of statistics. The values, and the lines of jobs, are those of json/.
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

// stats and stats-tube, with the keys of the server. Numbers and truth values are not text.
Json stats_json(const client::StatsBlock& stats);
// stats-job, with the keys that all of tubectl uses: id, tube, state, priority, age, delay, ttr,
// time_left, reserves, timeouts, releases, buries, kicks.
Json job_json(const client::StatsBlock& job);
// A line for each key, the values aligned, for people.
std::string aligned_lines(const Json& object);

}  // namespace tubed::tubectl
