#include "stats/rows.h"

namespace tubed::stats {

namespace {

bool has_unique_key(const StoredJob& job) {
  return !job.job.tags.unique_key.empty();
}

bool has_concurrency_key(const StoredJob& job) {
  return !job.job.tags.concurrency_key.empty();
}

constexpr Row<StoredJob> kJob[] = {
    {.key = "id",
     .meaning = "The job's id.",
     .number = [](const StoredJob& j) { return j.job.id; }},
    {.key = "tube",
     .meaning = "Its tube's name.",
     .text = [](const StoredJob& j) { return j.job.tube; }},
    {.key = "state",
     .meaning = "ready, delayed, buried or reserved.",
     .plain = [](const StoredJob& j) { return name_of(j.job.state); }},
    {.key = "pri",
     .meaning = "Its priority, as put, release or bury last set it.",
     .number = [](const StoredJob& j) -> std::uint64_t { return j.job.priority; }},
    {.key = "age",
     .meaning = "Seconds since it was put.",
     .number = [](const StoredJob& j) { return whole_seconds_of(j.job.age); }},
    {.key = "delay",
     .meaning = "Its delay in seconds, rounded up, as put or release last set it.",
     .number = [](const StoredJob& j) -> std::uint64_t { return j.job.delay.count; }},
    {.key = "ttr",
     .meaning = "Its TTR in seconds, rounded up.",
     .number = [](const StoredJob& j) -> std::uint64_t { return j.job.ttr.count; }},
    {.key = "time-left",
     .meaning = "Seconds until it is ready again; 0 unless it is reserved or delayed.",
     .number = [](const StoredJob& j) { return whole_seconds_of(j.job.time_left); }},
    {.key = "file",
     .meaning = "The segment of the journal that holds it; 0 without one.",
     .number = [](const StoredJob& j) { return j.segment; }},
    {.key = "reserves",
     .meaning = "How often it was reserved.",
     .number = [](const StoredJob& j) -> std::uint64_t { return j.job.counters.reserves; }},
    {.key = "timeouts",
     .meaning = "How often its TTR passed.",
     .number = [](const StoredJob& j) -> std::uint64_t { return j.job.counters.timeouts; }},
    {.key = "releases",
     .meaning = "How often it was released.",
     .number = [](const StoredJob& j) -> std::uint64_t { return j.job.counters.releases; }},
    {.key = "buries",
     .meaning = "How often it was buried.",
     .number = [](const StoredJob& j) -> std::uint64_t { return j.job.counters.buries; }},
    {.key = "kicks",
     .meaning = "How often it was kicked.",
     .number = [](const StoredJob& j) -> std::uint64_t { return j.job.counters.kicks; }},
    {.key = "idempotency-key",
     .meaning = "Its unique key, if it was put with idp.",
     .text = [](const StoredJob& j) { return j.job.tags.unique_key; },
     .shown = has_unique_key},
    {.key = "idempotency-ttl",
     .meaning = "Seconds for which its unique key stays taken after its deletion.",
     .number = [](const StoredJob& j) -> std::uint64_t { return j.job.tags.cooldown.count; },
     .shown = has_unique_key},
    {.key = "concurrency-key",
     .meaning = "Its concurrency key, if it was put with con.",
     .text = [](const StoredJob& j) { return j.job.tags.concurrency_key; },
     .shown = has_concurrency_key},
    {.key = "concurrency-limit",
     .meaning = "How many jobs with this key may be reserved at once, by this job's tag.",
     .number = [](const StoredJob& j) -> std::uint64_t { return j.job.tags.concurrency_limit; },
     .shown = has_concurrency_key},
    {.key = "group",
     .meaning = "Its group, if it was put with grp.",
     .text = [](const StoredJob& j) { return j.job.tags.group; },
     .shown = [](const StoredJob& j) { return !j.job.tags.group.empty(); }},
    {.key = "after-group",
     .meaning = "The group that it waits for, or waited for, if it was put with aft.",
     .text = [](const StoredJob& j) { return j.job.tags.after; },
     .shown = [](const StoredJob& j) { return !j.job.tags.after.empty(); }},
    {.key = "max-attempts",
     .meaning = "How often it may be reserved, if it was put with max.",
     .number = [](const StoredJob& j) -> std::uint64_t { return *j.job.tags.max_attempts; },
     .shown = [](const StoredJob& j) { return j.job.tags.max_attempts.has_value(); }},
    {.key = "dead",
     .meaning = "Where it goes then, if max says so.",
     .text = [](const StoredJob& j) { return j.job.tags.dead; },
     .shown = [](const StoredJob& j) { return !j.job.tags.dead.empty(); }},
    {.key = "ttl",
     .meaning = "Seconds after its put when it expires, if it was put with ttl.",
     .number = [](const StoredJob& j) -> std::uint64_t { return j.job.tags.time_to_live->count; },
     .shown = [](const StoredJob& j) { return j.job.tags.time_to_live.has_value(); }},
    {.key = "dead-from",
     .meaning = "The tube where it was dead or expired, until a kick or a move.",
     .text = [](const StoredJob& j) { return j.job.marks.dead_from; },
     .shown = [](const StoredJob& j) { return !j.job.marks.dead_from.empty(); }},
    {.key = "dead-reason",
     .meaning = "Why: attempts, timeouts, releases or expired.",
     .plain = [](const StoredJob& j) { return word_of(j.job.marks.reason); },
     .shown = [](const StoredJob& j) { return !j.job.marks.dead_from.empty(); }},
};

}  // namespace

Rows<StoredJob> job_rows() {
  return kJob;
}

}  // namespace tubed::stats
