#include "test_mode/state_lines.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "commands/conversation.h"
#include "json/job_record.h"
#include "protocol/arguments.h"
#include "test_mode/events.h"

namespace tubed::test_mode {

using json::JobRecord;
using json::Json;

namespace {

// With a larger id there would be none left for the jobs after it.
constexpr JobId kLargestId = 1ULL << 62;

constexpr std::string_view kPause = "pause";
constexpr std::string_view kPauseLeft = "pause_left_ms";
constexpr std::string_view kTimeLeft = "time_left_ms";

std::uint64_t milliseconds(Duration duration) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

// --- Writing

Json tube_line(const engine::TubeInfo& tube) {
  Json line{{"tube", tube.name}};
  line[kPause] = tube.pause.count;
  line[kPauseLeft] = milliseconds(tube.pause_left);
  line["total_jobs"] = tube.total_jobs;
  line["using"] = tube.using_count;
  line["watching"] = tube.watching_count;
  line["waiting"] = tube.waiting_count;
  return line;
}

// `holds`: the jobs that each session holds.
Json connection_line(const engine::Engine& engine, SessionId session,
                     std::map<SessionId, std::vector<Json>>& holds) {
  std::vector<Json> watched;
  engine.for_each_watched(session, [&](std::string_view tube) { watched.emplace_back(tube); });
  Json line{{"connection", connection_name(session)}, {"used", engine.used_tube(session)}};
  line["watched"] = Json::array(std::move(watched));
  line["holds"] = Json::array(std::move(holds[session]));
  line["waiting"] = engine.is_waiting(session);
  return line;
}

Json job_line(const engine::Engine& engine, Time now, JobId id) {
  const engine::JobInfo info = *engine.job_info(now, id);
  const bool delayed = info.state == JobState::delayed;
  // Rounded up, so that a delayed job stays delayed.
  constexpr std::chrono::seconds kSecond{1};
  const Duration delay = delayed ? info.time_left + kSecond - Duration(1) : Duration{};
  JobRecord job{.id = id,
                .tube = std::string(info.tube),
                .state = info.state,
                .priority = info.priority,
                .delay_seconds = static_cast<std::uint32_t>(whole_seconds(delay)),
                .ttr_seconds = info.ttr.count,
                .age_seconds = static_cast<std::uint64_t>(whole_seconds(info.age)),
                .reserves = info.counters.reserves,
                .timeouts = info.counters.timeouts,
                .releases = info.counters.releases,
                .buries = info.counters.buries,
                .kicks = info.counters.kicks,
                .tags = text_of(info.tags),
                .body = std::string(engine.peek(id)->body.view())};
  Json line = json::as_json(job);
  if (const auto holder = engine.holder_of(id)) line["holder"] = connection_name(*holder);
  if (delayed || info.state == JobState::reserved) line[kTimeLeft] = milliseconds(info.time_left);
  return line;
}

// --- Reading

struct LoadedJob {
  JobRecord record;
  Duration delay{};  // until it is ready
};

struct LoadedPause {
  std::string tube;
  Seconds duration;
};

struct Loaded {
  std::vector<LoadedJob> jobs;
  std::vector<LoadedPause> pauses;
};

Result<void> read_job(std::string_view text, const Json& line, const Limits& limits,
                      Loaded& loaded) {
  LoadedJob job{.record = TRY(json::read_record(text))};
  if (job.record.body.size() > limits.job_bytes) return Error{"its body exceeds limits.job_bytes"};
  if (job.record.id > kLargestId) return Error{"its id is too large"};
  if (job.record.state == JobState::delayed) {
    job.delay = std::chrono::seconds(job.record.delay_seconds);
    const Json* const left = line.find(kTimeLeft);
    const auto exact = left == nullptr ? std::nullopt : left->number();
    const std::chrono::seconds longest{UINT32_MAX};
    if (exact && *exact <= milliseconds(longest)) job.delay = std::chrono::milliseconds(*exact);
  }
  loaded.jobs.push_back(std::move(job));
  return {};
}

Result<void> read_tube(const Json& line, Loaded& loaded) {
  const Json* const tube = line.find("tube");
  if (tube == nullptr || tube->text() == nullptr || !is_tube_name(*tube->text())) {
    return Error{"its \"tube\" is no tube's name"};
  }
  const Json* const left = line.find(kPauseLeft);
  const auto number = (left != nullptr ? left : line.find(kPause))->number();
  if (!number) return Error{"its pause is no whole number"};
  const std::uint64_t seconds = left != nullptr ? (*number + 999) / 1000 : *number;
  if (seconds > UINT32_MAX) return Error{"its pause is too long"};
  if (seconds == 0) return {};
  loaded.pauses.push_back({*tube->text(), Seconds{static_cast<std::uint32_t>(seconds)}});
  return {};
}

Result<void> read_line(std::string_view text, const Limits& limits, Loaded& loaded) {
  const auto line = Json::parse(text);
  if (!line) return Error{"it is no JSON object"};
  const auto has = [&](std::string_view key) { return line->find(key) != nullptr; };
  if (has("body") || has("body_base64")) return read_job(text, *line, limits, loaded);
  if (has(kPause)) return read_tube(*line, loaded);
  if (has("clock_ms") || has("connection")) return {};
  return Error{"it is neither a job nor a line of test-dump"};
}

Result<Loaded> read(std::string_view lines, const Limits& limits) {
  Loaded loaded;
  for (std::size_t number = 1; !lines.empty(); ++number) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (auto taken = read_line(line, limits, loaded); !taken) {
      return Error{fmt::format("line {}: {}", number, taken.error().message)};
    }
  }
  return loaded;
}

JobTags tags_of(const JobRecord& job) {
  return protocol::tags_of({job.tags});
}

std::uint32_t memory_of(const JobRecord& job) {
  return static_cast<std::uint32_t>(job.body.size()) + engine::Engine::tags_memory(tags_of(job));
}

// Claims the memory of all jobs, or of none.
bool claim_all(const Loaded& loaded, engine::Engine& engine) {
  for (std::size_t i = 0; i < loaded.jobs.size(); ++i) {
    if (engine.claim_memory(memory_of(loaded.jobs[i].record))) continue;
    while (i-- > 0) engine.return_memory(memory_of(loaded.jobs[i].record));
    return false;
  }
  return true;
}

std::uint32_t narrow(std::uint64_t count) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count, UINT32_MAX));
}

