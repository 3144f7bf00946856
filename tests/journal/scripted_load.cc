#include "tests/journal/scripted_load.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace tubed::journal {

namespace {

constexpr std::size_t kClients = 5;
constexpr std::uint64_t kTubes = 4;

struct IdCollector final : FactSink {
  void fact(const Fact& fact) override {
    if (const Added* added = added_in(fact)) ids.push_back(added->id);
  }
  std::vector<JobId> ids;
};

}  // namespace

void ScriptedLoad::meet(engine::Engine& engine, FactSink& facts, Time now) {
  engine_ = &engine;
  facts_ = &facts;
  now_ = now;
  IdCollector there;
  engine.durable_state().visit(now, there);
  jobs_ = std::move(there.ids);
  replies_.clear();
  clients_.clear();
  for (std::size_t i = 0; i < kClients; ++i) {
    clients_.push_back({.session = engine.open()});
    choose_tubes(clients_.back());
  }
}

void ScriptedLoad::fact(const Fact& fact) {
  facts_->fact(fact);
}

void ScriptedLoad::notice(const engine::Notice& notice) {
  for (Client& client : clients_) {
    if (client.session != notice.session) continue;
    client.waits = false;
    if (notice.kind == engine::Notice::Kind::reserved) client.held.push_back(notice.job);
  }
}

void ScriptedLoad::advance(Time now) {
  now_ = now;
  if (one_in(3)) engine_->remove_pending(now, *this, *this);
  for (;;) {
    engine_->advance(now, *this);
    if (!engine_->next_deadlines().due(now)) return;
  }
}

// --- Choices

std::string ScriptedLoad::some_tube() {
  const std::uint64_t number = below(kTubes);
  return number == 0 ? std::string(kDefaultTube) : "tube-" + std::to_string(number);
}

JobId ScriptedLoad::some_job() {
  return jobs_.empty() ? 1 : jobs_[below(jobs_.size())];
}

JobId ScriptedLoad::some_held_job(Client& client) {
  if (client.held.empty()) return some_job();
  const auto held = client.held.begin() + static_cast<std::ptrdiff_t>(below(client.held.size()));
  const JobId id = *held;
  client.held.erase(held);
  return id;
}

std::string ScriptedLoad::some_body() {
  std::uint64_t size = below(60);
  if (one_in(3)) size = below(habits_.body_bytes + 1);
  if (one_in(40)) size += habits_.body_bytes + below(habits_.body_bytes + 1);
  std::string body(size, static_cast<char>('a' + below(26)));
  // All bodies differ, and so do all sectors of a body.
  for (std::size_t at = 0; at + 20 <= body.size(); at += 256) {
    const std::string mark = std::to_string(random_());
    body.replace(at, std::min<std::size_t>(mark.size(), 20), mark);
  }
  body.resize(size);
  return body;
}

// --- Commands

struct ScriptedLoad::Command {
  std::uint64_t weight;
  void (ScriptedLoad::*run)(Client&);
};

void ScriptedLoad::step(Time now, const MayPut& may_put) {
  static constexpr std::array kCommands = {
      Command{30, &ScriptedLoad::put},         Command{24, &ScriptedLoad::reserve},
      Command{10, &ScriptedLoad::reserve_job}, Command{20, &ScriptedLoad::remove},
      Command{12, &ScriptedLoad::release},     Command{10, &ScriptedLoad::bury},
      Command{3, &ScriptedLoad::touch},        Command{4, &ScriptedLoad::kick},
      Command{3, &ScriptedLoad::kick_job},     Command{3, &ScriptedLoad::pause},
      Command{4, &ScriptedLoad::choose_tubes}, Command{2, &ScriptedLoad::reconnect},
      Command{1, &ScriptedLoad::flush},        Command{1, &ScriptedLoad::flush_state},
      Command{1, &ScriptedLoad::truncate},     Command{8, &ScriptedLoad::put_with_tags},
      Command{5, &ScriptedLoad::move},         Command{1, &ScriptedLoad::move_many},
      Command{2, &ScriptedLoad::reprioritize}, Command{2, &ScriptedLoad::set_policy},
  };
  now_ = now;
  may_put_ = may_put;
  Client& client = clients_[below(clients_.size())];
  if (client.waits) {
    if (one_in(4)) reconnect(client);
    return;
  }
  std::uint64_t weights = 0;
  for (const Command& command : kCommands) weights += command.weight;
  std::uint64_t choice = below(weights);
  for (const Command& command : kCommands) {
    if (choice < command.weight) return (this->*command.run)(client);
    choice -= command.weight;
  }
}

