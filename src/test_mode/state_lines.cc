// A load has two parts: read() takes all lines and checks them, and nothing changes if a line is
// malformed or the limits do not suffice. Then the policies are set, which govern the jobs from the
// start, then the pauses and the jobs.
//
// Whether a group holds a job follows from the tags of all jobs: a job that waits for a group, and
// is neither delayed nor buried, is held if the group has members in the queue or in the lines,
// before or after it.
#include "test_mode/state_lines.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
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

std::uint32_t narrow(std::uint64_t count) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(count, UINT32_MAX));
}

// A larger id would leave no ids for later jobs.
constexpr JobId kLargestId = 1ULL << 62;

constexpr std::string_view kPause = "pause";
constexpr std::string_view kPauseLeft = "pause_left_ms";
constexpr std::string_view kTimeLeft = "time_left_ms";
constexpr std::string_view kTtr = "ttr_ms";  // if it is not the whole seconds of `ttr`
constexpr std::string_view kPolicy = "policy";
constexpr std::string_view kPolicyKey = "key";
constexpr std::string_view kPolicyValue = "value";
constexpr std::string_view kDeadFrom = "dead_from";
constexpr std::string_view kDeadReason = "dead_reason";
constexpr std::string_view kAfterDone = "after_done";

// A counter when the present attempts of a job began, and its key.
struct CounterMark {
  std::string_view key;
  std::uint32_t JobMarks::*mark;
  std::uint64_t JobRecord::*counter;
};
constexpr std::array<CounterMark, 3> kCounterMarks{
    {{"reserves_before", &JobMarks::reserves, &JobRecord::reserves},
     {"timeouts_before", &JobMarks::timeouts, &JobRecord::timeouts},
     {"releases_before", &JobMarks::releases, &JobRecord::releases}}};

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

Json policy_line(std::string_view tube, std::string_view key, std::string_view value) {
  return {{std::string(kPolicy), tube},
          {std::string(kPolicyKey), key},
          {std::string(kPolicyValue), value}};
}

// `holds`: the jobs that each session holds.
Json connection_line(const engine::Engine& engine, SessionId session,
                     std::map<SessionId, std::vector<Json>>& holds) {
  std::vector<Json> watched;
  engine.queries().for_each_watched(session,
                                    [&](std::string_view tube) { watched.emplace_back(tube); });
  Json line{{"connection", connection_name(session)}, {"used", engine.used_tube(session)}};
  line["watched"] = Json::array(std::move(watched));
  line["holds"] = Json::array(std::move(holds[session]));
  line["waiting"] = engine.is_waiting(session);
  return line;
}

void set_marks(Json& line, const JobMarks& marks) {
  for (const CounterMark& row : kCounterMarks) {
    if (marks.*row.mark > 0) line[row.key] = marks.*row.mark;
  }
  if (!marks.dead_from.empty()) line[kDeadFrom] = marks.dead_from;
  if (marks.reason != DeathReason::none) line[kDeadReason] = word_of(marks.reason);
  if (marks.after_done) line[kAfterDone] = true;
}

Json job_line(const engine::Engine& engine, Time now, JobId id) {
  const engine::JobInfo info = *engine.queries().job_info(now, id);
  const bool delayed = info.state == JobState::delayed;
  // Rounded up: a delayed job stays delayed.
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
                .body = std::string(engine.queries().peek(id)->body.view())};
  Json line = json::as_json(job);
  if (const auto holder = engine.queries().holder_of(id)) line["holder"] = connection_name(*holder);
  if (delayed || info.state == JobState::reserved) line[kTimeLeft] = milliseconds(info.time_left);
  if (info.tags.ttr_short_by_ms > 0) {
    line[kTtr] = milliseconds(TimeSpan{info.ttr, info.tags.ttr_short_by_ms});
  }
  set_marks(line, info.marks);
  if (info.held) line["held"] = true;
  return line;
}

// --- Reading

struct LoadedJob {
  JobRecord record;
  Duration delay{};  // until it is ready
  TimeSpan ttr{};
  JobMarks marks = {};         // without dead_from
  std::string dead_from = {};  // of the marks
  bool held = false;
};

struct LoadedPolicy {
  std::string tube;
  PolicyKey key = PolicyKey::max_attempts;
  std::string value;
};

struct LoadedPause {
  std::string tube;
  TimeSpan duration;
};

struct Loaded {
  std::vector<LoadedJob> jobs;
  std::vector<LoadedPause> pauses;
  std::vector<LoadedPolicy> policies;
};

JobTags tags_of(const LoadedJob& job) {
  JobTags tags = protocol::tags_of({job.record.tags});
  tags.ttr_short_by_ms = job.ttr.short_by_ms;
  return tags;
}

// Valid as long as the job.
JobMarks marks_of(const LoadedJob& job) {
  JobMarks marks = job.marks;
  marks.dead_from = job.dead_from;
  return marks;
}

