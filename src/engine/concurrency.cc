// Engine: concurrency keys. Which job is exposed and which is parked: engine/concurrency_keys.h.
#include <utility>

#include "engine/engine.h"

namespace tubed::engine {

// The job has become ready.
void Engine::add_ready_of_key(Job* job) {
  ConcurrencyRecord& record = *job->concurrency();
  Tube* tube = job->tube;
  ReadyOfKey& ready = record.key->tubes[{tube->number, job->epoch}];
  ready.tube = tube;
  ready.epoch = job->epoch;
  ready.jobs.emplace(ReadyKey{job->priority, job->id}, job);
  park(*job);
  expose_first(*record.key, ready);
}

// The job is ready, and will no longer be.
void Engine::erase_ready_of_key(Job* job) {
  ConcurrencyRecord& record = *job->concurrency();
  Tube* tube = job->tube;
  const auto found = record.key->tubes.find({tube->number, job->epoch});
  ReadyOfKey& ready = found->second;
  ready.jobs.erase({job->priority, job->id});
  if (record.parked) {
    tube->parked.erase(job);
  } else {
    tube->ready.erase(job);
    ready.exposed = nullptr;
  }
  record.parked = false;
  if (ready.jobs.empty()) {
    record.key->tubes.erase(found);
  } else {
    expose_first(*record.key, ready);
  }
}

void Engine::park(Job& job) {
  job.concurrency()->parked = true;
  job.tube->parked.push({job.priority, job.id}, &job);
}

// Exposes the first job, and no other, if the key has room. Flushed jobs stay as they are.
void Engine::expose_first(const ConcurrencyKey& key, ReadyOfKey& ready) {
  Tube* tube = ready.tube;
  if (ready.epoch != tube->epoch) return;
  Job* first = key.has_room() ? ready.jobs.begin()->second : nullptr;
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
// O(1), or O(tubes with ready jobs of the key) if the key has room now and had none, or the
// reverse.
void Engine::update_room(ConcurrencyKey& key) {
  if (key.open == key.has_room()) return;
  key.open = key.has_room();
  entries_walked_ += key.tubes.size();
  for (auto& [number, ready] : key.tubes) {
    expose_first(key, ready);
    if (ready.epoch == ready.tube->epoch) serve_queue_.push(ready.tube);
  }
}

void Engine::add_concurrency(Job& job, const JobTags& tags) {
  const bool ready = job.state == JobState::ready;
  if (ready) detach(&job);
  extended_ = true;
  auto& record = make_tags(job).concurrency;
  record = std::make_unique<ConcurrencyRecord>();
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
      found->second.jobs.erase({job.priority, job.id});
      if (found->second.jobs.empty()) key->tubes.erase(found);
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
