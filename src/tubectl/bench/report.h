// The measurements of a run, as text.
#pragma once

#include <string>

#include "tubectl/bench/plan.h"

namespace tubed::tubectl::bench {

// Two lines, a head and the figures; latencies in microseconds.
std::string as_table(const Plan& plan, const Figures& figures);
// One line of JSON. The latencies of a run that measured nothing are null.
std::string as_json(const Plan& plan, const Figures& figures);

}  // namespace tubed::tubectl::bench
