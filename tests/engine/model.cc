#include "tests/engine/model.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/assert.h"

namespace tubed::engine {

namespace {

constexpr Duration kLastSecond = std::chrono::seconds(1);

auto ready_key(const Model::Job& job) {
  return std::tuple(job.priority, job.id);
}

auto deadline_key(const Model::Job& job) {
  return std::tuple(job.deadline, job.id);
}

Placement ready_place(const Model::Job& job) {
  return {.state = JobState::ready,
          .priority = job.priority,
          .delay = job.delay.seconds,
          .until = {},
          .bury_order = 0};
}

}  // namespace

// --- Finding

Model::Session& Model::session(SessionId id) {
  const auto is_it = [&](const Session& session) { return session.id == id; };
  const auto found = std::find_if(sessions_.begin(), sessions_.end(), is_it);
  TUBED_ASSERT(found != sessions_.end());
  return *found;
}

const Model::Session& Model::session(SessionId id) const {
  return const_cast<Model*>(this)->session(id);
}

Model::Tube* Model::find_tube(std::string_view name) {
  const auto is_it = [&](const Tube& tube) { return tube.name == name; };
  const auto found = std::find_if(tubes_.begin(), tubes_.end(), is_it);
  return found == tubes_.end() ? nullptr : &*found;
}

const Model::Tube* Model::find_tube(std::string_view name) const {
  return const_cast<Model*>(this)->find_tube(name);
}

Model::Tube* Model::find_or_add_tube(std::string_view name) {
  if (Tube* tube = find_tube(name); tube != nullptr) return tube;
  if (tubes_.size() >= limits_.tubes) return nullptr;
  tubes_.push_back({.name = std::string(name), .number = next_tube_number_++});
  begin_policy(tubes_.back());
  return &tubes_.back();
}

Model::Job* Model::find_job(JobId id) {
  Job* job = find_any_job(id);
  return job == nullptr || job->truncated ? nullptr : job;
}

Model::Job* Model::find_any_job(JobId id) {
  const auto is_it = [&](const Job& job) { return job.id == id; };
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), is_it);
  return found == jobs_.end() ? nullptr : &*found;
}

Model::Job* Model::held_by(SessionId id, JobId job_id) {
  Job* job = find_job(job_id);
  const bool held = job != nullptr && job->state == JobState::reserved;
  return held && holds(id, *job) ? job : nullptr;
}

// By a session that is not closing.
bool Model::is_held_open(const Job& job) const {
  return job.state == JobState::reserved && (job.holder == kPast || !session(job.holder).closing);
}

Time Model::end_of_hold(const Job& job) const {
  return job.holder == kPast ? std::min(job.deadline, hold_until_) : job.deadline;
}

void Model::emit_held(const Job& job) const {
  if (held_sink_ != nullptr) held_sink_->fact(Held{.id = job.id, .until = job.deadline});
}

std::size_t Model::held_over_count() const {
  return held_jobs(kPast).size();
}

const Model::Job* Model::first_held(SessionId id) const {
  const Job* first = nullptr;
  for (const Job& job : jobs_) {
    if (job.state != JobState::reserved || job.holder != id) continue;
    if (first == nullptr || deadline_key(job) < deadline_key(*first)) first = &job;
  }
  return first;
}

// A tube whose next job has expired withholds its jobs.
const Model::Job* Model::best_ready(const Session& session, Time now) {
  const Job* best = best_given(session);
  while (best != nullptr && best->expires <= now) {
    find_tube(best->tube)->late = true;
    best = best_given(session);
  }
  return best;
}

const Model::Job* Model::best_given(const Session& session) const {
  const Job* best = nullptr;
  for (const Job& job : jobs_) {
    if (job.state != JobState::ready || find_tube(job.tube)->paused) continue;
    if (is_withheld(*find_tube(job.tube)) || is_blocked(job)) continue;
    if (std::count(session.watched.begin(), session.watched.end(), job.tube) == 0) continue;
    if (best == nullptr || key_for(session, job) < key_for(session, *best)) best = &job;
  }
  return best;
}

// A weighted session takes the tube with the smallest pass, and of that tube the best job.
std::tuple<std::uint64_t, std::uint64_t, Priority, JobId> Model::key_for(const Session& session,
                                                                         const Job& job) const {
  if (session.mode == ReserveMode::fifo) return {0, 0, job.priority, job.id};
  return {pass_of(session, job.tube), find_tube(job.tube)->number, job.priority, job.id};
}

