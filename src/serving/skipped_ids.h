// Ids that are given to no job.
#pragma once

#include "engine/types.h"

namespace tubed::serving {

// Ids that are skipped when the journal may lack acknowledged jobs, whose ids clients may still
// have: a loss of power loses jobs that were not synced (journal.sync is an interval or "never"),
// and a backup lacks the jobs that were put after it. More than either can be in practice.
inline constexpr JobId kSkippedIds = 10'000'000;

}  // namespace tubed::serving