Result<void> read_death(const Json& line, LoadedJob& job) {
  if (const Json* const from = line.find(kDeadFrom)) {
    if (from->text() == nullptr || !is_tube_name(*from->text())) {
      return Error{"its \"dead_from\" is no tube's name"};
    }
    job.dead_from = *from->text();
  }
  const Json* const reason = line.find(kDeadReason);
  if (reason == nullptr) {
    if (!job.dead_from.empty()) return Error{"it has \"dead_from\" without \"dead_reason\""};
    return {};
  }
  for (const DeathReason each : {DeathReason::attempts, DeathReason::timeouts,
                                 DeathReason::releases, DeathReason::expired}) {
    if (*reason == Json(word_of(each))) job.marks.reason = each;
  }
  if (job.marks.reason != DeathReason::none) return {};
  return Error{"its \"dead_reason\" is not attempts, timeouts, releases or expired"};
}

Result<void> read_marks(const Json& line, LoadedJob& job) {
  for (const CounterMark& row : kCounterMarks) {
    const Json* const found = line.find(row.key);
    if (found == nullptr) continue;
    const auto number = found->number();
    // A mark above its counter would make a huge number of attempts.
    if (!number || *number > narrow(job.record.*row.counter)) {
      return Error{fmt::format("its \"{}\" is no whole number up to the counter", row.key)};
    }
    job.marks.*row.mark = narrow(*number);
  }
  TRY(read_death(line, job));
  const Json* const done = line.find(kAfterDone);
  if (done == nullptr || *done == Json(false)) return {};
  if (*done != Json(true)) return Error{"its \"after_done\" is neither true nor false"};
  if (tags_of(job).after.empty()) return Error{"it has \"after_done\" without a tag aft"};
  job.marks.after_done = true;
  return {};
}

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
  job.ttr.seconds.count = std::max(job.record.ttr_seconds, 1U);
  if (const Json* const ttr = line.find(kTtr)) {
    const auto exact = ttr->number();
    const bool is_ttr = exact && *exact / 1000 < UINT32_MAX &&
                        TimeSpan::of_milliseconds(*exact).seconds == job.ttr.seconds;
    if (!is_ttr) return Error{"its \"ttr_ms\" is not its \"ttr\" to the second"};
    job.ttr = TimeSpan::of_milliseconds(*exact);
  }
  TRY(read_marks(line, job));
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
  const std::uint64_t longest = UINT32_MAX * (left != nullptr ? 1000ULL : 1);
  if (*number > longest) return Error{"its pause is too long"};
  if (*number == 0) return {};
  loaded.pauses.push_back(
      {*tube->text(), TimeSpan::of_milliseconds(left != nullptr ? *number : *number * 1000)});
  return {};
}

Result<void> read_policy(const Json& line, Loaded& loaded) {
  const auto text_under = [&line](std::string_view key) {
    const Json* const found = line.find(key);
    const std::string* const text = found == nullptr ? nullptr : found->text();
    return text == nullptr ? std::string() : *text;
  };
  LoadedPolicy policy{.tube = text_under(kPolicy), .value = text_under(kPolicyValue)};
  if (!is_tube_name(policy.tube)) return Error{"its \"policy\" is no tube's name"};
  const auto key = find_policy_key(text_under(kPolicyKey));
  if (!key) return Error{"its \"key\" is no key of a policy"};
  policy.key = *key;
  if (!is_policy_value(policy.key, policy.value)) {
    return Error{"its \"value\" is no text that the key takes"};
  }
  loaded.policies.push_back(std::move(policy));
  return {};
}

