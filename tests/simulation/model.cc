#include "tests/simulation/model.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace tubed::simulation {

using namespace std::chrono_literals;

namespace {

constexpr std::array<std::string_view, 2> kModelTubes = {"m1", "m2"};
// Timers have milliseconds, and their effect takes a few ticks.
constexpr Duration kLate = 5ms;
// An answer waits for some commits, and for the steps of a slow connection.
constexpr Duration kOverdue = 250ms;
// The server has seen by then that a client has left.
constexpr Duration kLeft = 10ms;
constexpr Duration kMargin = 1s;  // DEADLINE_SOON

// The number after the word.
std::uint64_t number_of(std::string_view line) {
  return number_in(line.substr(std::min(line.find(' '), line.size() - 1) + 1));
}

std::string milliseconds(Duration duration) {
  return fmt::format("{}ms", duration / 1ms);
}

std::uint64_t field(std::string_view block, std::string_view name) {
  const std::size_t at = block.find(fmt::format("\n{}: ", name));
  if (at == std::string_view::npos) return ~std::uint64_t{0};
  return number_in(block.substr(at + name.size() + 3));
}

std::string_view word_of(std::string_view block, std::string_view name) {
  const std::size_t at = block.find(fmt::format("\n{}: ", name));
  if (at == std::string_view::npos) return {};
  const std::string_view rest = block.substr(at + name.size() + 3);
  return rest.substr(0, rest.find('\n'));
}

}  // namespace

// --- The clients

class Model::ModelClient final : public Script {
 public:
  ModelClient(Model& model, std::uint64_t seed, const std::string& name)
      : model_(model), chance_(seed, name + " commands"), name_(name) {}
  ~ModelClient() override { std::erase(model_.clients_, this); }
  ModelClient(const ModelClient&) = delete;
  ModelClient& operator=(const ModelClient&) = delete;

  std::vector<MadeCommand> first(Chance&) override {
    std::vector<MadeCommand> commands;
    const auto add = [&commands](std::string_view row, const std::string& line) {
      commands.push_back({.row = commands::find_command(row), .line = line});
    };
    watched_.clear();
    issued_.reset();
    if (chance_.percent(50)) add("set-caps", "set-caps 1");
    for (const std::string_view tube : kModelTubes) {
      if (chance_.percent(70)) watched_.emplace(tube);
    }
    if (watched_.empty()) watched_.emplace(kModelTubes[0]);
    for (const std::string& tube : watched_) add("watch", "watch " + tube);
    add("ignore", "ignore default");
    add("list-tube-used", "list-tube-used");
    return commands;
  }

  std::vector<MadeCommand> next(std::size_t unanswered) override {
    if (unanswered > 0 || issued_ || !model_.may_send()) return {};
    Issued issued{.sent = model_.world_.now(), .changes = model_.changes_};
    MadeCommand made = make(issued);
    if (made.row == nullptr) return {};
    issued_ = std::move(issued);
    return {std::move(made)};
  }

  void answered(const MadeCommand&, std::string_view) override {}
  void answered_with(const MadeCommand&, std::string_view line, std::string_view content) override {
    if (!issued_) return;  // of the first commands
    const Issued issued = *issued_;
    model_.answered(*this, issued, line, content);
    issued_.reset();
  }
  void lost(const std::deque<MadeCommand>&) override { forget(); }
  void forget() { model_.lost(*this, std::exchange(issued_, std::nullopt)); }
  unsigned leaves() const override { return 4; }

  Time held_until;  // when the last reservation that has ended by itself was seen to have ended

  bool watches(const std::string& tube) const { return watched_.contains(tube); }
  const std::optional<Issued>& issued() const { return issued_; }
  void may_have_kicked() { ++issued_->perhaps_kicked; }
  void may_have_run() { issued_->may_have_run = true; }
  void has_kicked() { ++issued_->kicked; }
  void has_run() { issued_->has_run = true; }
  const std::string& name() const { return name_; }

 private:
  Duration a_delay() {
    static constexpr std::array<Duration, 6> kDelays = {0ms, 0ms, 0ms, 3ms, 20ms, 60s};
    return chance_.one_of(kDelays);
  }
  std::string a_tube() { return std::string(chance_.one_of(kModelTubes)); }