std::uint64_t Model::pass_of(const Session& session, const std::string& tube) const {
  const auto found = session.weights.find(tube);
  return std::max(session.pass, found == session.weights.end() ? 0 : found->second.pass);
}

void Model::charge(Session& session, const std::string& tube) {
  if (session.mode == ReserveMode::fifo) return;
  session.pass = pass_of(session, tube);
  auto& [weight, pass] = session.weights[tube];
  const bool fair = session.mode == ReserveMode::weighted_fair;
  const double seconds = fair ? std::clamp(mean_seconds_(tube), 0.01, double{1 << 30}) : 1;
  pass = session.pass + static_cast<std::uint64_t>((1 << 30) * seconds / weight);
}

// --- Sessions

bool Model::open(SessionId id) {
  const auto is_it = [&](const Session& session) { return session.id == id; };
  const bool taken = std::any_of(sessions_.begin(), sessions_.end(), is_it);
  const bool unused_left = sessions_.size() < known_sessions_;
  if (taken || id > known_sessions_ || (id == known_sessions_ && unused_left)) return false;
  known_sessions_ = std::max(known_sessions_, id + 1);
  const std::string name(kDefaultTube);
  Session& opened = sessions_.emplace_back();
  opened.id = id;
  opened.used = name;
  opened.watched = {name};
  return true;
}

void Model::close(SessionId id, Time now, Output& out) {
  Session& closed = session(id);
  closed.waiting = false;
  closed.awaited = 0;
  closed.closing = true;
  remove_if_unwanted(std::exchange(closed.used, {}));
  const auto watched = closed.watched;
  closed.watched.clear();
  for (const std::string& tube : watched) {
    // The tubes that come later in the list are still watched.
    closed.watched.assign(std::find(watched.begin(), watched.end(), tube) + 1, watched.end());
    remove_if_unwanted(tube);
  }
  closing_.push_back(id);
  continue_closing(now, out);
  serve_waiting(now, out);
}

void Model::continue_closing(Time now, Output& out) {
  std::uint32_t budget = limits_.work_per_turn;
  while (!closing_.empty()) {
    const SessionId id = closing_.back();
    for (; budget > 0 && first_held(id) != nullptr; --budget) {
      give_back(first_held(id)->id, now, out);
    }
    if (first_held(id) != nullptr) return;
    closing_.pop_back();
    std::erase_if(sessions_, [&](const Session& session) { return session.id == id; });
  }
}

// --- Tubes

std::vector<std::string> Model::tubes() const {
  std::vector<std::string> names;
  for (const Tube& tube : tubes_) names.push_back(tube.name);
  return names;
}

void Model::remove_if_unwanted(std::string name) {
  Tube* tube = find_tube(name);
  if (tube == nullptr || name == kDefaultTube || tube->paused) return;
  if (const auto policy = policy_of(name); policy && policy->keep) return;
  for (const Job& job : jobs_) {
    if (job.tube == name) return;
  }
  for (const Session& session : sessions_) {
    if (session.used == name) return;
    if (std::count(session.watched.begin(), session.watched.end(), name) > 0) return;
  }
  *tube = tubes_.back();
  tubes_.pop_back();
}

bool Model::use(SessionId id, std::string_view name) {
  if (find_or_add_tube(name) == nullptr) return false;
  const std::string before = std::exchange(session(id).used, std::string(name));
  remove_if_unwanted(before);
  return true;
}

bool Model::watch(SessionId id, std::string_view name, std::uint32_t weight) {
  auto& watched = session(id).watched;
  if (std::count(watched.begin(), watched.end(), name) > 0) {
    session(id).weights[std::string(name)].weight = weight;
    return true;
  }
  if (watched.size() >= limits_.session_watches) return false;
  if (info().watches >= limits_.watches || find_or_add_tube(name) == nullptr) return false;
  watched.emplace_back(name);
  session(id).weights[std::string(name)].weight = weight;
  return true;
}

bool Model::ignore(SessionId id, std::string_view name) {
  auto& watched = session(id).watched;
  const auto found = std::find(watched.begin(), watched.end(), name);
  if (found == watched.end()) return true;
  if (watched.size() == 1) return false;
  *found = watched.back();
  watched.pop_back();
  session(id).weights.erase(std::string(name));
  remove_if_unwanted(std::string(name));
  return true;
}

