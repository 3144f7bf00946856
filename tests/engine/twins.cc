#include "tests/engine/twins.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include <doctest/doctest.h>

namespace tubed::engine {

namespace {

std::string text_of(TimeSpan span) {
  return std::to_string(Duration(span) / std::chrono::milliseconds(1)) + "ms";
}

constexpr std::size_t kHistory = 25;

const std::uint64_t kTagMemory = tags_memory({.unique_key = "k"}) - UniqueKeys::cost_of("k");

Bytes body_of_size(std::uint64_t size) {
  return Bytes::copy_of(std::string(size, static_cast<char>('a' + size)));
}

}  // namespace

Twins::Twins(std::uint64_t seed)
    : seed_(seed),
      random_(seed),
      tube_count_(2 + below(4)),
      crowded_(one_in(3)),
      session_count_(crowded_ ? 8 : 1 + below(6)),
      time_grain_(static_cast<std::uint32_t>(2 + below(4))),
      restart_chance_(one_in(2) ? 60 : 1500),
      compacts_(one_in(2)),
      records_(one_in(2)),
      limits_(some_limits()),
      engine_(std::make_unique<Engine>(limits_)),
      model_(limits_,
             {.job = JobMemory::cost_of(0),
              .tags = kTagMemory,
              .key = UniqueKeys::cost_of(""),
              .tube = UniqueKeys::cost_of_tube(""),
              .life = tags_memory({.max_attempts = 1}) - kTagMemory,
              .concurrency = ConcurrencyKeys::cost_of(""),
              .groups = Groups::cost_of("", "")},
             [this](std::string_view tube) { return mean_seconds(tube); }) {
  if (records_) engine_->recorded_reservations().record_to(&engine_output_);
  if (records_) model_.record_reservations(&model_output_);
}

Limits Twins::some_limits() {
  constexpr std::array<std::uint32_t, 6> kWorkLimits = {1, 2, 3, 5, 1000, 1000};
  return {.job_bytes = 100,
          .job_memory_bytes = (4 + below(24)) * JobMemory::cost_of(100),
          .tubes = static_cast<std::uint32_t>(2 + below(5)),
          .policies = static_cast<std::uint32_t>(below(8)),
          .watches = static_cast<std::uint32_t>((crowded_ ? 20 : 4) + below(12)),
          .work_per_turn = kWorkLimits[below(kWorkLimits.size())],
          .short_watch_list = seed_ % 2 == 0 ? 1U : 256U,
          .tubes_with_metrics = static_cast<std::uint32_t>(below(5)),
          .metrics_retention = some_seconds(6)};
}

std::string Twins::some_tube() {
  const std::uint64_t number = below(tube_count_);
  return number == 0 ? std::string(kDefaultTube) : std::string(1, static_cast<char>('a' + number));
}

JobId Twins::some_job() {
  const auto& jobs = model_.jobs();
  if (jobs.empty() || one_in(20)) return below(model_.next_job_id() + 2);
  return jobs[below(jobs.size())].id;
}

Priority Twins::some_priority() {
  constexpr std::array<Priority, 5> kPriorities = {0, 1, 1023, 1024, UINT32_MAX};
  return kPriorities[below(kPriorities.size())];
}

// --- Agreeing

std::string Twins::story() const {
  std::string story = "seed " + std::to_string(seed_) + ", step " + std::to_string(steps_) +
                      ", at " + describe(now_);
  for (const std::string& operation : history_) story += "\n  " + operation;
  return story + "\n";
}

void Twins::expect(bool agreed, const std::string& what) const {
  if (!agreed) FAIL("engine and model disagree about " << what << "\n" << story());
}

template <class T>
void Twins::expect_equal(std::string_view what, const T& engine, const T& model) const {
  if (engine == model) return;
  expect(false, std::string(what) + ": " + doctest::toString(engine).c_str() + ", not " +
                    doctest::toString(model).c_str());
}

void Twins::expect_same(std::string_view what, const Lines& engine, const Lines& model) const {
  if (engine == model) return;
  // From the first difference on.
  const auto [in_engine, in_model] =
      std::mismatch(engine.begin(), engine.end(), model.begin(), model.end());
  std::string both(what);
  for (auto line = in_engine; line != engine.end(); ++line) both += "\n  engine: " + *line;
  for (auto line = in_model; line != model.end(); ++line) both += "\n  model:  " + *line;
  expect(false, both);
}

// --- Operations

void Twins::open() {
  if (sessions_.size() >= session_count_) return;
  const SessionId id = engine_->open();
  trace("open " + std::to_string(id));
  expect(model_.open(id), "the id of a new session");
  sessions_.push_back(id);
}

void Twins::close() {
  const SessionId id = some_session();
  trace("close " + std::to_string(id));
  std::erase(sessions_, id);
  engine_->close(id, now_, engine_output_);
  model_.close(id, now_, model_output_);
}

void Twins::use() {
  const SessionId id = some_session();
  const std::string tube = some_tube();
  trace(std::to_string(id) + " use " + tube);
  expect_equal("use", engine_->use(id, now_, tube), model_.use(id, tube));
}

void Twins::watch() {
  const SessionId id = some_session();
  if (model_.waits(id)) return;
  const std::string tube = some_tube();
  const auto weight = static_cast<std::uint32_t>(1 + below(3));
  trace(std::to_string(id) + " watch " + tube + " " + std::to_string(weight));
  expect_equal("watch", engine_->watch(id, now_, tube, weight), model_.watch(id, tube, weight));
}

void Twins::set_mode() {
  const SessionId id = some_session();
  if (model_.waits(id)) return;
  const auto mode = static_cast<ReserveMode>(below(3));
  trace(std::to_string(id) + " reserve mode " + std::to_string(static_cast<int>(mode)));
  engine_->set_mode(id, mode);
  model_.set_mode(id, mode);
}

void Twins::ignore() {
  const SessionId id = some_session();
  if (model_.waits(id)) return;
  const std::string tube = some_tube();
  trace(std::to_string(id) + " ignore " + tube);
  expect_equal("ignore", engine_->ignore(id, now_, tube), model_.ignore(id, tube));
}

void Twins::pause() {
  const std::string tube = some_tube();
  const TimeSpan duration = some_span();
  trace("pause " + tube + " " + text_of(duration));
  expect_equal("pause", engine_->pause(now_, tube, duration, engine_output_),
               model_.pause(tube, duration, now_, model_output_));
}

std::string Twins::some_value(PolicyKey key) {
  const std::string number = std::to_string(below(4));
  switch (key) {
    case PolicyKey::dead:
    case PolicyKey::expired:
      return one_in(3) ? "bury" : one_in(3) ? "delete" : some_tube();
    case PolicyKey::backoff:
      return one_in(2) ? number : number + ":" + std::to_string(3 + below(9)) + ":3";
    case PolicyKey::rate:
      return one_in(3) ? "0" : std::to_string(1 + below(3)) + "/" + std::to_string(1 + below(3));
    case PolicyKey::keep:
      return one_in(2) ? "1" : "0";
    case PolicyKey::ttl:
      return std::to_string(below(3 * time_grain_));
    default:
      return number;
  }
}

void Twins::set_policy() {
  const std::string tube = some_tube();
  const auto key = static_cast<PolicyKey>(below(kPolicyKeys));
  const std::string value = one_in(2) ? std::string(kNoPolicyValue) : some_value(key);
  trace("policy of " + tube + ": " +
        std::string(policy_keys()[static_cast<std::size_t>(key)].name) + " " + value);
  expect_equal("set_policy", engine_->set_policy(now_, tube, key, value, engine_output_),
               model_.set_policy(now_, tube, key, value, model_output_));
}

void Twins::set_patterns() {
  std::vector<TubePattern> patterns(below(3));
  for (TubePattern& pattern : patterns) {
    pattern.tubes = one_in(2) ? "*" : "[a-c]";
    const std::uint64_t key = below(kPolicyKeys);
    pattern.values[key] = some_value(static_cast<PolicyKey>(key));
  }
  trace("patterns: " + std::to_string(patterns.size()));
  engine_->set_patterns(now_, patterns, engine_output_);
  model_.set_patterns(now_, patterns, model_output_);
}

void Twins::claim() {
  const auto size = static_cast<std::uint32_t>(below(4));
  trace("claim " + std::to_string(size));
  const bool claimed = engine_->memory().claim(size);
  expect_equal("claim_memory", claimed, model_.claim_memory(size));
  if (claimed) claims_.push_back(size);
}

void Twins::return_claim() {
  if (claims_.empty()) return;
  const std::uint32_t size = claims_.back();
  claims_.pop_back();
  trace("return claim " + std::to_string(size));
  engine_->memory().give_back(size);
  model_.return_memory(size);
}

void Twins::put() {
  const SessionId id = some_session();
  engine_->mark_producer(id);
  model_.mark_producer(id);
  const bool arrived = !claims_.empty() && one_in(2);
  if (!arrived) claim();
  if (claims_.empty()) return;
  const Bytes body = body_of_size(claims_.back());
  claims_.pop_back();
  const Priority priority = some_priority();
  const bool at_once = one_in(crowded_ ? 6 : 2);
  const TimeSpan delay = at_once ? TimeSpan() : some_span();
  const Seconds ttr = some_seconds(time_grain_);
  trace(std::to_string(id) + " put " + std::to_string(priority) + " " + text_of(delay) + " " +
        std::to_string(ttr.count));
  Model::Job job;
  job.priority = priority;
  job.delay = delay;
  job.ttr = ttr;
  job.body = body;
  const PutRequest request{.priority = priority, .delay = delay, .ttr = ttr, .body = body};
  if (!one_in(3)) {
    return expect_equal("the new job's id", engine_->put(id, now_, request, engine_output_),
                        model_.put(id, now_, job, model_output_));
  }
  const std::string tube = some_tube();
  trace("  in tube " + tube);
  const bool has_room = engine_->queries().has_room_for_tube(tube);
  const auto engine = engine_->put_in_tube(now_, tube, request, engine_output_);
  const auto model = model_.put_in_tube(tube, now_, job, model_output_);
  expect_equal("the new job's id", engine.value_or(0), model.value_or(0));
  expect_equal("room for the tube", has_room, engine.has_value());
  if (!engine) claims_.push_back(body.size());
}

// Uses few keys: most are taken.
void Twins::put_with_tags() {
  const std::string tube = some_tube();
  Model::Job job;
  if (!one_in(3)) job.key = one_in(2) ? "k" : "key";
  if (!job.key.empty() && one_in(2)) job.cooldown = some_seconds(2 * time_grain_);
  if (one_in(3)) {
    job.max_attempts = static_cast<std::uint32_t>(below(4));
    if (one_in(2)) job.dead = some_value(PolicyKey::dead);
  }
  if (one_in(2)) {
    job.concurrency_key = one_in(2) ? "k" : "l";
    job.concurrency_limit = static_cast<std::uint32_t>(1 + below(3));
  }
  if (one_in(2)) job.group = one_in(2) ? "g" : "h";
  if (one_in(2)) job.after = one_in(2) ? "g" : "h";
  const TimeSpan ttr = some_span();
  job.ttr = ttr.seconds;
  job.ttr_short_by_ms = ttr.short_by_ms;
  if (!job.has_tags() || one_in(4)) job.time_to_live = some_seconds(3 * time_grain_);
  job.body = body_of_size(static_cast<std::uint32_t>(below(4)));
  job.priority = some_priority();
  job.delay = one_in(2) ? TimeSpan() : some_span();
  const JobTags tags = job.tags();
  const std::uint32_t memory = job.body.size() + tags_memory(tags);
  trace("put in tube " + tube + " " + std::to_string(job.priority) + " " + text_of(job.delay) +
        " " + text_of(ttr) + " " + text_of(tags));
  const bool claimed = engine_->memory().claim(memory);
  expect_equal("claim_memory", claimed, model_.claim_memory(memory));
  if (!claimed) return;
  const PutRequest request{
      .priority = job.priority, .delay = job.delay, .ttr = job.ttr, .body = job.body};
  const auto engine = engine_->put_with_tags(now_, tube, request, tags, engine_output_);
  const auto model = model_.put_with_tags(tube, now_, job, model_output_);
  expect_equal("room for the tube", engine.has_value(), model.has_value());
  if (!engine) {
    engine_->memory().give_back(memory);
    model_.return_memory(memory);
    return;
  }
  expect_equal("the job's id", engine->id, model->id);
  expect_equal("whether it was added", engine->added, model->added);
  expect(engine->state == model->state, "the state of the job that has the key");
  expect(engine->lowered_to == model->lowered_to, "its new priority");
}

void Twins::reserve() {
  const SessionId id = some_session();
  if (model_.waits(id)) return;
  std::optional<Duration> limit;
  const bool forever = crowded_ ? !one_in(6) : one_in(3);
  if (!forever) limit = some_seconds(time_grain_);
  trace(std::to_string(id) + " reserve " +
        (limit ? std::to_string(std::uint64_t(limit->count())) + "ns" : "forever"));
  const auto given = engine_->reserve(id, now_, {.limit = limit.value_or(Wait::kForever)});
  if (given) engine_output_.notice(*given);
  model_.reserve(id, now_, limit, model_output_);
}

void Twins::reserve_ready() {
  const SessionId id = some_session();
  if (model_.waits(id)) return;
  trace(std::to_string(id) + " reserve ready");
  const auto next = engine_->queries().peek_next(id, now_);
  const auto engine = engine_->reserve_ready(id, now_);
  expect_equal("the ready job reserved", engine ? engine->id : 0, model_.reserve_ready(id, now_));
  expect_equal("the next job", next ? next->id : 0, engine ? engine->id : 0);
}

void Twins::wait_for_job() {
  const SessionId id = some_session();
  if (model_.waits(id)) return;
  const JobId job = some_job();
  std::optional<Duration> limit;
  if (!one_in(3)) limit = some_seconds(time_grain_);
  trace(std::to_string(id) + " wait " + std::to_string(job) + " " +
        (limit ? std::to_string(std::uint64_t(limit->count())) + "ns" : "forever"));
  const auto answer =
      engine_->wait_for_job(id, now_, job, {.limit = limit.value_or(Wait::kForever)});
  if (answer) engine_output_.notice(*answer);
  model_.wait_for_job(id, now_, job, limit, model_output_);
}

void Twins::cancel_wait() {
  const SessionId id = some_session();
  if (!model_.waits(id)) return;
  trace(std::to_string(id) + " cancel wait");
  engine_->cancel_wait(id);
  model_.cancel_wait(id);
}

void Twins::reserve_job() {
  const SessionId id = some_session();
  const JobId job = some_job();
  trace(std::to_string(id) + " reserve job " + std::to_string(job));
  const auto reserved = engine_->reserve_job(id, now_, job);
  expect_equal("reserve_job", reserved.has_value(), model_.reserve_job(id, now_, job));
  if (reserved) expect_equal("the job reserved", reserved->id, job);
}

void Twins::remove() {
  const SessionId id = some_session();
  const JobId job = some_job();
  trace(std::to_string(id) + " delete " + std::to_string(job));
  expect_equal("remove", engine_->remove(id, now_, job, engine_output_),
               model_.remove(id, now_, job, model_output_));
}

void Twins::release() {
  const SessionId id = some_session();
  const JobId job = some_job();
  const Priority priority = some_priority();
  const TimeSpan delay = some_span();
  trace(std::to_string(id) + " release " + std::to_string(job) + " " + std::to_string(priority) +
        " " + text_of(delay));
  expect_equal("release", engine_->release(id, now_, job, priority, delay, engine_output_),
               model_.release(id, now_, job, priority, delay, model_output_));
}

void Twins::bury() {
  const SessionId id = some_session();
  const JobId job = some_job();
  const Priority priority = some_priority();
  trace(std::to_string(id) + " bury " + std::to_string(job) + " " + std::to_string(priority));
  expect_equal("bury", engine_->bury(id, now_, job, priority, engine_output_),
               model_.bury(id, now_, job, priority, model_output_));
}

void Twins::touch() {
  const SessionId id = some_session();
  const JobId job = some_job();
  trace(std::to_string(id) + " touch " + std::to_string(job));
  std::optional<TimeSpan> left;
  if (one_in(3)) left = some_span();
  expect_equal("touch", engine_->touch(id, now_, job, left), model_.touch(id, now_, job, left));
}

void Twins::kick_job() {
  const JobId job = some_job();
  const TimeSpan delay = one_in(2) ? TimeSpan() : some_span();
  trace("kick job " + std::to_string(job) + " " + text_of(delay));
  expect_equal("kick_job", engine_->kick_job(now_, job, delay, engine_output_),
               model_.kick_job(now_, job, delay, model_output_));
}

void Twins::begin_kick() {
  const std::string tube = some_tube();
  const std::uint64_t bound = below(8);
  if (one_in(2)) {
    trace("begin kick " + tube + " " + std::to_string(bound));
    return begin_slices(Work::kick, engine_->queries().slices_to_kick(tube, bound),
                        model_.begin_kick(tube, std::nullopt, bound));
  }
  const JobState state = one_in(2) ? JobState::buried : JobState::delayed;
  trace("begin kick " + tube + " " + std::string(name_of(state)) + " " + std::to_string(bound));
  begin_slices(Work::kick, engine_->queries().slices(tube, state, bound),
               model_.begin_kick(tube, state, bound));
}

void Twins::begin_flush() {
  const std::string tube = some_tube();
  const auto state = static_cast<JobState>(below(4));
  const std::uint64_t bound = below(8);
  trace("begin flush " + tube + " " + std::string(name_of(state)) + " " + std::to_string(bound));
  begin_slices(Work::flush, engine_->queries().slices(tube, state, bound),
               model_.begin_flush(tube, state, bound));
}

void Twins::begin_move() {
  const std::string tube = some_tube();
  const auto state = static_cast<JobState>(below(3));
  const std::uint64_t bound = below(8);
  trace("begin move " + tube + " " + std::string(name_of(state)) + " " + std::to_string(bound));
  begin_slices(Work::move, engine_->queries().slices(tube, state, bound),
               model_.begin_flush(tube, state, bound));
}

void Twins::begin_slices(Work work, const Slices& engine, const Model::Slices& model) {
  expect(engine.left == 0 || engine.state == model.state, "the state to work on");
  expect_equal("how many to work on", engine.left, model.left);
  slices_.push_back({work, engine, model, some_tube()});
  continue_slices();
}

void Twins::continue_slices() {
  if (slices_.empty()) return;
  OpenSlices& slices = slices_.back();
  switch (slices.work) {
    case Work::kick:
      trace("kick");
      expect_equal("kicked", engine_->kick(now_, slices.engine, engine_output_),
                   model_.kick(slices.model, now_, model_output_));
      break;
    case Work::flush:
      trace("flush slice");
      expect_equal("flushed",
                   engine_->flush_slice(now_, slices.engine, engine_output_, engine_output_),
                   model_.flush_slice(slices.model, now_, model_output_));
      break;
    case Work::move: {
      trace("move slice to " + slices.to);
      const auto engine =
          engine_->tube_moves().move_slice(now_, slices.engine, slices.to, engine_output_);
      const auto model = model_.move_slice(now_, slices.model, slices.to, model_output_);
      expect_equal("room for the tube", engine.has_value(), model.has_value());
      expect_equal("moved", engine.value_or(0), model.value_or(0));
      break;
    }
  }
  expect_equal("left to work on", slices.engine.left, slices.model.left);
  if (slices.engine.left == 0) slices_.pop_back();
}

void Twins::move_job() {
  const SessionId id = some_session();
  const JobId job = some_job();
  const std::string tube = some_tube();
  std::optional<NewPlace> place;
  if (one_in(2)) {
    place = {.priority = some_priority(), .delay = one_in(2) ? TimeSpan() : some_span()};
  }
  trace(std::to_string(id) + " move " + std::to_string(job) + " to " + tube +
        (place ? " " + std::to_string(place->priority) + " " + text_of(place->delay) : ""));
  const auto engine = engine_->tube_moves().move(id, now_, job, tube, place, engine_output_);
  expect(engine == model_.move_job(id, now_, job, tube, place, model_output_), "move");
}

void Twins::reprioritize() {
  const JobId job = some_job();
  const Priority priority = some_priority();
  trace("reprioritize " + std::to_string(job) + " " + std::to_string(priority));
  const auto engine = engine_->tube_moves().reprioritize(job, priority, engine_output_);
  expect(engine == model_.reprioritize(job, priority, model_output_), "reprioritize");
}

void Twins::remove_held() {
  const JobId job = some_job();
  trace("remove from its holder " + std::to_string(job));
  expect_equal("removed", engine_->remove_held(now_, job, engine_output_),
               model_.remove_held(now_, job, model_output_));
}

void Twins::flush() {
  const std::string tube = some_tube();
  trace("flush " + tube);
  expect_equal("flushed", engine_->flush(now_, tube, engine_output_),
               model_.flush(tube, now_, model_output_));
}

void Twins::truncate() {
  const std::string tube = some_tube();
  trace("truncate " + tube);
  const auto engine = engine_->truncate(now_, tube, engine_output_);
  const auto model = model_.truncate(tube, now_, model_output_);
  expect_equal("truncated a tube that is there", engine.has_value(), model.has_value());
  expect_equal("truncated", engine.value_or(0), model.value_or(0));
}

void Twins::remove_pending() {
  trace("remove what is pending");
  const std::size_t slice = std::max(limits_.work_per_turn / 8, 1U);
  const std::size_t jobs = std::min(model_.flushed_jobs(), slice);
  const auto& log = engine_output_.log();
  const std::size_t before = log.size();
  engine_->remove_pending(now_, engine_output_, engine_output_);
  for (std::size_t i = before; i < before + jobs; ++i) {
    expect(i < log.size(), "as many flushed jobs are removed");
    const Fact fact = log[i].fact();
    const auto* removed = std::get_if<Removed>(&fact);
    expect(removed != nullptr && model_.remove_flushed(removed->id, model_output_),
           "the flushed jobs that are removed");
  }
  for (std::size_t i = jobs; i < slice; ++i) model_.remove_key(now_, model_output_);
  model_.end_removals(now_, model_output_);
}

void Twins::advance() {
  constexpr std::array<std::int64_t, 8> kSteps = {
      0, 0, 1, 500'000'000, 999'999'999, 1'000'000'000, 1'000'000'000, 2'000'000'000};
  now_ += Duration(kSteps[below(kSteps.size())]);
  // Mostly back onto the grid of whole seconds, where deadlines meet.
  const std::int64_t off = now_.time_since_epoch().count() % 1'000'000'000;
  if (off != 0 && !one_in(3)) now_ += Duration(1'000'000'000 - off);
  engine_output_.set_time(now_);
  trace("advance to " + describe(now_));
  engine_->advance(now_, engine_output_);
  model_.advance(now_, model_output_);
}

void Twins::set_limits() {
  limits_ = some_limits();
  trace("limits: tubes " + std::to_string(limits_.tubes) + ", watches " +
        std::to_string(limits_.watches) + ", memory " + std::to_string(limits_.job_memory_bytes) +
        ", work " + std::to_string(limits_.work_per_turn));
  engine_->set_limits(limits_);
  model_.set_limits(limits_);
}

void Twins::restart() {
  trace("restart");
  Recording what_is_there;
  what_is_there.set_time(now_);
  engine_->durable_state().visit(now_, what_is_there);
  engine_ = std::make_unique<Engine>(limits_);
  engine_->set_patterns(now_, model_.patterns(), what_is_there);
  for (const RecordedFact& kept : what_is_there.log()) engine_->replay(now_, kept.fact());
  engine_->end_replay();
  if (records_) engine_->recorded_reservations().record_to(&engine_output_);
  model_.restart(now_);
  sessions_.clear();
  slices_.clear();
  claims_.clear();
  if (compacts_) {
    engine_output_.clear_log();
    log_before_ = what_is_there.log();
  }
  if (!one_in(3)) hold_over();
}

void Twins::hold_over() {
  const Time until = one_in(5) ? kNever : now_ + some_seconds(time_grain_);
  trace("hold over until " + describe(until));
  engine_->recorded_reservations().hold_over(until);
  model_.hold_over(until);
}

struct Twins::Operation {
  std::uint64_t weight;
  void (Twins::*run)();
};

void Twins::some_operation() {
  static constexpr std::array kOperations = {
      Operation{500, &Twins::put},           Operation{450, &Twins::reserve},
      Operation{400, &Twins::advance},       Operation{200, &Twins::remove},
      Operation{200, &Twins::release},       Operation{180, &Twins::bury},
      Operation{150, &Twins::reserve_job},   Operation{120, &Twins::touch},
      Operation{120, &Twins::begin_kick},    Operation{100, &Twins::continue_slices},
      Operation{100, &Twins::kick_job},      Operation{100, &Twins::use},
      Operation{120, &Twins::watch},         Operation{80, &Twins::ignore},
      Operation{100, &Twins::pause},         Operation{100, &Twins::cancel_wait},
      Operation{80, &Twins::open},           Operation{60, &Twins::close},
      Operation{20, &Twins::claim},          Operation{40, &Twins::return_claim},
      Operation{6, &Twins::set_limits},      Operation{40, &Twins::begin_flush},
      Operation{20, &Twins::flush},          Operation{20, &Twins::truncate},
      Operation{80, &Twins::remove_pending}, Operation{60, &Twins::reserve_ready},
      Operation{200, &Twins::put_with_tags}, Operation{80, &Twins::move_job},
      Operation{40, &Twins::begin_move},     Operation{30, &Twins::reprioritize},
      Operation{30, &Twins::remove_held},    Operation{20, &Twins::set_mode},
      Operation{40, &Twins::set_policy},     Operation{5, &Twins::set_patterns},
      Operation{100, &Twins::wait_for_job},  Operation{5, &Twins::hold_over},
  };
  constexpr std::uint64_t kAll = [] {
    std::uint64_t sum = 0;
    for (const Operation& operation : kOperations) sum += operation.weight;
    return sum;
  }();
  std::uint64_t place = below(kAll);
  const Operation* chosen = kOperations.data();
  while (place >= chosen->weight) place -= (chosen++)->weight;
  (this->*chosen->run)();
}

void Twins::step() {
  ++steps_;
  if (one_in(restart_chance_)) {
    restart();
  } else if (sessions_.empty()) {
    open();
  } else {
    some_operation();
  }
  while (history_.size() > kHistory) history_.pop_front();
  expect_same("facts and notices", engine_output_.take(), model_output_.take());
  model_output_.clear_log();
  compare_whole();
  compare_sessions();
  compare_tubes();
  compare_ages();
  compare_jobs();
  compare_lists();
  compare_found();
  engine_->check_invariants();
}

// --- Comparing

void Twins::compare_whole() const {
  const EngineInfo engine = engine_->info();
  const EngineInfo model = model_.info();
  expect(engine.jobs == model.jobs, "the number of jobs in each state");
  expect_equal("timeouts", engine.timeouts, model.timeouts);
  expect_equal("deduplicated jobs", engine.deduplicated_jobs, model.deduplicated_jobs);
  for (const std::string name : {"g", "h"}) {
    const auto here = engine_->queries().group_info(name);
    const auto there = model_.group_info(name);
    expect_equal("whether there is a group", here.has_value(), there.has_value());
    if (!here) continue;
    expect(here->members == there->members, "the members of group " + name);
    expect_equal("jobs that wait for a group", here->held, there->held);
  }
  expect_equal("concurrency keys", engine.concurrency_keys, model.concurrency_keys);
  expect_equal("dead jobs", engine.dead_jobs, model.dead_jobs);
  expect_equal("expired jobs", engine.expired_jobs, model.expired_jobs);
  expect_equal("total jobs", engine.total_jobs, model.total_jobs);
  expect_equal("tubes", engine.tubes, model.tubes);
  expect_equal("sessions", engine.sessions, model.sessions);
  expect_equal("producers", engine.producers, model.producers);
  expect_equal("workers", engine.workers, model.workers);
  expect_equal("waiting", engine.waiting, model.waiting);
  expect_equal("waiting for jobs", engine.waiting_for_jobs, model.waiting_for_jobs);
  expect_equal("watches", engine.watches, model.watches);
  expect_equal("memory", engine.memory_bytes, model.memory_bytes);
  expect_equal("held over", engine_->recorded_reservations().held_over_count(),
               model_.held_over_count());
  const Deadlines next = engine_->next_deadlines();
  const Model::Deadlines model_next = model_.next_deadlines();
  expect(next.delay == model_next.delay, "the next delay to end");
  expect(next.ttr == model_next.ttr, "the next reservation or wait to end");
  expect(next.pause == model_next.pause, "the next pause to end");
  expect(next.closing == model_next.closing, "whether sessions are closing");
  expect_equal("flushed jobs", engine_->has_removals(now_), model_.has_removals(now_));
}

void Twins::compare_sessions() const {
  const auto same_job = [&](std::string_view what, const std::optional<JobBody>& found, JobId id) {
    expect_equal(what, found ? found->id : 0, id);
  };
  for (const SessionId id : sessions_) {
    expect(engine_->used_tube(id) == model_.used(id), "the tube used by " + std::to_string(id));
    Lines watched;
    engine_->queries().for_each_watched(id,
                                        [&](std::string_view name) { watched.emplace_back(name); });
    expect_same("tubes watched", watched, model_.watched(id));
    expect_equal("how many are watched", engine_->queries().watched_count(id), watched.size());
    std::vector<JobId> held = engine_->queries().held_jobs(id);
    std::sort(held.begin(), held.end());
    expect(held == model_.held_jobs(id), "the jobs held by " + std::to_string(id));
    expect_equal("holding jobs", engine_->holds_jobs(id), model_.holds_jobs(id));
    same_job("peek_ready", engine_->queries().peek_ready(id), model_.peek(id, JobState::ready));
    same_job("peek_delayed", engine_->queries().peek_delayed(id),
             model_.peek(id, JobState::delayed));
    same_job("peek_buried", engine_->queries().peek_buried(id), model_.peek(id, JobState::buried));
    same_job("peek_reserved", engine_->queries().peek_reserved(id),
             model_.peek(id, JobState::reserved));
  }
}

double Twins::mean_seconds(std::string_view tube) const {
  const TubeMetrics* found = &engine_->queries().tube_metrics().overflow();
  engine_->queries().tube_metrics().visit_after(
      "", limits_, now_, [&](const TubeMetrics& metrics, bool) {
        if (metrics.tube != nullptr && metrics.name == tube) found = &metrics;
        return true;
      });
  return found->mean_processing_seconds();
}

// The ages of ready jobs in the metrics, compared with all jobs of the model.
void Twins::compare_ages() const {
  std::map<std::string, std::optional<Duration>> oldest;  // by record
  std::map<std::string, std::uint64_t> ready;
  const auto metrics_name_of = [&](const std::string& tube) {
    return oldest.contains(tube) ? tube : std::string(TubeMetricsRegistry::kOverflowName);
  };
  const TubeMetricsRegistry& registry = engine_->queries().tube_metrics();
  registry.visit_after("", limits_, now_, [&](const TubeMetrics& metrics, bool expired) {
    if (!expired) oldest[std::string(metrics.name)];
    return true;
  });
  for (const Model::Job& job : model_.jobs()) {
    if (job.state != JobState::ready) continue;
    const std::string metrics = metrics_name_of(job.tube);
    ++ready[metrics];
    auto& age = oldest[metrics];
    age = std::max(age.value_or(Duration{}), now_ - job.created);
  }
  const auto compare = [&](const TubeMetrics& metrics, bool expired) {
    if (expired) return true;
    const std::string name(metrics.name);
    expect_equal("ready jobs of a metrics record", metrics.jobs.ready, ready[name]);
    // The error is an eighth at most, and 0 if the next job is the oldest.
    const Duration expected = oldest[name].value_or(Duration{});
    const Duration reported = metrics.oldest_ready_age(now_);
    const Duration most = std::max<Duration>(AgeSketch::kGrain, reported / 8);
    expect(expected >= reported - most && expected <= reported + most, "the oldest job of " + name);
    return true;
  };
  registry.visit_after("", limits_, now_, compare);
  // The overflow record counts the ages of flushed jobs until they are removed.
  if (model_.flushed_jobs() == 0) compare(registry.overflow(), false);
}

void Twins::compare_tubes() const {
  std::map<std::string, Duration> oldest_ready;  // of tubes with a record of their own
  engine_->queries().tube_metrics().visit_after(
      "", limits_, now_, [&](const TubeMetrics& metrics, bool) {
        if (metrics.tube == nullptr) return true;
        oldest_ready[std::string(metrics.name)] = metrics.oldest_ready_age(now_);
        return true;
      });
  Lines names;
  engine_->tube_list().for_each([&](std::string_view name) { names.emplace_back(name); });
  expect_same("the list of tubes", names, model_.tubes());
  for (const std::string& name : names) {
    const std::optional<TubeInfo> engine = engine_->queries().tube_info(now_, name);
    expect(engine.has_value() && engine->name == name, "the tube " + name);
    const TubeInfo model = model_.tube_info(name, now_);
    expect(engine->jobs == model.jobs, "the jobs of tube " + name);
    expect_equal("jobs ever put", engine->total_jobs, model.total_jobs);
    expect_equal("using", engine->using_count, model.using_count);
    expect_equal("watching", engine->watching_count, model.watching_count);
    expect_equal("waiting in a tube", engine->waiting_count, model.waiting_count);
    expect_equal("deletes", engine->delete_count, model.delete_count);
    expect_equal("pauses", engine->pause_count, model.pause_count);
    expect_equal("whether it is full", engine_->queries().is_full(name), model_.is_full(name));
    expect_equal("pause", engine->pause.count, model.pause.count);
    expect(engine->pause_left == model.pause_left, "the pause left of tube " + name);
    expect_equal("reserves", engine->reserve_count, model.reserve_count);
    expect_equal("timeouts of a tube", engine->timeout_count, model.timeout_count);
    expect_equal("buries", engine->bury_count, model.bury_count);
    expect_equal("the next ready job", engine->next_ready_id, model.next_ready_id);
    expect(engine->next_delayed_age == model.next_delayed_age, "the delayed age of tube " + name);
    expect(engine->first_buried_age == model.first_buried_age, "the buried age of tube " + name);
    const auto found = oldest_ready.find(name);
    const Duration ready_age = found == oldest_ready.end() ? model.oldest_ready_age : found->second;
    expect(engine->oldest_ready_age == ready_age, "the ready age of tube " + name);
  }
}

void Twins::compare_jobs() const {
  for (const Model::Job& job : model_.jobs()) {
    const std::optional<JobInfo> engine = engine_->queries().job_info(now_, job.id);
    const std::string what = "job " + std::to_string(job.id);
    expect_equal(what, engine.has_value(), !job.truncated);
    if (job.truncated) continue;
    const JobInfo model = model_.job_info(job, now_);
    expect(engine->id == model.id && engine->tube == model.tube, what);
    expect(engine->state == model.state, what + ", its state");
    expect_equal("priority", engine->priority, model.priority);
    expect(engine->age == model.age, what + ", its age");
    expect(engine->delay == model.delay && engine->ttr == model.ttr, what + ", delay or TTR");
    expect(engine->time_left == model.time_left, what + ", the time left");
    expect(engine->counters == model.counters, what + ", its counters");
    expect(engine->tags == model.tags, what + ", its tags");
    expect(engine->marks == model.marks, what + ", its marks");
    expect_equal(what + ", its bytes", engine->body_bytes, model.body_bytes);
    const std::optional<JobBody> body = engine_->queries().peek(job.id);
    expect(body && body->body.view() == job.body.view(), what + ", its body");
  }
  expect(!engine_->queries().peek(model_.next_job_id()), "a job that was never put");
}

// One page of one tube, and one of the tubes.
void Twins::compare_lists() {
  Lines names;
  const std::uint64_t first = below(tube_count_ + 2);
  const auto most = static_cast<std::uint32_t>(1 + below(3));
  const std::uint64_t next = engine_->queries().visit_tubes(
      now_, first, most, [&](const TubeInfo& info) { names.emplace_back(info.name); });
  Lines tubes = model_.tubes();
  expect_equal("where the next page of tubes begins", next,
               first + most < tubes.size() ? first + most : 0);
  const auto skipped = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(first, tubes.size()));
  tubes.erase(tubes.begin(), tubes.begin() + skipped);
  tubes.resize(std::min<std::size_t>(tubes.size(), most));
  expect_same("a page of tubes", names, tubes);
  const std::string tube = some_tube();
  std::optional<JobState> state;
  if (!one_in(5)) state = static_cast<JobState>(below(4));
  const bool held = one_in(2);
  std::vector<JobId> model = model_.list(tube, state, held && state == JobState::delayed);
  const JobId from = below(model_.next_job_id() + 1);
  const auto limit = static_cast<std::uint32_t>(1 + below(5));
  std::erase_if(model, [&](JobId id) { return id < from; });
  const JobPage page =
      engine_->queries().list_jobs(tube, state, from, limit, held && state == JobState::delayed);
  expect_equal("where the next page begins", page.next, model.size() > limit ? model[limit] : 0);
  model.resize(std::min<std::size_t>(model.size(), limit));
  expect(page.jobs == model, "a page of jobs of " + tube);
}

// One page of a filtered list.
void Twins::compare_found() {
  const std::string tube = some_tube();
  std::optional<JobState> state;
  if (!one_in(2)) state = static_cast<JobState>(below(4));
  JobFilter filter;
  const auto bound = [&](std::int64_t most) {
    return static_cast<std::int64_t>(below(static_cast<std::uint64_t>(most)));
  };
  if (one_in(3)) filter.age.above = bound(6);
  if (one_in(4)) filter.age.below = bound(9);
  if (one_in(4)) filter.priority.above = bound(4);
  if (one_in(4)) filter.priority.below = 1 + bound(5);
  if (one_in(3)) filter.failures.above = bound(3);
  const auto is_near = [&](std::int64_t number, const NumberRange& range) {
    return number > range.above && number < range.below;
  };
  if (one_in(3)) filter.texts.emplace_back(1 + below(2), static_cast<char>('a' + below(5)));
  std::string tag;
  if (one_in(4)) {
    // A tag of some job, or its part before a colon after the first.
    for (const Model::Job& job : model_.jobs()) {
      const std::string tags = text_of(model_.job_info(job, now_).tags);
      if (tags.empty() || !one_in(3)) continue;
      tag = tags.substr(0, tags.find(' '));
      const std::size_t colon = tag.rfind(':');
      if (one_in(2) && colon != tag.find(':')) tag.resize(colon);
    }
  }
  if (!tag.empty()) filter.tags.emplace_back(tag);
  const auto meets = [&](const Model::Job& job) {
    const JobInfo info = model_.job_info(job, now_);
    const auto ended = std::int64_t{info.counters.reserves} - (job.state == JobState::reserved);
    const std::string tags = " " + text_of(info.tags) + " ";
    const bool has_tag = tag.empty() || tags.find(" " + tag + " ") != std::string::npos ||
                         tags.find(" " + tag + ":") != std::string::npos;
    const bool has_text =
        filter.texts.empty() || job.body.view().find(filter.texts[0]) != std::string_view::npos;
    return has_tag && has_text && is_near(info.age / std::chrono::seconds(1), filter.age) &&
           is_near(info.priority, filter.priority) && is_near(ended, filter.failures);
  };
  const JobId from = below(model_.next_job_id() + 1);
  const auto limit = static_cast<std::uint32_t>(1 + below(3));
  FoundJobs expected;
  for (const JobId id : model_.list(tube, state, false)) {
    if (id < from) continue;
    if (expected.jobs.size() == limit || expected.looked == limits_.work_per_turn) {
      expected.next = id;
      break;
    }
    ++expected.looked;
    const auto& jobs = model_.jobs();
    if (meets(*std::ranges::find(jobs, id, &Model::Job::id))) expected.jobs.push_back(id);
  }
  const FoundJobs found =
      engine_->queries().find_jobs(now_, tube, state, from, limit, false, filter);
  expect_equal("where the next filtered page begins", found.next, expected.next);
  expect_equal("how many jobs a filtered page has looked at", found.looked, expected.looked);
  expect(found.jobs == expected.jobs, "a filtered page of jobs of " + tube);
}

// --- L3

void Twins::settle(Engine& engine) const {
  Recording ignored;
  engine.end_replay();
  while (engine.has_removals(now_)) engine.remove_pending(now_, ignored, ignored);
}

Lines Twins::durable(const Engine& engine) const {
  Recording list;
  engine.durable_state().visit(now_, list);
  Lines lines = list.take_facts();
  std::sort(lines.begin(), lines.end());  // pauses are emitted in the order of the list of tubes
  return lines;
}

void Twins::check_replay() {
  const Lines here = durable(*engine_);
  Recording list;
  model_.visit_durable(now_, list);
  Lines model = list.take_facts();
  std::sort(model.begin(), model.end());
  expect_same("durable state", here, model);

  Engine at_once(limits_);
  Engine when_emitted(limits_);
  Engine again(limits_);
  Recording ignored;
  for (Engine* engine : {&at_once, &when_emitted, &again}) {
    engine->set_patterns(now_, model_.patterns(), ignored);
    if (records_) engine->recorded_reservations().record_to(&ignored);
  }
  for (const auto* log : {&std::as_const(log_before_), &engine_output_.log()}) {
    for (const RecordedFact& kept : *log) {
      at_once.replay(now_, kept.fact());
      when_emitted.replay(kept.emitted_at(), kept.fact());
    }
  }
  Recording minimal;
  engine_->durable_state().visit(now_, minimal);
  for (const RecordedFact& kept : minimal.log()) again.replay(now_, kept.fact());
  for (Engine* replayed : {&at_once, &when_emitted, &again}) {
    replayed->check_invariants();
    expect_same("durable state after a replay", durable(*replayed), here);
    settle(*replayed);
    replayed->check_invariants();
    expect_equal("memory after a replay", replayed->info().memory_bytes,
                 model_.durable_memory(now_));
  }
}

}  // namespace tubed::engine