  // Null row: there is nothing to send.
  MadeCommand make(Issued& issued) {
    const auto drawn = chance_.below(100);
    const auto made = [](std::string_view row, std::string arguments) {
      return MadeCommand{.row = commands::find_command(row),
                         .line = fmt::format("{} {}", row, arguments)};
    };
    if (drawn < 22) return put(issued);
    if (drawn < 50) return reserve(issued);
    if (drawn < 54) {
      issued.kind = Kind::pause;
      issued.tube = *watched_.begin();
      static constexpr std::array<Duration, 4> kPauses = {0ms, 0ms, 4ms, 15ms};
      issued.time = chance_.one_of(kPauses);
      return made("pause-tube", fmt::format("{} {}", issued.tube, milliseconds(issued.time)));
    }
    if (drawn < 62) {
      const bool moves = !model_.is_waiting() && chance_.percent(50);
      issued.kind = moves ? Kind::move : Kind::kick_tube;
      issued.tube = a_tube();
      issued.to = a_tube();
      issued.count = chance_.between(1, 3);
      static constexpr std::array<JobState, 3> kStates = {JobState::buried, JobState::delayed,
                                                          JobState::ready};
      issued.state = kStates[chance_.below(moves ? 3 : 2)];
      if (moves) {
        return made("move-jobs", fmt::format("{} {} {} {}", issued.tube, name_of(issued.state),
                                             issued.to, issued.count));
      }
      return made("kick-tube",
                  fmt::format("{} {} {}", issued.tube, issued.count, name_of(issued.state)));
    }
    return about_a_job(issued);
  }

  MadeCommand put(Issued& issued) {
    static constexpr std::array<Duration, 5> kTtrs = {60s, 60s, 3ms, 12ms, 1010ms};
    issued.kind = Kind::put;
    issued.tube = a_tube();
    issued.priority = static_cast<Priority>(chance_.below(3));
    issued.time = a_delay();
    issued.ttr = chance_.one_of(kTtrs);
    const std::size_t more = chance_.percent(8) ? chance_.below(9000) : chance_.below(20);
    issued.body = fmt::format("model {} ", model_.known_.puts++);
    for (std::size_t i = 0; i < more; ++i) issued.body.push_back(static_cast<char>('a' + i % 26));
    model_.known_.bodies.emplace(issued.body, 0);
    MadeCommand made{.row = commands::find_command("put-in-tube"), .body = issued.body};
    made.line =
        fmt::format("put-in-tube {} {} {} {} {}", issued.tube, issued.priority,
                    milliseconds(issued.time), milliseconds(issued.ttr), issued.body.size());
    return made;
  }

  MadeCommand reserve(Issued& issued) {
    issued.kind = Kind::reserve;
    static constexpr std::array<Duration, 4> kLimits = {0s, 0s, 1s, 60s};
    issued.time = chance_.one_of(kLimits);
    MadeCommand made{.row = commands::find_command("reserve-with-timeout")};
    made.line = fmt::format("reserve-with-timeout {}", issued.time / 1s);
    made.waits = issued.time;
    return made;
  }

  MadeCommand about_a_job(Issued& issued) {
    std::vector<const Job*> choices;
    const bool own = chance_.percent(70);
    for (const auto& [id, job] : model_.jobs_) {
      const bool is_own = job.state == JobState::reserved && job.holder == this;
      if (!job.is_doubtful && (is_own || !own)) choices.push_back(&job);
    }
    if (choices.empty()) return {};
    const Job& job = *chance_.one_of(choices);
    issued.id = job.id;
    issued.priority = job.priority;
    struct Choice {
      Kind kind;
      std::string_view row;
    };
    static constexpr std::array<Choice, 12> kChoices = {{{Kind::remove, "delete"},
                                                         {Kind::remove, "delete"},
                                                         {Kind::remove, "delete"},
                                                         {Kind::release, "release"},
                                                         {Kind::release, "release"},
                                                         {Kind::bury, "bury"},
                                                         {Kind::bury, "bury"},
                                                         {Kind::touch, "touch"},
                                                         {Kind::kick, "kick-job"},
                                                         {Kind::reserve_job, "reserve-job"},
                                                         {Kind::show, "stats-job"},
                                                         {Kind::peek, "peek"}}};
    const Choice& choice = chance_.one_of(kChoices);
    issued.kind = choice.kind;
    MadeCommand made{.row = commands::find_command(choice.row),
                     .line = fmt::format("{} {}", choice.row, job.id)};
    if (choice.kind == Kind::release || choice.kind == Kind::bury) {
      issued.priority = static_cast<Priority>(chance_.below(3));
      made.line += fmt::format(" {}", issued.priority);
    }
    if (choice.kind == Kind::release) {
      issued.time = a_delay();
      made.line += ' ' + milliseconds(issued.time);
    }
    return made;
  }

  Model& model_;
  Chance chance_;
  const std::string name_;
  std::set<std::string> watched_;
  std::optional<Issued> issued_;
};

std::unique_ptr<Script> Model::add_client(const std::string& name) {
  auto client = std::make_unique<ModelClient>(*this, world_.seed(), name);
  clients_.push_back(client.get());
  return client;
}

// --- Time

bool Model::has_passed(const Window& window, Time time) const {
  return window.latest + kLate < time;
}