bool Model::pause(std::string_view name, TimeSpan duration, Time now, Output& out) {
  Tube* tube = find_tube(name);
  if (tube == nullptr) return false;
  ++tube->pause_count;
  tube->pause = duration.seconds;
  tube->pause_until = now + duration;
  tube->paused = Duration(duration) > Duration(0);
  out.fact(Paused{.tube = tube->name, .duration = tube->pause, .until = tube->pause_until});
  if (!tube->paused) {
    remove_if_unwanted(tube->name);
  }
  serve_waiting(now, out);
  return true;
}

// --- Memory

bool Model::claim_memory(std::uint64_t bytes) {
  const std::uint64_t cost = overhead_.job + bytes;
  if (info().memory_bytes + cost > limits_.job_memory_bytes) return false;
  claimed_bytes_ += cost;
  return true;
}

void Model::return_memory(std::uint64_t bytes) {
  claimed_bytes_ -= overhead_.job + bytes;
}

std::uint64_t Model::cost_of_tubes(const std::vector<Key>& keys) const {
  std::set<std::pair<std::uint64_t, std::string>> tubes;
  for (const Key& key : keys) tubes.emplace(key.flush, key.tube);
  std::uint64_t bytes = 0;
  for (const auto& [flush, tube] : tubes) bytes += overhead_.tube + tube.size();
  return bytes;
}

std::vector<Model::Key> Model::keys_of_jobs() const {
  std::vector<Key> keys;
  for (const Job& job : jobs_) {
    if (job.key.empty() || job.truncated) continue;
    keys.push_back({.id = job.id, .tube = job.tube, .name = job.key, .until = {}});
  }
  return keys;
}

// The memory that a put claims for the tags.
std::uint64_t Model::tags_memory(const Job& job) const {
  const JobTags tags = job.tags();
  std::uint64_t bytes = tags.any() ? overhead_.tags : 0;
  if (!job.key.empty()) bytes += overhead_.key + job.key.size();
  if (!job.concurrency_key.empty()) bytes += overhead_.concurrency + job.concurrency_key.size();
  if (job.has_groups()) bytes += overhead_.groups + job.group.size() + job.after.size();
  return bytes + (tags.limits_life() ? overhead_.life + job.dead.size() : 0);
}

std::uint64_t Model::cost_of(const Job& job) const {
  std::uint64_t cost = overhead_.job + job.body.size();
  if (job.has_tags()) cost += overhead_.tags;
  if (!job.concurrency_key.empty()) cost += overhead_.concurrency + job.concurrency_key.size();
  if (job.has_groups()) cost += overhead_.groups + job.group.size() + job.after.size();
  if (job.has_life()) cost += overhead_.life + job.dead.size() + job.dead_from.size();
  return cost;
}

// --- Jobs

void Model::emit_placed(Job& job, Output& out) {
  Placement place = ready_place(job);
  place.state = job.state;
  if (job.state == JobState::delayed) place.until = job.deadline;
  if (job.state == JobState::buried) place.bury_order = job.bury_order;
  job.told_place = place;
  job.told_counters = job.counters;
  job.told_marks = job.marks;
  job.told_dead_from = job.dead_from;
  if (job.state == JobState::ready && !job.after.empty()) job.after_done = true;
  job.told_after_done = job.after_done;
  const Placed placed{.id = job.id, .place = place, .counters = job.counters};
  if (job.all_marks().any()) return out.fact(PlacedWithMarks{placed, job.all_marks()});
  out.fact(placed);
}

void Model::emit_added(const Job& job, FactSink& sink) const {
  const Added added{.id = job.id,
                    .tube = job.tube,
                    .ttr = job.ttr,
                    .created = job.created,
                    .body = job.body,
                    .place = job.told_place,
                    .counters = job.told_counters};
  const bool plain = !job.tags().any() && !job.all_told_marks().any();
  if (plain) return sink.fact(added);
  sink.fact(AddedWithTags{added, job.tags(), job.all_told_marks()});
}

void Model::make_ready(Job& job, Output& out) {
  job.state = JobState::ready;
  emit_placed(job, out);
}

void Model::give_back(JobId id, Time now, Output& out) {
  const Job& job = *find_any_job(id);
  if (!job.truncated) return come_back(id, {}, now, out);
  const std::string tube = job.tube;
  std::erase_if(jobs_, [&](const Job& each) { return each.id == id; });
  complete_groups();
  out.fact(Removed{.id = id});
  remove_if_unwanted(tube);
}