void ScriptedLoad::put(Client& client) {
  if (jobs_.size() >= habits_.jobs) return remove(client);
  const std::string body = some_body();
  const Bytes bytes = Bytes::copy_of(body);
  if (may_put_ && !may_put_(engine_->used_tube(client.session), bytes.size())) return;
  if (!engine_->memory().claim(bytes.size())) return;
  const engine::PutRequest job{
      .priority = some_priority(), .delay = some_span(4), .ttr = some_seconds(6), .body = bytes};
  const JobId id = engine_->put(client.session, now_, job, *this);
  jobs_.push_back(id);
  replies_.push_back({.id = id, .body = body});
}

// Uses one of a few keys: many are taken.
void ScriptedLoad::put_with_tags(Client& client) {
  if (jobs_.size() >= habits_.jobs) return remove(client);
  const std::string tube = some_tube();
  const std::string key = "key-" + std::to_string(below(4));
  JobTags tags;
  if (!one_in(3)) {
    tags.unique_key = key;
    if (one_in(2)) tags.cooldown = some_seconds(6);
  }
  if (one_in(3)) {
    tags.concurrency_key = key;
    tags.concurrency_limit = static_cast<std::uint32_t>(1 + below(2));
  }
  if (one_in(3)) tags.group = key;
  const std::string after = "key-" + std::to_string(below(4));
  if (one_in(3)) tags.after = after;
  if (one_in(3)) tags.ttr_short_by_ms = 250;
  if (!tags.any() || one_in(3)) {
    tags.max_attempts = static_cast<std::uint32_t>(below(4));
    if (one_in(2)) tags.dead = "tube-1";
  }
  const std::string body = some_body();
  const Bytes bytes = Bytes::copy_of(body);
  const std::uint32_t memory = bytes.size() + engine::tags_memory(tags);
  if (may_put_ && !may_put_(tube, memory)) return;
  if (!engine_->memory().claim(memory)) return;
  const engine::PutRequest job{
      .priority = some_priority(), .delay = some_span(4), .ttr = some_seconds(6), .body = bytes};
  const auto result = engine_->put_with_tags(now_, tube, job, tags, *this);
  if (!result) return engine_->memory().give_back(memory);
  if (!result->added) return;
  jobs_.push_back(result->id);
  replies_.push_back({.id = result->id, .body = body});
}

// No policy deletes jobs: acknowledged jobs stay.
void ScriptedLoad::set_policy(Client& /*client*/) {
  static constexpr std::array<std::pair<PolicyKey, std::string_view>, 6> kValues = {{
      {PolicyKey::max_attempts, "2"},
      {PolicyKey::max_releases, "1"},
      {PolicyKey::dead, "tube-0"},
      {PolicyKey::dead, "bury"},
      {PolicyKey::backoff, "2:9"},
      {PolicyKey::max_reserved, "2"},
  }};
  const auto& [key, value] = kValues[below(kValues.size())];
  engine_->set_policy(now_, some_tube(), key, one_in(3) ? kNoPolicyValue : value, *this);
}

void ScriptedLoad::move(Client& client) {
  std::optional<engine::NewPlace> place;
  if (one_in(2)) {
    place = {.priority = some_priority(), .delay = some_span(2)};
  }
  const JobId job = one_in(2) ? some_job() : some_held_job(client);
  engine_->tube_moves().move(client.session, now_, job, some_tube(), place, *this);
}