void Model::settle() {
  Time now = world_.now();
  for (const ModelClient* client : clients_) {
    if (client->issued() && !client->issued()->waits()) now = client->issued()->sent;
  }
  for (auto& [id, job] : jobs_) {
    const bool is_timed = job.state == JobState::delayed || job.state == JobState::reserved;
    if (!is_timed || job.is_doubtful || !has_passed(job.due, now)) continue;
    if (job.state == JobState::reserved) end_reservation(job);
    make_ready(job, now);
  }
}

void Model::make_ready(Job& job, Time since) {
  job.state = JobState::ready;
  job.ready_since = since;
  job.holder = nullptr;
}

// By its TTR, or because its holder has left.
void Model::end_reservation(Job& job) {
  if (job.holder != nullptr) job.holder->held_until = world_.now();
  if (job.counters && job.holder != nullptr) ++job.counters->timeouts;
  job.may_rest_ready = true;
  job.holder = nullptr;
}

bool Model::is_paused(const std::string& tube) const {
  const auto found = pauses_.find(tube);
  return found != pauses_.end() && world_.now() < found->second.end.earliest;
}

bool Model::may_be_paused(const std::string& tube, Time time) const {
  const auto found = pauses_.find(tube);
  const bool is_doubtful = doubtful_pauses_.contains(tube);
  return is_doubtful || (found != pauses_.end() && !has_passed(found->second.end, time));
}

// --- What may be

bool Model::may_be_ready(const Job& job) const {
  const bool is_timed = job.state == JobState::delayed || job.state == JobState::reserved;
  return job.is_doubtful || job.state == JobState::ready ||
         (is_timed && job.due.earliest <= world_.now());
}

bool Model::may_be_given(const Job& job, const ModelClient& to) const {
  return to.watches(job.tube) && may_be_ready(job) &&
         (!is_paused(job.tube) || doubtful_pauses_.contains(job.tube) || pauses_now(job.tube));
}

// Also before a pause that has begun since.
bool Model::may_have_been_given(const Job& job, const ModelClient& to,
                                const Issued& reserve) const {
  if (may_be_given(job, to)) return true;
  // Or it was given to this client first, and the reply comes after that of the next.
  const bool is_overtaken = job.state == JobState::reserved && reserve.sent < job.taken;
  if (is_overtaken && to.watches(job.tube) && reserve.sent + job.ttr <= world_.now()) return true;
  const auto pause = pauses_.find(job.tube);
  return to.watches(job.tube) && may_be_ready(job) && pause != pauses_.end() &&
         pause->second.begun > std::max(reserve.sent, job.due.earliest);
}

// A pause of the tube, or its end, has no reply yet.
bool Model::pauses_now(const std::string& tube) const {
  return std::ranges::any_of(clients_, [&](const ModelClient* client) {
    return client->issued() && client->issued()->kind == Kind::pause &&
           client->issued()->tube == tube;
  });
}

// A job that a command without a reply has made ready may be given before that reply arrives.
void Model::run_early(Job& job) {
  for (ModelClient* client : clients_) {
    if (!client->issued() || client->issued()->has_run) continue;
    const Issued issued = *client->issued();
    const bool is_release = issued.kind == Kind::release &&
                            issued.sent + issued.time <= world_.now() && job.holder == client &&
                            job.state == JobState::reserved;
    const bool is_kick = issued.kind == Kind::kick && job.state != JobState::reserved;
    if (issued.id == job.id && (is_release || is_kick)) {
      answered_about(*client, issued, job, is_kick ? "KICKED" : "RELEASED", {});
      return client->has_run();
    }
    const bool may_be_kicked = issued.kind == Kind::kick_tube && issued.tube == job.tube;
    if (may_be_kicked && job.state == issued.state) {
      client->has_kicked();
      return doubt(job);
    }
  }
}

void Model::doubt(Job& job) {
  job.is_doubtful = true;
  begin_doubts();
}

void Model::begin_doubts() {
  has_doubts_ = true;
  doubtful_since_ = world_.now();
  shown_up_to_.reset();
}

// By another client that waits.
bool Model::may_be_taken(const Job& job, const ModelClient& by) const {
  return std::ranges::any_of(clients_, [&](const ModelClient* client) {
    return client != &by && client->issued() && client->issued()->waits() &&
           may_be_given(job, *client);
  });
}

bool Model::is_waiting(const ModelClient* except) const {
  return std::ranges::any_of(clients_, [except](const ModelClient* client) {
    return client != except && client->issued() && client->issued()->waits();
  });
}

bool Model::is_owed() const {
  return std::ranges::any_of(clients_, [this](const ModelClient* client) {
    return client->issued() && std::ranges::any_of(jobs_, [&](const auto& entry) {
             return !entry.second.is_doubtful && may_be_given(entry.second, *client);
           });
  });
}

bool Model::may_send() {
  settle();
  if (has_doubts_) resolve();
  const bool is_busy = std::ranges::any_of(clients_, [](const ModelClient* client) {
    return client->issued() && !client->issued()->waits();
  });
  return service_ != nullptr && !is_busy && !is_owed();
}