JobId Model::put(SessionId id, Time now, Job job, Output& out) {
  return *put_in_tube(session(id).used, now, std::move(job), out);
}

std::optional<JobId> Model::put_in_tube(std::string_view tube, Time now, Job job, Output& out) {
  if (find_or_add_tube(tube) == nullptr) return std::nullopt;
  return_memory(job.body.size() + tags_memory(job));
  job.id = next_job_id_++;
  job.tube = tube;
  job.created = now;
  apply_ttr(job);
  set_expiry(job);
  job.state = Duration(job.delay) > Duration(0) ? JobState::delayed : JobState::ready;
  job.deadline = now + job.delay;
  if (job.state == JobState::ready && !job.after.empty()) {
    // A member of the group that it waits for holds itself.
    if (has_members(job.after) || job.group == job.after) {
      job.state = JobState::delayed;
      job.deadline = kNever;
      job.hold_order = next_hold_order_++;
    } else {
      job.after_done = true;
    }
  }
  job.told_after_done = job.after_done;
  job.told_place = ready_place(job);
  job.told_place.state = job.state;
  if (job.state == JobState::delayed) job.told_place.until = job.deadline;
  ++find_tube(job.tube)->total_jobs;
  ++total_jobs_;
  jobs_.push_back(job);
  emit_added(job, out);
  serve_waiting(now, out);
  return job.id;
}

std::optional<PutResult> Model::put_with_tags(std::string_view tube, Time now, Job job,
                                              Output& out) {
  if (find_tube(tube) == nullptr && tubes_.size() >= limits_.tubes) return std::nullopt;
  if (const auto known = duplicate(tube, now, job, out)) {
    ++deduplicated_jobs_;
    return_memory(job.body.size() + tags_memory(job));
    return known;
  }
  PutResult result;
  result.id = *put_in_tube(tube, now, std::move(job), out);
  return result;
}

std::optional<PutResult> Model::duplicate(std::string_view tube, Time now, const Job& job,
                                          Output& out) {
  PutResult result;
  result.added = false;
  if (job.key.empty()) return std::nullopt;
  for (Job& known : jobs_) {
    if (known.tube != tube || known.key != job.key || known.truncated) continue;
    result.id = known.id;
    result.state = known.state;
    if (job.priority >= known.priority) return result;
    result.lowered_to = job.priority;
    set_priority(known, job.priority, out);
    return result;
  }
  result.id = cooling(tube, job.key, now, out);
  return result.id == 0 ? std::nullopt : std::optional(result);
}

// The id of the deleted job whose cooldown has the key, or 0. A cooldown that has ended is removed.
JobId Model::cooling(std::string_view tube, std::string_view name, Time now, Output& out) {
  const auto is_it = [&](const Key& key) { return key.tube == tube && key.name == name; };
  const auto found = std::find_if(cooldowns_.begin(), cooldowns_.end(), is_it);
  if (found == cooldowns_.end()) return 0;
  if (*found->until > now) return found->id;
  out.fact(Removed{.id = found->id});
  cooldowns_.erase(found);
  return 0;
}

void Model::set_priority(Job& job, Priority priority, Output& out) {
  job.priority = priority;
  if (job.state != JobState::reserved) return emit_placed(job, out);
  job.told_place.priority = priority;
  const Placed placed{.id = job.id, .place = job.told_place, .counters = job.told_counters};
  if (job.all_marks().any()) {
    out.fact(PlacedWithMarks{placed, job.all_marks()});
  } else {
    out.fact(placed);
  }
  emit_held(job);
}

std::optional<bool> Model::reprioritize(JobId id, Priority priority, Output& out) {
  Job* job = find_job(id);
  if (job == nullptr) return std::nullopt;
  if (job->state == JobState::reserved) return false;
  set_priority(*job, priority, out);
  return true;
}

MoveResult Model::move_job(SessionId id, Time now, JobId job_id, std::string_view tube,
                           const std::optional<NewPlace>& place, Output& out) {
  const Job* job = find_job(job_id);
  if (job == nullptr) return MoveResult::not_found;
  if (job->state == JobState::reserved && !holds(id, *job)) return MoveResult::not_found;
  if (find_or_add_tube(tube) == nullptr) return MoveResult::too_many_tubes;
  const bool is_full_there = job->tube != tube && is_full(std::string(tube));
  if (is_full_there) return MoveResult::tube_full;
  move_to(now, job_id, tube, place, out);
  serve_waiting(now, out);
  return MoveResult::moved;
}

