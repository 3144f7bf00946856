// Engine: concurrency keys. Which job is exposed and which is parked: engine/concurrency_keys.h.
#include <utility>
#include <vector>

#include "base/planted.h"
#include "engine/engine.h"

namespace tubed::engine {

namespace {

// Forgets the tube, in which no job of the key is ready.
void forget(ConcurrencyKey& key, decltype(ConcurrencyKey::tubes)::iterator place) {
  if (place->second.is_hidden) key.hidden.erase(&place->second);
  key.tubes.erase(place);
}

void set_hidden(ConcurrencyKey& key, ReadyOfKey& ready, bool hidden) {
  if (ready.is_hidden == hidden) return;
  ready.is_hidden = hidden;
  hidden ? key.hidden.push_back(&ready) : key.hidden.erase(&ready);
}

}  // namespace

// True: a call looks at some of its tubes only. All would be more than a small part of a tick.
bool Engine::is_wide(const ConcurrencyKey& key) const {
  constexpr std::uint32_t kPart = 64;
  return key.tubes.size() > limits_.work_per_turn / kPart &&
         !TUBED_PLANTED(wide_key_is_looked_at_whole);
}

// The job has become ready.
void Engine::add_ready_of_key(Job* job) {
  ConcurrencyRecord& record = *job->concurrency();
  Tube* tube = job->tube;
  ReadyOfKey& ready = record.key->tubes[{tube->number, job->epoch}];
  ready.tube = tube;
  ready.epoch = job->epoch;
  ready.jobs.push({job->priority, job->id}, &record);
  if (!record.key->open && is_wide(*record.key)) concurrency_keys_.set_late(*record.key, true);
  park(*job);
  expose_first(*record.key, ready);
}

// The job is ready, and will no longer be.
void Engine::erase_ready_of_key(Job* job) {
  ConcurrencyRecord& record = *job->concurrency();
  Tube* tube = job->tube;
  const auto found = record.key->tubes.find({tube->number, job->epoch});
  ReadyOfKey& ready = found->second;
  ready.jobs.erase(&record);
  if (record.parked) {
    tube->parked.erase(job);
  } else {
    tube->ready.erase(job);
    ready.exposed = nullptr;
  }
  record.parked = false;
  if (ready.jobs.empty()) {
    forget(*record.key, found);
  } else {
    expose_first(*record.key, ready);
  }
}

void Engine::park(Job& job) {
  job.concurrency()->parked = true;
  job.tube->parked.push({job.priority, job.id}, &job);
}

// Exposes the first job, and no other, if the key has room. Flushed jobs stay as they are.
// A job of a late key may stay exposed, unless a session waits in the tube: it would seem to have a
// job for that session.
void Engine::expose_first(ConcurrencyKey& key, ReadyOfKey& ready) {
  Tube* tube = ready.tube;
  if (ready.epoch != tube->epoch) return;
  const bool late = key.late && !ready.is_hidden && tube->waiting.empty();
  Job* first = key.has_room() || late ? ready.jobs.top()->job : nullptr;
  set_hidden(key, ready, first == nullptr);
  if (first == ready.exposed) return;
  if (Job* before = std::exchange(ready.exposed, first); before != nullptr) {
    tube->ready.erase(before);
    park(*before);
  }
  if (first != nullptr) {
    tube->parked.erase(first);
    first->concurrency()->parked = false;
    tube->ready.push({first->priority, first->id}, first);
  }
  tubes_.update_giving(tube);
}

// Called after a job with the key was reserved or is no longer, or the limit has changed. Room that
// is new may be for a session that waits.
// O(1), or O(hidden tubes) if the key has room now and had none. A key whose room is used up costs
// O(tubes with ready jobs of the key), unless it is wide.
void Engine::update_room(ConcurrencyKey& key) {
  if (key.open == key.has_room()) return;
  key.open = key.has_room();
  if (!key.open) {
    if (is_wide(key)) return concurrency_keys_.set_late(key, true);
    entries_walked_ += key.tubes.size();
    for (auto& [number, ready] : key.tubes) expose_first(key, ready);
    return;
  }
  concurrency_keys_.set_late(key, false);
  while (ReadyOfKey* ready = key.hidden.first()) {
    ++entries_walked_;
    set_hidden(key, *ready, false);
    expose_first(key, *ready);
    if (ready->epoch == ready->tube->epoch) serve_queue_.push(ready->tube);
  }
}

// Parks the exposed jobs of late keys that are before all other ready jobs of the tube. O(log n)
// for each.
void Engine::park_blocked(Tube* tube) {
  while (!tube->ready.empty() && is_blocked(*tube->ready.top())) {
    Job& job = *tube->ready.top();
    ConcurrencyKey& key = *job.concurrency()->key;
    ReadyOfKey& ready = key.tubes.find({tube->number, job.epoch})->second;
    tube->ready.erase(&job);
    park(job);
    ready.exposed = nullptr;
    set_hidden(key, ready, true);
    tubes_.update_giving(tube);
  }
}

// The same for the tubes that the session watches.
void Engine::park_blocked(const Session& session) {
  if (session.watched == nullptr) {
    entries_walked_ += session.watches.size();
    for (const WatchEntry& watch : session.watches) park_blocked(watch.tube);
    return;
  }
  std::vector<Tube*> blocked;  // park_blocked() changes what is visited
  IndexSet::for_each_common(*session.watched, tubes_.giving(), [&](std::uint32_t index) {
    ++entries_walked_;
    Tube* tube = tubes_.at(index);
    if (is_blocked(*tube->ready.top())) blocked.push_back(tube);
  });
  for (Tube* tube : blocked) park_blocked(tube);
}

void Engine::add_concurrency(Job& job, const JobTags& tags) {
  const bool ready = job.state == JobState::ready;
  if (ready) detach(&job);
  extended_ = true;
  auto& record = make_tags(job).concurrency;
  record = std::make_unique<ConcurrencyRecord>(&job);
  record->key = concurrency_keys_.add(tags.concurrency_key, tags.concurrency_limit);
  record->limit = tags.concurrency_limit;
  update_room(*record->key);
  if (ready) attach_ready(&job);
}

// The job is about to be removed, and may be flushed.
void Engine::free_concurrency(Job& job) {
  ConcurrencyRecord& record = *job.concurrency();
  ConcurrencyKey* key = record.key;
  memory_.give_back_part(ConcurrencyKeys::cost_of(key->name));
  if (job.state == JobState::ready) {
    if (job.in_tube()) {
      erase_ready_of_key(&job);
      // For the rest of its life, a job without a key.
      job.tube->ready.push({job.priority, job.id}, &job);
    } else {
      const auto found = key->tubes.find({job.tube->number, job.epoch});
      found->second.jobs.erase(&record);
      if (found->second.jobs.empty()) forget(*key, found);
    }
  }
  if (job.state == JobState::reserved) concurrency_keys_.uncount_reserved(key);
  if (concurrency_keys_.remove(key, record.limit)) update_room(*key);
  job.tags()->concurrency.reset();
}

// True: as many jobs with its key are reserved as may be.
bool Engine::is_blocked(const Job& job) {
  const ConcurrencyRecord* record = job.concurrency();
  return record != nullptr && !record->key->has_room();
}

}  // namespace tubed::engine