Result<void> read_line(std::string_view text, const Limits& limits, Loaded& loaded) {
  const auto line = Json::parse(text);
  if (!line) return Error{"it is no JSON object"};
  const auto has = [&](std::string_view key) { return line->find(key) != nullptr; };
  if (has("body") || has("body_base64")) return read_job(text, *line, limits, loaded);
  if (has(kPause)) return read_tube(*line, loaded);
  if (has(kPolicy)) return read_policy(*line, loaded);
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

std::uint32_t memory_of(const LoadedJob& job) {
  const JobTags tags = tags_of(job);
  return static_cast<std::uint32_t>(job.record.body.size()) + engine::tags_memory(tags) +
         engine::marks_memory(tags, marks_of(job));
}

// Claims the memory of all jobs, or claims nothing and fails.
bool claim_all(const Loaded& loaded, engine::Engine& engine) {
  for (std::size_t i = 0; i < loaded.jobs.size(); ++i) {
    if (engine.memory().claim(memory_of(loaded.jobs[i]))) continue;
    while (i-- > 0) engine.memory().give_back(memory_of(loaded.jobs[i]));
    return false;
  }
  return true;
}

bool has_room_for(const std::vector<LoadedPolicy>& policies, const engine::Engine& engine) {
  std::set<std::pair<std::string_view, PolicyKey>> added;
  for (const LoadedPolicy& policy : policies) {
    const bool is_set = engine.queries().policies().is_set(policy.tube, policy.key);
    if (!is_set) added.emplace(policy.tube, policy.key);
  }
  return added.empty() ||
         engine.queries().policies().count() + added.size() <= engine.limits().policies;
}

// Decides which jobs are held.
void hold_jobs(std::vector<LoadedJob>& jobs, const engine::Engine& engine) {
  std::set<std::string, std::less<>> loaded;
  for (const LoadedJob& job : jobs) {
    if (const JobTags tags = tags_of(job); !tags.group.empty()) loaded.emplace(tags.group);
  }
  const auto has_members = [&](std::string_view group) {
    const auto info = engine.queries().group_info(group);
    return loaded.contains(group) || (info && info->members.total() > 0);
  };
  for (LoadedJob& job : jobs) {
    const JobTags tags = tags_of(job);
    const bool waits = !tags.after.empty() && !job.marks.after_done &&
                       job.record.state != JobState::buried && job.delay == Duration::zero();
    job.held = waits && has_members(tags.after);
  }
}

void add(const LoadedJob& job, commands::Service& service) {
  const JobRecord& record = job.record;
  const Time now = service.now();
  Bytes body = Bytes::allocate(static_cast<std::uint32_t>(record.body.size()));
  TUBED_ASSERT(body);
  std::ranges::copy(record.body, body.writable().begin());
  const bool delayed = job.held || job.delay > Duration::zero();
  const JobState state = record.state == JobState::buried ? JobState::buried
                         : delayed                        ? JobState::delayed
                                                          : JobState::ready;
  const Time until = job.held ? kNever : delayed ? now + job.delay : Time();
  service.engine().add_job(now,
                           {.id = std::max(record.id, service.engine().queries().next_id()),
                            .tube = record.tube,
                            .ttr = job.ttr.seconds,
                            .created = now - std::chrono::seconds(record.age_seconds),
                            .body = std::move(body),
                            .place = {.state = state,
                                      .priority = record.priority,
                                      .delay = Seconds{delayed ? record.delay_seconds : 0},
                                      .until = until},
                            .counters = {.reserves = narrow(record.reserves),
                                         .timeouts = narrow(record.timeouts),
                                         .releases = narrow(record.releases),
                                         .buries = narrow(record.buries),
                                         .kicks = narrow(record.kicks)}},
                           tags_of(job), marks_of(job), service);
}

void set(const LoadedPolicy& policy, commands::Service& service) {
  const bool is_set =
      service.engine().set_policy(service.now(), policy.tube, policy.key, policy.value, service);
  TUBED_ASSERT(is_set);
}

// Fails if the tube does not exist.
bool begin(const LoadedPause& pause, commands::Service& service) {
  return service.engine().pause(service.now(), pause.tube, pause.duration, service);
}

}  // namespace

std::string dump(const commands::Service& service, std::uint64_t clock_milliseconds) {
  const engine::Engine& engine = service.engine();
  std::string text;
  const auto append = [&](const Json& line) { text.append(json::to_line(line)).push_back('\n'); };
  append({{"clock_ms", clock_milliseconds}, {"draining", service.draining()}});
  engine.tube_list().for_each([&](std::string_view tube) {
    append(tube_line(*engine.queries().tube_info(service.now(), tube)));
  });
  engine.queries().policies().for_each(
      [&](std::string_view tube, std::string_view key, std::string_view value) {
        append(policy_line(tube, key, value));
      });
  std::map<SessionId, std::vector<Json>> holds;
  engine.queries().for_each_job([&](JobId id) {
    if (const auto holder = engine.queries().holder_of(id)) holds[*holder].emplace_back(id);
  });
  for (const commands::Conversation* one : service.conversations().all()) {
    if (one != nullptr) append(connection_line(engine, one->session(), holds));
  }
  engine.queries().for_each_job([&](JobId id) { append(job_line(engine, service.now(), id)); });
  return text;
}

Result<std::uint64_t> load(std::string_view lines, commands::Service& service) {
  Loaded loaded = TRY(read(lines, service.engine().limits()));
  if (!has_room_for(loaded.policies, service.engine())) {
    return Error{"the policies exceed limits.policies", Error::Kind::no_space};
  }
  if (!claim_all(loaded, service.engine())) {
    return Error{"the jobs exceed limits.job_memory", Error::Kind::no_space};
  }
  hold_jobs(loaded.jobs, service.engine());
  for (const LoadedPolicy& policy : loaded.policies) set(policy, service);
  // Before the jobs, which clients may wait for; and after them, where a job made the tube.
  std::erase_if(loaded.pauses, [&](const LoadedPause& pause) { return begin(pause, service); });
  for (const LoadedJob& job : loaded.jobs) add(job, service);
  for (const LoadedPause& pause : loaded.pauses) begin(pause, service);
  return loaded.jobs.size();
}

}  // namespace tubed::test_mode
