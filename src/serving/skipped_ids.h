// The ids that recovery skips.
#pragma once

#include "facts/types.h"

namespace tubed::serving {

// The number of ids skipped when the journal may lack acknowledged jobs whose ids clients may still
// have: a power failure loses jobs that were not synced (journal.sync is an interval or "never"),
// and a backup lacks the jobs put after it. Larger than either number in practice.
inline constexpr JobId kSkippedIds = 10'000'000;

}  // namespace tubed::serving