void add(const LoadedJob& job, commands::Service& service) {
  const JobRecord& record = job.record;
  const Time now = service.now();
  Bytes body = Bytes::allocate(static_cast<std::uint32_t>(record.body.size()));
  TUBED_ASSERT(body);
  std::ranges::copy(record.body, body.writable().begin());
  const bool delayed = record.state == JobState::delayed && job.delay > Duration::zero();
  const JobState state = record.state == JobState::buried ? JobState::buried
                         : delayed                        ? JobState::delayed
                                                          : JobState::ready;
  service.engine().add_job(now,
                           {.id = std::max(record.id, service.engine().next_id()),
                            .tube = record.tube,
                            .ttr = Seconds{std::max(record.ttr_seconds, 1U)},
                            .created = now - std::chrono::seconds(record.age_seconds),
                            .body = std::move(body),
                            .place = {.state = state,
                                      .priority = record.priority,
                                      .delay = Seconds{delayed ? record.delay_seconds : 0},
                                      .until = delayed ? now + job.delay : Time()},
                            .counters = {.reserves = narrow(record.reserves),
                                         .timeouts = narrow(record.timeouts),
                                         .releases = narrow(record.releases),
                                         .buries = narrow(record.buries),
                                         .kicks = narrow(record.kicks)}},
                           tags_of(record), {}, service);
}

// False: there is no such tube.
bool begin(const LoadedPause& pause, commands::Service& service) {
  return service.engine().pause(service.now(), pause.tube, {.seconds = pause.duration}, service);
}

}  // namespace

std::string dump(const commands::Service& service, std::uint64_t clock_milliseconds) {
  const engine::Engine& engine = service.engine();
  std::string text;
  const auto append = [&](const Json& line) { text.append(json::to_line(line)).push_back('\n'); };
  append({{"clock_ms", clock_milliseconds}, {"draining", service.draining()}});
  engine.for_each_tube(
      [&](std::string_view tube) { append(tube_line(*engine.tube_info(service.now(), tube))); });
  std::map<SessionId, std::vector<Json>> holds;
  engine.for_each_job([&](JobId id) {
    if (const auto holder = engine.holder_of(id)) holds[*holder].emplace_back(id);
  });
  for (const commands::Conversation* one : service.conversations()) {
    if (one != nullptr) append(connection_line(engine, one->session(), holds));
  }
  engine.for_each_job([&](JobId id) { append(job_line(engine, service.now(), id)); });
  return text;
}

Result<std::uint64_t> load(std::string_view lines, commands::Service& service) {
  Loaded loaded = TRY(read(lines, service.engine().limits()));
  if (!claim_all(loaded, service.engine())) {
    return Error{"the jobs exceed limits.job_memory", Error::Kind::no_space};
  }
  // Before the jobs, which clients may wait for; and after them, where a job made the tube.
  std::erase_if(loaded.pauses, [&](const LoadedPause& pause) { return begin(pause, service); });
  for (const LoadedJob& job : loaded.jobs) add(job, service);
  for (const LoadedPause& pause : loaded.pauses) begin(pause, service);
  return loaded.jobs.size();
}

}  // namespace tubed::test_mode