std::optional<std::uint32_t> Model::move_slice(Time now, Slices& move, std::string_view tube,
                                               Output& out) {
  std::uint32_t moved = 0;
  bool has_room = true;
  while (has_room && move.left > 0 && moved < limits_.work_per_turn) {
    const Job* job = next_of(move);
    if (job != nullptr && job->tube == tube) job = nullptr;
    has_room = job == nullptr || find_or_add_tube(tube) != nullptr;
    if (has_room && job != nullptr) has_room = !is_full(std::string(tube));
    if (job == nullptr || !has_room) {
      move.left = 0;
      break;
    }
    move_to(now, job->id, tube, {}, out);
    --move.left;
    ++moved;
  }
  serve_waiting(now, out);
  return has_room || moved > 0 ? std::optional(moved) : std::nullopt;
}

void Model::move_to(Time now, JobId id, std::string_view tube, const std::optional<NewPlace>& place,
                    Output& out) {
  Job& job = *find_job(id);
  const std::string from = job.tube;
  const bool keeps_key = change_tube(now, job, std::string(tube), out);
  bool placed = place || job.state == JobState::reserved || job.state == JobState::buried;
  if (job.held()) {
    const bool released = std::erase(releasing_, id) > 0;
    const bool stays = !released && has_members(job.after);
    if (stays) job.hold_order = next_hold_order_++;
    if (!stays && !place) {
      job.state = JobState::ready;
      placed = true;
    }
  }
  if (job.state == JobState::reserved) ++job.counters.releases;
  if (job.state == JobState::buried && place) ++job.counters.kicks;
  if (place) {
    job.priority = place->priority;
    job.delay = place->delay;
    job.state = Duration(place->delay) > Duration(0) ? JobState::delayed : JobState::ready;
    job.deadline = now + place->delay;
  } else if (job.state == JobState::reserved) {
    job.state = JobState::ready;
  } else if (job.state == JobState::buried) {
    job.bury_order = next_bury_order_++;
  }
  if (renew(job)) placed = true;
  if (placed) emit_placed(job, out);
  if (from == tube) return;
  out.fact(Moved{.id = id, .tube = tube, .keeps_key = keeps_key});
  remove_if_unwanted(from);
}

void Model::give(Session& to, JobId id, Time now) {
  Job& job = *find_job(id);
  job.state = JobState::reserved;
  job.holder = to.id;
  job.deadline = now + job.time_to_run();
  job.reserve_order = next_reserve_order_++;
  ++job.counters.reserves;
  take_credit(*find_tube(job.tube), now);
  ++find_tube(job.tube)->reserve_count;
  emit_held(job);
}

bool Model::deadline_soon(SessionId id, Time now) const {
  const Job* first = first_held(id);
  return first != nullptr && first->deadline - kLastSecond <= now;
}

void Model::reserve(SessionId id, Time now, std::optional<Duration> limit, Output& out) {
  Session& asking = session(id);
  asking.worker = true;
  asking.waiting = true;
  asking.arrival = next_arrival_++;
  asking.wait_until = limit ? now + *limit : kNever;
  give_to_waiting(now, out);
  if (!asking.waiting) return;
  const bool soon = deadline_soon(id, now);
  if (!soon && (!limit || *limit > Duration::zero())) return;
  asking.waiting = false;
  const auto kind = soon ? Notice::Kind::deadline_soon : Notice::Kind::timed_out;
  out.notice({.session = id, .kind = kind, .job = 0, .body = {}});
}

// The session that began to wait first gets the best job of its tubes; then the next session.
void Model::serve_waiting(Time now, Output& out) {
  release_held(out);
  give_to_waiting(now, out);
}

void Model::give_to_waiting(Time now, Output& out) {
  std::vector<Session*> waiting;
  for (Session& session : sessions_) {
    if (session.waiting) waiting.push_back(&session);
  }
  std::sort(waiting.begin(), waiting.end(),
            [](const Session* a, const Session* b) { return a->arrival < b->arrival; });
  for (Session* session : waiting) {
    const Job* best = best_ready(*session, now);
    if (best == nullptr) continue;
    session->waiting = false;
    charge(*session, best->tube);
    give(*session, best->id, now);
    out.notice({.session = session->id,
                .kind = Notice::Kind::reserved,
                .job = best->id,
                .body = best->body});
  }
}