void Model::check() {
  settle();
  const Time now = world_.now();
  for (const ModelClient* client : clients_) {
    if (!client->issued()) continue;
    const Issued& issued = *client->issued();
    if (now - issued.sent > issued.time + kOverdue && issued.kind == Kind::reserve)
      return world_.fail(fmt::format("{}: its wait does not end", client->name()));
    if (now - issued.sent > kOverdue && issued.kind != Kind::reserve)
      return world_.fail(fmt::format("{}: no answer", client->name()));
    if (!issued.waits()) continue;
    for (const auto& [id, job] : jobs_) {
      if (job.is_doubtful || job.state != JobState::ready || !client->watches(job.tube)) continue;
      if (may_be_paused(job.tube, now)) continue;
      const auto pause = pauses_.find(job.tube);
      Time since = std::max(job.ready_since, issued.sent);
      if (pause != pauses_.end()) since = std::max(since, pause->second.end.latest);
      if (now - since > kOverdue)
        return fail(job, fmt::format("it is ready, and {} waits", client->name()));
    }
  }
}

// --- Replies

Model::Job* Model::find(JobId id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

void Model::rest(Job& job, JobState state, const Window& due) {
  job.rest = {state, due};
  job.may_rest_ready = false;
  job.holder = nullptr;
  job.state = state;
  job.due = due;
  if (state == JobState::ready) job.ready_since = world_.now();
  if (state == JobState::buried) job.bury_order = ++last_bury_;
}

Model::Job& Model::add(const Issued& put, JobId id) {
  Job& job = jobs_[id];
  job.id = id;
  job.tube = put.tube;
  job.body = put.body;
  job.priority = put.priority;
  job.ttr = put.ttr;
  const bool is_delayed = put.time > Duration::zero();
  rest(job, is_delayed ? JobState::delayed : JobState::ready, from_now(put, put.time));
  last_id_ = std::max(last_id_, id);
  return job;
}

void Model::answered(ModelClient& client, const Issued& issued, std::string_view line,
                     std::string_view content) {
  if (service_ == nullptr) return;  // the process has ended
  settle();
  const std::uint64_t seen = changes_++;
  switch (issued.kind) {
    case Kind::put:
      return answered_put(issued, line);
    case Kind::reserve: {
      Issued alone = issued;
      // Nothing else has run since.
      alone.count = seen == issued.changes ? 1 : 0;
      return answered_reserve(client, alone, line, content);
    }
    case Kind::kick_tube:
    case Kind::move:
      return answered_many(issued, line);
    case Kind::pause:
      if (line != "PAUSED") return world_.fail(fmt::format("pause-tube: {}", line));
      doubtful_pauses_.erase(issued.tube);
      pauses_.erase(issued.tube);
      if (issued.time > Duration::zero()) {
        pauses_[issued.tube] = {world_.now(), from_now(issued, issued.time)};
      }
      return;
    default:
      break;
  }
  if (issued.has_run) {
    if (line == "NOT_FOUND") world_.fail(fmt::format("job {}: NOT_FOUND, but it ran", issued.id));
    return;
  }
  Job* const job = find(issued.id);
  // A job that a waiting client has got in between may be deleted only by that client.
  if (job == nullptr) return world_.fail(fmt::format("{}: the job is gone", client.name()));
  if (issued.may_have_run) {                                   // or was too late
    if (line == "DELETED") return void(jobs_.erase(job->id));  // after the reservation
    job->counters.reset();
    if (const auto info = service_->engine().job_info(world_.now(), job->id))
      job->priority = info->priority;
    return;
  }
  answered_about(client, issued, *job, line, content);
}

void Model::answered_put(const Issued& issued, std::string_view line) {
  if (line == "DRAINING") return;
  if (!line.starts_with("INSERTED ")) return world_.fail(fmt::format("a put: {}", line));
  const JobId id = number_of(line);
  if (const Job* known = find(id)) {  // a client that waited has got it before
    if (known->body != issued.body) fail(*known, "its id was given to another job");
    return;
  }
  if (id <= last_id_) return world_.fail(fmt::format("the id {} follows {}", id, last_id_));
  Job& job = add(issued, id);
  // A client that has left since may have had it.
  if (doubtful_since_ >= issued.sent) doubt(job);
}

void Model::take(ModelClient& client, Job& job, const Issued& issued) {
  const bool overlaps = job.holder != nullptr && job.holder != &client && issued.sent < job.taken;
  if (job.state == JobState::reserved) end_reservation(job);
  if (std::exchange(job.may_rest_ready, false)) job.rest = {};
  // Replies on two connections may arrive in another order than that in which the server made them.
  job.has_unknown_holder = overlaps;
  if (overlaps) doubt(job);
  job.taken = world_.now();
  job.state = JobState::reserved;
  job.holder = &client;
  job.due = {std::max(issued.sent, job.due.earliest) + job.ttr, world_.now() + job.ttr};
  if (job.counters) ++job.counters->reserves;
}

void Model::answered_reserve(ModelClient& client, const Issued& issued, std::string_view line,
                             std::string_view content) {
  if (line == "TIMED_OUT") return timed_out(client, issued);
  const bool is_alone = issued.count == 1;
  if (line == "DEADLINE_SOON") {
    const bool holds = std::ranges::any_of(jobs_, [&](const auto& entry) {
      const Job& job = entry.second;
      return (job.holder == &client || job.has_unknown_holder) && job.state == JobState::reserved &&
             job.due.earliest - kMargin <= world_.now();
    });
    if (!holds && client.held_until < issued.sent)
      world_.fail(fmt::format("{}: DEADLINE_SOON without a reason", client.name()));
    return;
  }
  if (!line.starts_with("RESERVED ")) return world_.fail(fmt::format("a reserve: {}", line));
  const JobId id = number_of(line);
  Job* job = find(id);
  if (job == nullptr) {
    // Of a put whose reply has not arrived, or never will.
    const Issued* put = nullptr;
    for (const ModelClient* other : clients_) {
      const auto& sent = other->issued();
      if (sent && sent->kind == Kind::put && sent->body == content) put = &*sent;
    }
    const auto lost_put = lost_puts_.find(std::string(content));
    if (lost_put != lost_puts_.end()) put = &lost_put->second;
    if (put == nullptr) return world_.fail(fmt::format("job {} is not known", id));
    job = &add(*put, id);
    const bool was_lost = lost_put != lost_puts_.end();  // and kicked, perhaps
    if (!was_lost && job->state == JobState::delayed && job->due.earliest > world_.now())
      return fail(*job, "it is reserved before its delay has ended");
    make_ready(*job, put->sent);
    job->due.earliest = put->sent;
    if (was_lost) {
      job->is_doubtful = true;  // it may have been moved
      lost_puts_.erase(lost_put);
    }
  }
  if (job->body != content) return fail(*job, "it has another body");
  if (job->is_doubtful) {
    const auto info = service_->engine().job_info(world_.now(), id);
    job->due = {};
    if (info) job->tube = info->tube;
    if (info) job->priority = info->priority;
  }
  if (may_have_been_given(*job, client, issued)) {
    for (ModelClient* other : clients_) {
      if (other == &client || !other->issued()) continue;
      if (other->issued()->id == id) other->may_have_run();
      if (other->issued()->kind == Kind::kick_tube && other->issued()->tube == job->tube) {
        other->may_have_kicked();
        job->counters.reset();
      }
    }
  } else {
    run_early(*job);
  }
  if (!may_have_been_given(*job, client, issued))
    return fail(*job, fmt::format("{} gets it", client.name()));
  const bool shows_tube = std::ranges::count(line, ' ') == 3;
  if (shows_tube && !line.ends_with(' ' + job->tube)) return fail(*job, "it has another tube");
  for (const auto& [other_id, other] : jobs_) {
    if (!is_alone || other.is_doubtful || other.state != JobState::ready || &other == job) continue;
    if (other.ready_since > issued.sent || !client.watches(other.tube)) continue;
    if (may_be_paused(other.tube, issued.sent) || !is_before(other, *job)) continue;
    return fail(other, fmt::format("job {} is given before it", id));
  }
  if (std::exchange(job->is_doubtful, false)) {
    for (ModelClient* holder : clients_) {
      if (job->has_unknown_holder || job->holder == holder) holder->held_until = world_.now();
    }
    job->counters.reset();
    job->due = {};
    job->state = JobState::ready;
    job->may_be_gone = false;
  }
  take(client, *job, issued);
}

void Model::timed_out(const ModelClient& client, const Issued& issued) {
  const Time end = issued.sent + issued.time;
  if (world_.now() < end) return world_.fail(fmt::format("{}: TIMED_OUT too early", client.name()));
  const bool others_wait = is_waiting(&client);
  for (const auto& [id, job] : jobs_) {
    const bool is_held = job.state == JobState::reserved && job.holder == &client;
    if (is_held && !job.is_doubtful && job.due.latest - kMargin < issued.sent &&
        job.due.earliest > world_.now())
      return fail(job, fmt::format("{}: TIMED_OUT instead of DEADLINE_SOON", client.name()));
    if (others_wait || job.is_doubtful || job.state != JobState::ready) continue;
    if (job.ready_since > end || !client.watches(job.tube)) continue;
    if (may_be_paused(job.tube, end)) continue;
    return fail(job, fmt::format("{}: TIMED_OUT while it is ready", client.name()));
  }
}

void Model::answered_many(const Issued& issued, std::string_view line) {
  const std::string_view word = issued.kind == Kind::move ? "MOVED " : "KICKED ";
  if (!line.starts_with(word)) return world_.fail(fmt::format("{}: {}", word, line));
  const std::uint64_t count = number_of(line);
  std::uint64_t most = issued.kicked + issued.perhaps_kicked;  // that may be in this state
  std::uint64_t least = issued.kicked;                         // that are
  for (auto& [id, job] : jobs_) {
    const bool may_arrive = issued.state == JobState::ready && may_be_ready(job);
    if (job.is_doubtful) {  // and perhaps in another tube
      ++most;
      continue;
    }
    if (job.tube != issued.tube || !(job.state == issued.state || may_arrive)) continue;
    ++most;
    const bool may_leave = (job.state == JobState::delayed && job.due.earliest <= world_.now()) ||
                           (job.state == JobState::ready && job.ready_since > issued.sent);
    if (!may_leave && job.state == issued.state) ++least;
  }
  most += lost_puts_.size();
  const bool is_certain = least == most;
  if (issued.kind == Kind::move && issued.to == issued.tube) least = most = 0;
  least = std::min(least, issued.count);
  most = std::min(most, issued.count);
  if (count < least || count > most) {
    return world_.fail(fmt::format("{} jobs of {}: {}, not {} to {}", name_of(issued.state),
                                   issued.tube, line, least, most));
  }
  if (count == 0) return;
  if (is_certain && least == most && take_first(issued, count - issued.kicked)) return;
  // Which of the jobs were taken is read from the engine, as after a command without a reply.
  for (auto& [id, job] : jobs_) {
    const bool may_be_held = job.state == JobState::reserved && !may_be_ready(job);
    if (job.tube != issued.tube || may_be_held) continue;
    if (const auto info = service_->engine().job_info(world_.now(), id)) job.tube = info->tube;
    doubt(job);
  }
}

// False: their order is not known.
bool Model::take_first(const Issued& issued, std::uint64_t count) {
  std::vector<Job*> jobs;
  for (auto& [id, job] : jobs_) {
    if (job.tube != issued.tube || job.is_doubtful || job.state != issued.state) continue;
    const bool has_order =
        job.state == JobState::ready || (job.state == JobState::buried && job.bury_order > 0);
    if (!has_order) return false;
    jobs.push_back(&job);
  }
  const bool is_ready = issued.state == JobState::ready;
  std::ranges::sort(jobs, [is_ready](const Job* one, const Job* other) {
    return is_ready ? is_before(*one, *other) : one->bury_order < other->bury_order;
  });
  jobs.resize(std::min<std::size_t>(jobs.size(), count));
  for (Job* job : jobs) {
    if (issued.kind == Kind::move) {
      job->tube = issued.to;
      rest(*job, job->state, {});
      job->bury_order = 0;
    } else {
      if (job->counters) ++job->counters->kicks;
      rest(*job, JobState::ready, {});
    }
  }
  return true;
}

void Model::answered_about(ModelClient& client, const Issued& issued, Job& job,
                           std::string_view line, std::string_view content) {
  const bool is_timed = job.state == JobState::delayed || job.state == JobState::reserved;
  const bool may_be_due = is_timed && job.due.earliest <= world_.now();
  const bool is_reserved = job.state == JobState::reserved;
  const bool is_own = is_reserved && job.holder == &client;
  const bool is_taken = !is_own && may_be_taken(job, client);
  const bool is_free = !is_reserved || may_be_due;
  bool may_succeed = false;
  bool may_fail = false;
  switch (issued.kind) {
    case Kind::remove:
      may_succeed = is_own || is_free;
      may_fail = (is_reserved && !is_own) || is_taken || (is_own && may_be_due);
      break;
    case Kind::release:
    case Kind::bury:
    case Kind::touch:
      may_succeed = is_own;
      may_fail = !is_own || may_be_due;
      break;
    case Kind::reserve_job:
      may_succeed = is_free;
      may_fail = is_reserved || is_taken;
      break;
    case Kind::kick:
      may_succeed = job.state == JobState::buried || job.state == JobState::delayed;
      may_fail = !may_succeed || (job.state == JobState::delayed && may_be_due);
      break;
    default:
      may_succeed = true;
      break;
  }
  const bool succeeded = line != "NOT_FOUND";
  if (job.is_doubtful) {
    if (!succeeded) return;
  } else if (succeeded ? !may_succeed : !may_fail) {
    return fail(job, fmt::format("{}: {}", client.name(), line));
  }
  if (!succeeded) {
    // Its TTR has ended.
    if (is_own && issued.kind != Kind::reserve_job && issued.kind != Kind::kick) {
      end_reservation(job);
      make_ready(job, world_.now());
    }
    return;
  }
  const bool was_doubtful = job.is_doubtful;
  switch (issued.kind) {
    case Kind::remove:
      jobs_.erase(job.id);
      return;
    case Kind::release:
      job.priority = issued.priority;
      if (job.counters) ++job.counters->releases;
      rest(job, issued.time > Duration::zero() ? JobState::delayed : JobState::ready,
           from_now(issued, issued.time));
      break;
    case Kind::bury:
      job.priority = issued.priority;
      if (job.counters) ++job.counters->buries;
      rest(job, JobState::buried, {});
      break;
    case Kind::touch:
      job.due = from_now(issued, job.ttr);
      return;
    case Kind::reserve_job:
      if (job.body != content) return fail(job, "it has another body");
      job.due.earliest = issued.sent;
      if (was_doubtful) job.counters.reset();
      take(client, job, issued);
      break;
    case Kind::kick:
      if (job.counters) ++job.counters->kicks;
      rest(job, JobState::ready, {});
      break;
    case Kind::peek:
      if (job.body != content) fail(job, "it has another body");
      return;
    default:
      if (!was_doubtful) shown(job, client, content);
      return;
  }
  if (was_doubtful) job.counters.reset();
  job.is_doubtful = job.may_be_gone = false;
}

void Model::shown(const Job& job, const ModelClient& client, std::string_view content) {
  const auto expect = [&](std::string_view name, std::uint64_t least, std::uint64_t most) {
    const std::uint64_t value = field(content, name);
    if (value < least || value > most)
      fail(job, fmt::format("{} is {}, not {} to {}", name, value, least, most));
  };
  const bool may_be_due = may_be_ready(job) && job.state != JobState::ready;
  const bool is_taken = may_be_taken(job, client);
  const std::string_view state = word_of(content, "state");
  const bool fits = state == name_of(job.state) || (may_be_due && state == "ready") ||
                    (is_taken && state == "reserved");
  if (!fits) return fail(job, fmt::format("it is {}", state));
  if (word_of(content, "tube").find(job.tube) == std::string_view::npos)
    return fail(job, "it has another tube");
  expect("id", job.id, job.id);
  expect("pri", job.priority, job.priority);
  if (!job.counters) return;
  const JobCounters& counters = *job.counters;
  const bool may_end = job.state == JobState::reserved && may_be_due;
  expect("reserves", counters.reserves, counters.reserves + (is_taken ? 1 : 0));
  expect("timeouts", counters.timeouts, counters.timeouts + (may_end ? 1 : 0));
  expect("releases", counters.releases, counters.releases);
  expect("buries", counters.buries, counters.buries);
  expect("kicks", counters.kicks, counters.kicks);
}

// --- Doubts

bool Model::is_soon(const Job& job) const {
  return job.due.earliest <= world_.now() + kOverdue;
}

void Model::lost(ModelClient& client, const std::optional<Issued>& issued) {
  ++changes_;
  begin_doubts();
  for (auto& [id, job] : jobs_) {
    const bool was_held = job.state == JobState::reserved && job.holder == &client;
    // The server gives jobs to the client until it sees that the client has left.
    const bool is_timed = job.state == JobState::delayed || job.state == JobState::reserved;
    const bool may_be_given_now = client.watches(job.tube) && (!is_timed || is_soon(job));
    const bool may_be_changed =
        issued && (issued->id == id || (issued->kind == Kind::reserve && may_be_given_now) ||
                   (issued->count > 0 && issued->tube == job.tube));
    if (was_held || may_be_changed) doubt(job);
    if (was_held) job.may_rest_ready = true;
    if (issued && issued->id == id && issued->kind == Kind::remove) job.may_be_gone = true;
    if (was_held) job.holder = nullptr;
  }
  if (issued && issued->kind == Kind::put) lost_puts_.emplace(issued->body, *issued);
  if (issued && issued->kind == Kind::pause) doubtful_pauses_.insert(issued->tube);
}

// Once the server has closed the connections of those that have left.
void Model::resolve() {
  const bool is_busy = std::ranges::any_of(
      clients_, [](const ModelClient* client) { return client->issued().has_value(); });
  if (service_ == nullptr || is_busy || !net_.is_settled()) return;
  if (world_.now() - doubtful_since_ < kLeft) return;
  // The state that the engine shows counts as acknowledged once it is durable.
  const FactLog& log = service_->log();
  if (!shown_up_to_) shown_up_to_ = log.appended();
  if (log.durable() < *shown_up_to_) return;
  shown_up_to_.reset();
  has_doubts_ = false;
  for (auto entry = jobs_.begin(); entry != jobs_.end() && !world_.failed();) {
    const auto next = std::next(entry);
    if (entry->second.is_doubtful && !resolve(entry->second)) jobs_.erase(entry);
    entry = next;
  }
  const Time now = world_.now();
  for (const std::string& tube : doubtful_pauses_) {
    const auto info = service_->engine().tube_info(now, tube);
    pauses_.erase(tube);
    if (info && info->pause_left > Duration::zero())
      pauses_[tube] = {now, {now + info->pause_left, now + info->pause_left}};
  }
  doubtful_pauses_.clear();
  find_lost_puts();
}

// Returns whether the job still exists.
bool Model::resolve(Job& job) {
  const auto info = service_->engine().job_info(world_.now(), job.id);
  if (!info) {
    if (!job.may_be_gone) fail(job, "it is lost");
    return false;
  }
  if (info->state == JobState::reserved && job.has_unknown_holder) {
    begin_doubts();
    return true;
  }
  if (info->state == JobState::reserved && job.holder == nullptr)
    fail(job, "a client that has left holds it");
  adopt(job, *info);
  return true;
}

void Model::adopt(Job& job, const engine::JobInfo& info) {
  const Time now = world_.now();
  const auto body = service_->engine().peek(job.id);
  if (body && body->body.view() != job.body) fail(job, "it has another body");
  job.is_doubtful = job.may_be_gone = job.has_unknown_holder = false;
  job.priority = info.priority;
  job.tube = info.tube;
  job.counters = info.counters;
  if (info.state == JobState::reserved) return;
  job.state = info.state;
  job.holder = nullptr;
  job.due = {now + info.time_left, now + info.time_left};
  job.ready_since = now;
  job.bury_order = 0;
  job.rest = {job.state, job.due};
  job.may_rest_ready = job.state != JobState::buried;
}

// A put without a reply may have run.
void Model::find_lost_puts() {
  const engine::Engine& engine = service_->engine();
  engine.for_each_job([&](JobId id) {
    if (world_.failed() || jobs_.contains(id)) return;
    const auto info = engine.job_info(world_.now(), id);
    if (!info || std::ranges::find(kModelTubes, info->tube) == kModelTubes.end()) return;
    const auto put = lost_puts_.find(std::string(engine.peek(id)->body.view()));
    if (put == lost_puts_.end())
      return world_.fail(fmt::format("no client has put job {}, or it was deleted", id));
    adopt(add(put->second, id), *info);
    lost_puts_.erase(put);
  });
  lost_puts_.clear();
}

void Model::begin_process(const commands::Service& service, bool has_journal) {
  service_ = &service;
  // The end of the connection may still be on its way to the client.
  for (ModelClient* client : clients_) client->forget();
  has_doubts_ = false;
  shown_up_to_.reset();
  const std::set<std::string> doubtful = std::exchange(doubtful_pauses_, {});
  if (!has_journal) {
    jobs_.clear();
    lost_puts_.clear();
    pauses_.clear();
    last_id_ = 0;
    return;
  }
  const Time now = world_.now();
  for (auto entry = jobs_.begin(); entry != jobs_.end();) {
    Job& job = entry->second;
    const auto info = service.engine().job_info(now, job.id);
    if (!info && !(job.is_doubtful && job.may_be_gone)) return fail(job, "it is lost");
    if (!info) {
      entry = jobs_.erase(entry);
      continue;
    }
    if (!job.is_doubtful) expect_at_rest(job, *info);
    adopt(job, *info);
    ++entry;
  }
  for (const std::string_view tube : kModelTubes) {
    const auto info = service.engine().tube_info(now, tube);
    const Duration left = info ? info->pause_left : Duration::zero();
    const auto pause = pauses_.find(tube);
    const bool was_paused = pause != pauses_.end() && pause->second.end.earliest > now + kLate;
    if (was_paused && left == Duration::zero() && !doubtful.contains(std::string(tube)))
      return world_.fail(fmt::format("the pause of {} is lost", tube));
    if (left > Duration::zero()) {
      pauses_[std::string(tube)] = {now, {now + left, now + left}};
    } else if (pause != pauses_.end()) {
      pauses_.erase(pause);
    }
  }
  find_lost_puts();
}

// Where the last acknowledged command has left it.
void Model::expect_at_rest(const Job& job, const engine::JobInfo& info) const {
  if (info.priority != job.priority) fail(job, fmt::format("its priority is {}", info.priority));
  if (info.tube != job.tube) fail(job, fmt::format("it is in {}", info.tube));
  const Time now = world_.now();
  const bool is_over = job.rest.state == JobState::delayed && job.rest.due.earliest <= now + kLate;
  const bool may_be_ready = job.may_rest_ready || is_over;
  if (info.state != job.rest.state && !(may_be_ready && info.state == JobState::ready))
    fail(job, fmt::format("after a restart it is {}", name_of(info.state)));
  if (info.state != JobState::delayed || job.rest.state != JobState::delayed) return;
  const Time due = now + info.time_left;
  if (due + kLate < job.rest.due.earliest || due > job.rest.due.latest + kLate)
    fail(job, "after a restart its delay ends at another time");
}

void Model::fail(const Job& job, std::string_view what) const {
  world_.fail(fmt::format("job {} of {}, priority {}, {}: {}", job.id, job.tube, job.priority,
                          name_of(job.state), what));
}

}  // namespace tubed::simulation
