// The values of a tube and its first jobs for the statistics.
#pragma once

#include "base/time.h"
#include "facts/info.h"
#include "tables/job.h"

namespace tubed::engine {

// Since the job was put. Null: zero.
Duration age_of(const Job* job, Time now);

// Valid until the next change of the tube. O(log n), or O(b log b) with b jobs of late keys before
// the first that may be given.
TubeInfo info_of(const Tube& tube, Time now);

}  // namespace tubed::engine
