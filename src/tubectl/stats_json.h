// What stats, stats-tube and stats-job tell, as JSON and as lines for a person.
#pragma once

#include <string>

#include "client/stats_block.h"
#include "tubectl/json.h"

namespace tubed::tubectl {

// Keys as the server names them; numbers and truth values are no text.
Json stats_json(const client::StatsBlock& stats);

// Of stats-job, with the keys that all of tubectl uses: id, tube, state, priority, age, delay, ttr,
// time_left, reserves, timeouts, releases, buries, kicks.
Json job_json(const client::StatsBlock& job);

// A line for each key, the values one below the other.
std::string aligned_lines(const Json& object);

}  // namespace tubed::tubectl
