// World: an engine, its time, and a recording of its output, for tests that read as sentences.
//
// The invariants are checked after every call. Sessions have the ids 0, 1, … in the order of
// opening.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "engine/replay.h"
#include "tests/engine/recording.h"

namespace tubed::engine {

using namespace std::chrono_literals;  // NOLINT: the point of this header

// The parameters of a put, with defaults.
struct Put {
  Priority priority = 0;
  std::uint32_t delay = 0;
  std::uint32_t ttr = 60;
  std::string_view body = "";
};

// The facts of which a snapshot of the engine consists.
inline Lines durable(const Engine& engine, Time now) {
  Recording list;
  engine.durable_state().visit(now, list);
  return list.take_facts();
}

class World {
 public:
  explicit World(const Limits& limits = {}) : engine(limits) {}
  ~World() { engine.check_invariants(); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Replays the durable list of the other world. Precondition: this world is new.
  void restore(const World& other) {
    Recording list;
    other.engine.durable_state().visit(other.now, list);
    now = other.now;
    Replay replay(engine, now);
    for (const RecordedFact& kept : list.log()) replay.fact(kept.fact());
    engine.end_replay();
    engine.check_invariants();
  }

  SessionId open() { return engine.open(); }

  // A session that uses and watches this tube alone.
  SessionId open(std::string_view tube) {
    const SessionId id = engine.open();
    if (tube == kDefaultTube) return id;
    engine.use(id, now, tube);
    engine.watch(id, now, tube);
    engine.ignore(id, now, kDefaultTube);
    return id;
  }

  void close(SessionId id) {
    engine.close(id, now, output);
    engine.check_invariants();
  }

  JobId put(SessionId id, const Put& put = {}) {
    const Bytes body = Bytes::copy_of(put.body);
    engine.memory().claim(body.size());
    const JobId job = engine.put(
        id, now, {.priority = put.priority, .delay = {{put.delay}}, .ttr = {put.ttr}, .body = body},
        output);
    engine.check_invariants();
    return job;
  }

  // A job that this session has put and now holds.
  JobId put_and_hold(SessionId id, const Put& what = {}) {
    const JobId job = put(id, what);
    engine.reserve_job(id, now, job);
    return job;
  }

  // A buried job.
  JobId put_and_bury(SessionId id, const Put& what = {}) {
    const JobId job = put_and_hold(id, what);
    engine.bury(id, now, job, what.priority, output);
    return job;
  }

  // Reserves without waiting and returns the job, or 0.
  JobId take(SessionId id) {
    output.take();
    reserve(id, 0s);
    const Lines answer = output.take_notices();
    const std::string given = std::to_string(id) + " reserved ";
    if (answer.size() != 1 || !answer[0].starts_with(given)) return 0;
    return std::stoull(answer[0].substr(given.size()));
  }

  void reserve(SessionId id, Duration limit = Wait::kForever) {
    if (const auto given = engine.reserve(id, now, {.limit = limit})) output.notice(*given);
    engine.check_invariants();
  }

  void wait_for_job(SessionId id, JobId job, Duration limit = Wait::kForever) {
    const auto answer = engine.wait_for_job(id, now, job, {.limit = limit});
    if (answer) output.notice(*answer);
    engine.check_invariants();
  }

  bool release(SessionId id, JobId job, Priority priority = 0, std::uint32_t delay = 0) {
    const bool released = engine.release(id, now, job, priority, {{delay}}, output);
    engine.check_invariants();
    return released;
  }

  bool bury(SessionId id, JobId job, Priority priority = 0) {
    return engine.bury(id, now, job, priority, output);
  }

  bool remove(SessionId id, JobId job) {
    const bool removed = engine.remove(id, now, job, output);
    engine.check_invariants();
    return removed;
  }

  // Runs all slices of a kick.
  std::uint64_t kick(SessionId id, std::uint64_t bound) {
    std::uint64_t moved = 0;
    for (Slices kick = engine.queries().slices_to_kick(engine.used_tube(id), bound);
         kick.left > 0;) {
      moved += engine.kick(now, kick, output);
      engine.check_invariants();
    }
    return moved;
  }

  // Frees all flushed jobs and ended keys.
  void remove_pending() {
    while (engine.has_removals(now)) {
      engine.remove_pending(now, output, output);
      engine.check_invariants();
    }
  }

  bool pause(std::string_view tube, std::uint32_t seconds) {
    const bool paused = engine.pause(now, tube, {{seconds}}, output);
    engine.check_invariants();
    return paused;
  }

  // Moves the time and does all work that is due.
  void pass(Duration duration) {
    now += duration;
    do {
      engine.advance(now, output);
      engine.check_invariants();
    } while (next_deadline() <= now);
  }

  Time next_deadline() const {
    const Deadlines next = engine.next_deadlines();
    return next.closing ? now : std::min({next.delay, next.ttr, next.pause});
  }

  // Precondition for both: it exists.
  JobInfo job(JobId id) const { return engine.queries().job_info(now, id).value(); }
  TubeInfo tube(std::string_view name) const {
    return engine.queries().tube_info(now, name).value();
  }
  JobState state(JobId id) const { return job(id).state; }
  bool has_tube(std::string_view name) const {
    return engine.queries().tube_info(now, name).has_value();
  }

  Lines notices() { return output.take_notices(); }
  Lines facts() { return output.take_facts(); }

  Engine engine;
  Recording output;
  Time now;
};

}  // namespace tubed::engine