void Model::wait_for_job(SessionId id, Time now, JobId job, std::optional<Duration> limit,
                         Output& out) {
  if (find_job(job) == nullptr) {
    out.notice({.session = id, .kind = Notice::Kind::not_found, .job = job, .body = {}});
    return;
  }
  Session& asking = session(id);
  asking.awaited = job;
  asking.arrival = next_arrival_++;
  asking.wait_until = limit ? now + *limit : kNever;
  answer_job_waits(out);
  if (asking.awaited == 0 || !limit || *limit > Duration::zero()) return;
  asking.awaited = 0;
  out.notice({.session = id, .kind = Notice::Kind::timed_out, .job = job, .body = {}});
}

// By job, and then in the order of arrival.
void Model::answer_job_waits(Output& out) {
  std::vector<Session*> waiting;
  for (Session& session : sessions_) {
    if (session.awaited != 0) waiting.push_back(&session);
  }
  std::sort(waiting.begin(), waiting.end(), [](const Session* a, const Session* b) {
    return std::tie(a->awaited, a->arrival) < std::tie(b->awaited, b->arrival);
  });
  for (Session* session : waiting) {
    const Job* job = find_job(session->awaited);
    if (job != nullptr && job->state != JobState::buried) continue;
    const auto kind = job == nullptr ? Notice::Kind::deleted : Notice::Kind::buried;
    out.notice({.session = session->id, .kind = kind, .job = session->awaited, .body = {}});
    session->awaited = 0;
  }
}

bool Model::reserve_job(SessionId id, Time now, JobId job_id) {
  const Job* job = find_job(job_id);
  if (job == nullptr || job->state == JobState::reserved) return false;
  if (is_withheld(*find_tube(job->tube)) || is_blocked(*job)) return false;
  if (job->expires <= now && job->state != JobState::buried) return false;
  if (job->held()) return false;
  session(id).worker = true;
  give(session(id), job_id, now);
  return true;
}

JobId Model::reserve_ready(SessionId id, Time now) {
  Session& asking = session(id);
  asking.worker = true;
  const Job* best = best_ready(asking, now);
  if (best == nullptr) return 0;
  const JobId job = best->id;
  charge(asking, best->tube);
  give(asking, job, now);
  return job;
}

std::vector<JobId> Model::held_jobs(SessionId id) const {
  std::vector<JobId> held;
  for (const Job& job : jobs_) {
    if (job.state == JobState::reserved && job.holder == id) held.push_back(job.id);
  }
  return held;
}

bool Model::remove(SessionId id, Time now, JobId job_id, Output& out) {
  const Job* job = find_any_job(job_id);
  if (job == nullptr || (job->state == JobState::reserved && !holds(id, *job))) return false;
  erase(job_id, now, out);
  serve_waiting(now, out);
  return true;
}

bool Model::remove_held(Time now, JobId id, Output& out) {
  if (find_job(id) == nullptr) return false;
  erase(id, now, out);
  serve_waiting(now, out);
  return true;
}

void Model::erase(JobId job_id, Time now, Output& out) {
  const Job* job = find_any_job(job_id);
  const std::string tube = job->tube;
  ++find_tube(tube)->delete_count;
  const bool cools_down = !job->key.empty() && job->cooldown.count > 0 && !job->truncated;
  const Key key{.id = job_id, .tube = tube, .name = job->key, .until = now + job->cooldown};
  std::erase_if(jobs_, [&](const Job& each) { return each.id == job_id; });
  complete_groups();
  out.fact(Removed{.id = job_id});
  if (cools_down) {
    cooldowns_.push_back(key);
    out.fact(Remembered{.id = job_id, .tube = key.tube, .key = key.name, .until = *key.until});
  }
  answer_job_waits(out);
  remove_if_unwanted(tube);
}

bool Model::release(SessionId id, Time now, JobId job_id, Priority priority, TimeSpan delay,
                    Output& out) {
  Job* job = held_by(id, job_id);
  if (job == nullptr) return false;
  ++job->counters.releases;
  job->priority = priority;
  job->delay = delay;
  come_back(job_id, delay, now, out);
  serve_waiting(now, out);
  return true;
}

bool Model::bury(SessionId id, Time now, JobId job_id, Priority priority, Output& out) {
  Job* job = held_by(id, job_id);
  if (job == nullptr) return false;
  ++job->counters.buries;
  ++find_tube(job->tube)->bury_count;
  job->priority = priority;
  job->state = JobState::buried;
  job->bury_order = next_bury_order_++;
  emit_placed(*job, out);
  answer_job_waits(out);
  serve_waiting(now, out);
  return true;
}