void ScriptedLoad::move_many(Client& client) {
  const auto state = static_cast<JobState>(below(3));
  engine::Slices move =
      engine_->queries().slices(engine_->used_tube(client.session), state, 1 + below(5));
  const std::string to = some_tube();
  while (move.left > 0) engine_->tube_moves().move_slice(now_, move, to, *this);
}

void ScriptedLoad::reprioritize(Client& /*client*/) {
  engine_->tube_moves().reprioritize(some_job(), some_priority(), *this);
}

void ScriptedLoad::reserve(Client& client) {
  client.waits = true;
  const auto given = engine_->reserve(client.session, now_, {.limit = some_seconds(3)});
  if (given) notice(*given);
}

void ScriptedLoad::reserve_job(Client& client) {
  const auto job = engine_->reserve_job(client.session, now_, some_job());
  if (job) client.held.push_back(job->id);
}

void ScriptedLoad::remove(Client& client) {
  const JobId id = some_held_job(client);
  if (!engine_->remove(client.session, now_, id, *this)) return;
  std::erase(jobs_, id);
  replies_.push_back({.id = id, .removed = true});
}

void ScriptedLoad::release(Client& client) {
  const TimeSpan delay = some_span(2);
  engine_->release(client.session, now_, some_held_job(client), some_priority(), delay, *this);
}

void ScriptedLoad::bury(Client& client) {
  engine_->bury(client.session, now_, some_held_job(client), some_priority(), *this);
}

void ScriptedLoad::touch(Client& client) {
  engine_->touch(client.session, now_, some_job());
}

void ScriptedLoad::kick(Client& client) {
  engine::Slices kick =
      engine_->queries().slices_to_kick(engine_->used_tube(client.session), 1 + below(5));
  while (kick.left > 0) engine_->kick(now_, kick, *this);
}

void ScriptedLoad::kick_job(Client& /*client*/) {
  const TimeSpan delay = some_span(3);
  engine_->kick_job(now_, some_job(), delay, *this);
}

void ScriptedLoad::pause(Client& /*client*/) {
  engine_->pause(now_, some_tube(), some_span(1), *this);
}

void ScriptedLoad::note_removed(const std::vector<JobId>& jobs) {
  for (const JobId id : jobs) {
    std::erase(jobs_, id);
    replies_.push_back({.id = id, .removed = true});
  }
}

void ScriptedLoad::flush(Client& /*client*/) {
  const std::string tube = some_tube();
  const engine::JobPage page = engine_->queries().list_jobs(tube, std::nullopt, 0, 1000);
  engine_->flush(now_, tube, *this);
  note_removed(page.jobs);
}

void ScriptedLoad::flush_state(Client& /*client*/) {
  const std::string tube = some_tube();
  const auto state = static_cast<JobState>(below(4));
  const engine::JobPage page = engine_->queries().list_jobs(tube, state, 0, 1000);
  engine::Slices flush = engine_->queries().slices(tube, state, 1000);
  while (flush.left > 0) engine_->flush_slice(now_, flush, *this, *this);
  note_removed(page.jobs);
}

void ScriptedLoad::truncate(Client& /*client*/) {
  const std::string tube = some_tube();
  const engine::JobPage page = engine_->queries().list_jobs(tube, std::nullopt, 0, 1000);
  engine_->truncate(now_, tube, *this);
  note_removed(page.jobs);
}

void ScriptedLoad::choose_tubes(Client& client) {
  engine_->use(client.session, now_, some_tube());
  engine_->watch(client.session, now_, some_tube());
  if (one_in(2)) engine_->ignore(client.session, now_, some_tube());
}

void ScriptedLoad::reconnect(Client& client) {
  engine_->close(client.session, now_, *this);
  client = {.session = engine_->open()};
  choose_tubes(client);
}

}  // namespace tubed::journal
