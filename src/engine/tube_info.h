// What the statistics say about a tube and its first jobs.
#pragma once

#include "base/time.h"
#include "engine/info.h"
#include "engine/job.h"

namespace tubed::engine {

// Since the job was put. Null: zero.
Duration age_of(const Job* job, Time now);

// The ready job that the tube gives next, in a tube that stays as it is: Tube::first() does not
// know that keys may be late. Null: none. O(log n), or O(b log b) with b jobs of late keys before
// it.
const Job* first_ready(const Tube& tube);

// Valid until the next change of the tube. O(log n), or that of first_ready().
TubeInfo info_of(const Tube& tube, Time now);

}  // namespace tubed::engine