bool Model::touch(SessionId id, Time now, JobId job_id, std::optional<TimeSpan> left) {
  Job* job = held_by(id, job_id);
  if (job == nullptr) return false;
  job->holder = id;
  job->deadline = now + job->time_to_run();
  if (left) job->deadline = now + (Duration(*left) > Duration(0) ? *left : TimeSpan{{1}});
  emit_held(*job);
  return true;
}

bool Model::kick_job(Time now, JobId job_id, TimeSpan delay, Output& out) {
  Job* job = find_job(job_id);
  if (job == nullptr) return false;
  if (job->state != JobState::buried && job->state != JobState::delayed) return false;
  ++job->counters.kicks;
  renew(*job);
  if (!job->after.empty()) job->after_done = true;
  if (Duration(delay) > Duration(0)) {
    job->delay = delay;
    job->deadline = now + delay;
    job->state = JobState::delayed;
    emit_placed(*job, out);
    return true;
  }
  make_ready(*job, out);
  serve_waiting(now, out);
  return true;
}

// --- Slices, and flushing

std::vector<Model::Job> Model::jobs_in(std::string_view tube, JobState state) const {
  std::vector<Job> found;
  for (const Job& job : jobs_) {
    if (job.tube == tube && job.state == state && !job.held()) found.push_back(job);
  }
  std::sort(found.begin(), found.end(), [&](const Job& a, const Job& b) {
    if (state == JobState::ready) {
      return std::tuple(is_blocked(a), ready_key(a)) < std::tuple(is_blocked(b), ready_key(b));
    }
    if (state == JobState::delayed) return deadline_key(a) < deadline_key(b);
    if (state == JobState::reserved) return a.reserve_order < b.reserve_order;
    return a.bury_order < b.bury_order;
  });
  return found;
}

Model::Slices Model::slices(std::string_view name, JobState state, std::uint64_t bound) const {
  const Tube* tube = find_tube(name);
  if (tube == nullptr) return {};
  return {.tube = tube->name,
          .tube_number = tube->number,
          .state = state,
          .left = std::min<std::uint64_t>(bound, jobs_in(name, state).size())};
}

// Returns the next job of that work, or null, also if a later tube has the name.
Model::Job* Model::next_of(const Slices& slices) {
  const Tube* tube = find_tube(slices.tube);
  if (tube == nullptr || tube->number != slices.tube_number) return nullptr;
  const std::vector<Job> there = jobs_in(slices.tube, slices.state);
  return there.empty() ? nullptr : find_any_job(there.front().id);
}

Model::Slices Model::begin_kick(std::string_view tube, std::optional<JobState> state,
                                std::uint64_t bound) const {
  const bool buried = !jobs_in(tube, JobState::buried).empty();
  return slices(tube, state.value_or(buried ? JobState::buried : JobState::delayed), bound);
}

Model::Slices Model::begin_flush(std::string_view tube, JobState state, std::uint64_t bound) const {
  return slices(tube, state, bound);
}

std::uint32_t Model::kick(Slices& kick, Time now, Output& out) {
  std::uint32_t moved = 0;
  while (kick.left > 0 && moved < limits_.work_per_turn) {
    Job* job = next_of(kick);
    if (job == nullptr) {
      kick.left = 0;
      break;
    }
    ++job->counters.kicks;
    renew(*job);
    make_ready(*job, out);
    --kick.left;
    ++moved;
  }
  serve_waiting(now, out);
  return moved;
}

std::uint64_t Model::take_all(std::string_view tube, std::vector<JobState> states) {
  std::uint64_t count = 0;
  for (const Job& job : std::vector<Job>(jobs_)) {
    if (job.tube != tube || !job.held()) continue;
    ++count;
    flushed_.push_back(job);
    std::erase_if(jobs_, [&](const Job& each) { return each.id == job.id; });
  }
  for (const JobState state : states) {
    for (const Job& job : jobs_in(tube, state)) {
      if (!job.truncated) ++count;
      flushed_.push_back(job);
      if (state == JobState::reserved) flushed_.back().state = JobState::buried;
      std::erase_if(jobs_, [&](const Job& each) { return each.id == job.id; });
    }
  }
  find_tube(tube)->delete_count += count;
  return count;
}

