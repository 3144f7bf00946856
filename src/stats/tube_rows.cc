#include "stats/rows.h"

namespace tubed::stats {

using engine::TubeInfo;
using engine::TubeMetrics;

namespace {

template <int kPercent>
Duration percentile(const LatencyHistogram* times) {
  return times == nullptr ? Duration::zero() : times->at(kPercent / 100.0);
}

// Absent while the tube has no such time.
template <LatencyHistogram TubeMetrics::*kTimes, int kPercent>
constexpr Row<TubeMetricsState> percentile_row(const Metric& metric) {
  return {.key = {},
          .meaning = {},
          .seconds =
              [](const TubeMetricsState& t) { return percentile<kPercent>(&(t.metrics.*kTimes)); },
          .metric = metric,
          .shown = [](const TubeMetricsState& t) { return (t.metrics.*kTimes).total() > 0; }};
}

constexpr Row<TubeInfo> kTube[] = {
    {.key = "name",
     .meaning = "The tube's name.",
     .text = [](const TubeInfo& t) { return t.name; }},
    {.key = "current-jobs-urgent",
     .meaning = "Ready jobs with a priority below 1024.",
     .number = [](const TubeInfo& t) { return t.jobs.urgent; }},
    {.key = "current-jobs-ready",
     .meaning = "Ready jobs.",
     .number = [](const TubeInfo& t) { return t.jobs.ready; },
     .metric = {.family = "tubed_tube_jobs",
                .label = "state=\"ready\"",
                .help = "The tube's jobs by state."}},
    {.key = "current-jobs-reserved",
     .meaning = "Jobs that clients hold.",
     .number = [](const TubeInfo& t) { return t.jobs.reserved; },
     .metric = {.family = "tubed_tube_jobs", .label = "state=\"reserved\""}},
    {.key = "current-jobs-delayed",
     .meaning = "Delayed jobs.",
     .number = [](const TubeInfo& t) { return t.jobs.delayed; },
     .metric = {.family = "tubed_tube_jobs", .label = "state=\"delayed\""}},
    {.key = "current-jobs-buried",
     .meaning = "Buried jobs.",
     .number = [](const TubeInfo& t) { return t.jobs.buried; },
     .metric = {.family = "tubed_tube_jobs", .label = "state=\"buried\""}},
    {.key = "total-jobs",
     .meaning = "Jobs put since the tube was created.",
     .number = [](const TubeInfo& t) { return t.total_jobs; },
     .metric = {.family = "tubed_tube_jobs_put_total",
                .type = MetricType::counter,
                .help = "Jobs put into the tube."}},
    {.key = "current-using",
     .meaning = "Connections whose puts go there.",
     .number = [](const TubeInfo& t) { return t.using_count; }},
    {.key = "current-watching",
     .meaning = "Connections that watch it.",
     .number = [](const TubeInfo& t) { return t.watching_count; }},
    {.key = "current-waiting",
     .meaning = "Connections that watch it and wait in a reserve.",
     .number = [](const TubeInfo& t) { return t.waiting_count; },
     .metric = {.family = "tubed_tube_waiting_connections",
                .help = "Connections that watch the tube and wait in a reserve."}},
    {.key = "cmd-delete",
     .meaning = "Jobs deleted since the tube was created.",
     .number = [](const TubeInfo& t) { return t.delete_count; },
     .metric = {.family = "tubed_tube_jobs_deleted_total",
                .type = MetricType::counter,
                .help = "Jobs deleted from the tube."}},
    {.key = "cmd-pause-tube",
     .meaning = "Pauses since the tube was created.",
     .number = [](const TubeInfo& t) { return t.pause_count; }},
    {.key = "pause",
     .meaning = "The length of the pause in seconds, rounded up; 0 when it is not paused.",
     .number = [](const TubeInfo& t) -> std::uint64_t { return t.pause.count; }},
    {.key = "pause-time-left",
     .meaning = "Seconds until the pause ends.",
     .number = [](const TubeInfo& t) { return whole_seconds_of(t.pause_left); }},
    {.key = "total-reserves",
     .meaning = "Reservations of its jobs since the tube was created.",
     .number = [](const TubeInfo& t) { return t.reserve_count; }},
    {.key = "total-timeouts",
     .meaning = "Reservations of its jobs whose TTR passed, since the tube was created.",
     .number = [](const TubeInfo& t) { return t.timeout_count; }},
    {.key = "total-buries",
     .meaning = "Burials of its jobs by the clients that held them, since the tube was created.",
     .number = [](const TubeInfo& t) { return t.bury_count; }},
    {.key = "oldest-ready-id",
     .meaning = "The id of the ready job that is given next; 0 if none is ready.",
     .number = [](const TubeInfo& t) { return t.next_ready_id; }},
    {.key = "oldest-ready-age",
     .meaning = "The age in seconds of the oldest ready job, with the error of "
                "tubed_tube_oldest_ready_job_age_seconds; of the job that is given next for a tube "
                "beyond http.max_tubes; 0 if none is ready.",
     .number = [](const TubeInfo& t) { return whole_seconds_of(t.oldest_ready_age); }},
    {.key = "oldest-delayed-age",
     .meaning = "The age in seconds of the delayed job with the least time left; 0 if none is "
                "delayed.",
     .number = [](const TubeInfo& t) { return whole_seconds_of(t.next_delayed_age); }},
    {.key = "oldest-buried-age",
     .meaning = "The age in seconds of the job that was buried first; 0 if none is buried.",
     .number = [](const TubeInfo& t) { return whole_seconds_of(t.first_buried_age); }},
    {.key = "processing-time-p50",
     .meaning = "The median time from a job's last reservation to its delete by its holder, in "
                "seconds with six digits after the point, at most 5 % and a microsecond off; "
                "0 without such a job and for a tube beyond http.max_tubes.",
     .seconds = [](const TubeInfo& t) { return percentile<50>(t.reserve_to_delete); }},
    {.key = "processing-time-p95",
     .meaning = "The same, of which 95 % of the times are not longer.",
     .seconds = [](const TubeInfo& t) { return percentile<95>(t.reserve_to_delete); }},
    {.key = "processing-time-p99",
     .meaning = "The same for 99 %.",
     .seconds = [](const TubeInfo& t) { return percentile<99>(t.reserve_to_delete); }},
    {.key = "queue-time-p50",
     .meaning = "The median time from a job's put to its first reservation, delays included, in "
                "the same form.",
     .seconds = [](const TubeInfo& t) { return percentile<50>(t.put_to_reserve); }},
    {.key = "queue-time-p95",
     .meaning = "The same, of which 95 % of the times are not longer.",
     .seconds = [](const TubeInfo& t) { return percentile<95>(t.put_to_reserve); }},
    {.key = "queue-time-p99",
     .meaning = "The same for 99 %.",
     .seconds = [](const TubeInfo& t) { return percentile<99>(t.put_to_reserve); }},
    {.key = "current-jobs-held",
     .meaning = "Delayed jobs that wait for a group.",
     .number = [](const TubeInfo& t) { return t.jobs.held; },
     .metric = {.family = "tubed_tube_held_jobs"}},
};

constexpr Row<TubeMetricsState> kTubeMetrics[] = {
    {.key = "",
     .meaning = "Reservations of the tube's jobs whose TTR passed.",
     .number = [](const TubeMetricsState& t) { return t.metrics.timeout_count; },
     .metric = {.family = "tubed_tube_job_timeouts_total", .type = MetricType::counter}},
    {.key = "",
     .meaning = "Puts that added no job, because a job of the tube has their unique key.",
     .number = [](const TubeMetricsState& t) { return t.metrics.deduplicated_count; },
     .metric = {.family = "tubed_tube_deduplicated_jobs_total", .type = MetricType::counter}},
    {.key = "",
     .meaning = "Jobs that came back after as many attempts as their policy or tag allows.",
     .number = [](const TubeMetricsState& t) { return t.metrics.dead_count; },
     .metric = {.family = "tubed_tube_dead_jobs_total", .type = MetricType::counter}},
    {.key = "",
     .meaning = "Jobs whose time to live passed before they were reserved.",
     .number = [](const TubeMetricsState& t) { return t.metrics.expired_count; },
     .metric = {.family = "tubed_tube_expired_jobs_total", .type = MetricType::counter}},
    {.key = "",
     .meaning = "How often the tube had given all jobs that its rate allows.",
     .number = [](const TubeMetricsState& t) { return t.metrics.rate_limited_count; },
     .metric = {.family = "tubed_tube_rate_limited_total", .type = MetricType::counter}},
    {.key = "",
     .meaning = "1 while the tube is paused; of all others, how many are.",
     .number = [](const TubeMetricsState& t) { return t.metrics.paused_count; },
     .metric = {.family = "tubed_tube_paused"}},
    {.key = "",
     .meaning = "About how long ago the oldest ready job was put, delays included (exact where "
                "jobs are taken in order; else within a quarter, or a tenth of a second); 0 if "
                "none is ready.",
     .seconds = [](const TubeMetricsState& t) { return t.metrics.oldest_ready_age(t.now); },
     .metric = {.family = "tubed_tube_oldest_ready_job_age_seconds"}},
    {.key = "",
     .meaning = "From a job's put to its first reservation, delays included.",
     .histogram = [](const TubeMetricsState& t) { return t.metrics.put_to_reserve.counts(); },
     .metric = {.family = "tubed_tube_put_to_reserve_seconds", .type = MetricType::histogram}},
    {.key = "",
     .meaning = "From a job's last reservation to its delete by who held it.",
     .histogram = [](const TubeMetricsState& t) { return t.metrics.reserve_to_delete.counts(); },
     .metric = {.family = "tubed_tube_reserve_to_delete_seconds", .type = MetricType::histogram}},
    percentile_row<&TubeMetrics::put_to_reserve, 50>(
        {.family = "tubed_tube_put_to_reserve_percentile_seconds",
         .label = "percentile=\"50\"",
         .help = "From a job's put to its first reservation: the time that this share of the "
                 "tube's jobs did not exceed, at most 5 % off above a microsecond."}),
    percentile_row<&TubeMetrics::put_to_reserve, 95>(
        {.family = "tubed_tube_put_to_reserve_percentile_seconds", .label = "percentile=\"95\""}),
    percentile_row<&TubeMetrics::put_to_reserve, 99>(
        {.family = "tubed_tube_put_to_reserve_percentile_seconds", .label = "percentile=\"99\""}),
    percentile_row<&TubeMetrics::reserve_to_delete, 50>(
        {.family = "tubed_tube_reserve_to_delete_percentile_seconds",
         .label = "percentile=\"50\"",
         .help = "From a job's last reservation to its delete by who held it, in the same form."}),
    percentile_row<&TubeMetrics::reserve_to_delete, 95>(
        {.family = "tubed_tube_reserve_to_delete_percentile_seconds",
         .label = "percentile=\"95\""}),
    percentile_row<&TubeMetrics::reserve_to_delete, 99>(
        {.family = "tubed_tube_reserve_to_delete_percentile_seconds",
         .label = "percentile=\"99\""}),
};

}  // namespace

Rows<TubeInfo> tube_rows() {
  return kTube;
}

Rows<TubeMetricsState> tube_metrics_rows() {
  return kTubeMetrics;
}

}  // namespace tubed::stats
