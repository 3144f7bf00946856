// Makes the facts about jobs from their records.
#pragma once

#include "facts/fact.h"
#include "tables/job.h"
#include "tables/unique_keys.h"

namespace tubed::engine {

// The durable place of a job. While the job is reserved, this is the place where it was before.
// O(1).
Placement resting_place(const Job& job);

// Each emits one fact. Of a job with tags or marks that is `AddedWithTags` in place of `Added`, and
// `PlacedWithMarks` in place of `Placed`. O(1).

// `Added`. Precondition: the job has no tags, and is not reserved.
void emit_added(const Job& job, FactSink& sink);
// `Placed`, of a job that is not reserved.
void emit_placed(const Job& job, FactSink& sink);
// The same of a job in any state.
void emit_resting_place(const Job& job, FactSink& sink);
// `Added`, as the job rests at that time: a delay may have ended, even if the job is not ready yet.
void emit_job(const Job& job, Time now, FactSink& sink);
// `Placed`, the same.
void emit_place_at(const Job& job, Time now, FactSink& sink);
// `Held`, of a reserved job.
[[gnu::cold]] void emit_held(const Job& job, FactSink& sink);
// `Remembered`, of a key that has a cooldown.
void emit_cooldown(const UniqueKey& key, FactSink& sink);

}  // namespace tubed::engine