// Flushes the keys of the jobs and cooldowns of the tube, in the order of their names. Returns
// false if it has no keys.
bool Model::flush_keys(std::string_view tube) {
  std::vector<Key> keys;
  for (Job& job : jobs_) {
    if (job.tube != tube || job.key.empty() || job.truncated) continue;
    keys.push_back({.id = job.id, .tube = job.tube, .name = job.key, .until = {}});
  }
  for (const Key& key : cooldowns_) {
    if (key.tube == tube) keys.push_back(key);
  }
  std::erase_if(cooldowns_, [&](const Key& key) { return key.tube == tube; });
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) { return a.name < b.name; });
  ++flushes_;
  for (Key& key : keys) key.flush = flushes_;
  flushed_keys_.insert(flushed_keys_.end(), keys.begin(), keys.end());
  return !keys.empty();
}

std::uint64_t Model::flush(std::string_view name, Time now, Output& out) {
  const bool has_keys = flush_keys(name);
  if (find_tube(name) == nullptr || count_states(name).total() == 0) {
    if (has_keys) out.fact(Flushed{.tube = name});
    return 0;
  }
  const std::uint64_t count =
      take_all(name, {JobState::ready, JobState::delayed, JobState::buried, JobState::reserved});
  out.fact(Flushed{.tube = name});
  answer_job_waits(out);
  remove_if_unwanted(std::string(name));
  serve_waiting(now, out);
  return count;
}

std::optional<std::uint64_t> Model::truncate(std::string_view name, Time now, Output& out) {
  if (find_tube(name) == nullptr) return std::nullopt;
  if (count_states(name).total() == 0) return flush(name, now, out);
  flush_keys(name);
  for (const Job& held : jobs_in(name, JobState::reserved)) {
    Job& job = *find_any_job(held.id);
    job.truncated = true;
    job.group.clear();
    job.after.clear();
    complete_groups();
  }
  const std::uint64_t count =
      take_all(name, {JobState::ready, JobState::delayed, JobState::buried});
  out.fact(Flushed{.tube = name});
  answer_job_waits(out);
  remove_if_unwanted(std::string(name));
  serve_waiting(now, out);
  return count;
}

bool Model::has_removals(Time now) const {
  const auto has_ended = [&](const Key& key) { return key.until && *key.until <= now; };
  return !flushed_.empty() || !flushed_keys_.empty() ||
         std::any_of(cooldowns_.begin(), cooldowns_.end(), has_ended);
}

bool Model::remove_flushed(JobId id, Output& out) {
  out.fact(Removed{.id = id});
  const bool removed = std::erase_if(flushed_, [&](const Job& job) { return job.id == id; }) == 1;
  complete_groups();
  return removed;
}

void Model::remove_key(Time now, Output& out) {
  std::vector<Key>& keys = flushed_keys_.empty() ? cooldowns_ : flushed_keys_;
  auto next = keys.begin();
  if (flushed_keys_.empty()) {
    next = std::min_element(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
      return std::tie(a.until, a.id) < std::tie(b.until, b.id);
    });
    if (next == keys.end() || *next->until > now) return;
  }
  if (next->until) out.fact(Removed{.id = next->id});
  keys.erase(next);
}

std::uint32_t Model::flush_slice(Slices& flush, Time now, Output& out) {
  std::uint32_t removed = 0;
  for (std::uint32_t work = 0; flush.left > 0 && work < limits_.work_per_turn; ++work) {
    const Job* job = next_of(flush);
    if (job == nullptr) {
      flush.left = 0;
      break;
    }
    out.fact(Removed{.id = job->id});
    const bool exists = !job->truncated;
    std::erase_if(jobs_, [&, id = job->id](const Job& each) { return each.id == id; });
    complete_groups();
    if (!exists) continue;
    ++find_tube(flush.tube)->delete_count;
    answer_job_waits(out);
    --flush.left;
    ++removed;
  }
  serve_waiting(now, out);
  if (find_tube(flush.tube) != nullptr) remove_if_unwanted(flush.tube);
  return removed;
}

std::vector<JobId> Model::list(std::string_view tube, std::optional<JobState> state,
                               bool held) const {
  std::vector<JobId> ids;
  for (const Job& job : jobs_) {
    const bool listed = job.tube == tube && (!state || (job.state == *state && job.held() == held));
    if (listed && !job.truncated) ids.push_back(job.id);
  }
  return ids;
}

JobId Model::peek(SessionId id, JobState state) const {
  for (const Job& job : jobs_in(session(id).used, state)) {
    if (!job.truncated) return job.id;
  }
  return 0;
}

}  // namespace tubed::engine
