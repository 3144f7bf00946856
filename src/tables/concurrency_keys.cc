// Which job is exposed and which is parked: tables/concurrency_keys.h.
#include "tables/concurrency_keys.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/planted.h"

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

void park(Job& job) {
  job.concurrency()->parked = true;
  job.tube->parked.push({job.priority, job.id}, &job);
}

}  // namespace

void ConcurrencyKeys::add(Job& job, std::string_view name, std::uint32_t limit) {
  auto found = keys_.find(name);
  if (found == keys_.end()) {
    found = keys_.try_emplace(std::string(name)).first;
    found->second.name = found->first;
  }
  ConcurrencyKey& key = found->second;
  ++key.jobs;
  ++key.limits[limit];
  auto& record = job.tags()->concurrency;
  record = std::make_unique<ConcurrencyRecord>(&job);
  record->key = &key;
  record->limit = limit;
  update_room(key);
}

void ConcurrencyKeys::remove(Job& job) {
  ConcurrencyRecord& record = *job.concurrency();
  ConcurrencyKey& key = *record.key;
  memory_.give_back_part(cost_of(key.name));
  if (job.state == JobState::ready) {
    if (job.in_tube()) {
      erase_ready(job);
      // For the rest of its life, a job without a key.
      job.tube->ready.push({job.priority, job.id}, &job);
    } else {
      const auto found = key.tubes.find({job.tube->number, job.epoch});
      found->second.jobs.erase(&record);
      if (found->second.jobs.empty()) forget(key, found);
    }
  }
  if (job.state == JobState::reserved && --key.reserved == 0) --reserved_keys_;
  if (drop_job(key, record.limit)) update_room(key);
  job.tags()->concurrency.reset();
}

bool ConcurrencyKeys::drop_job(ConcurrencyKey& key, std::uint32_t limit) {
  const auto count = key.limits.find(limit);
  if (--count->second == 0) key.limits.erase(count);
  if (--key.jobs > 0) return true;
  TUBED_ASSERT(key.reserved == 0 && key.tubes.empty() && key.hidden.empty());
  set_late(key, false);
  keys_.erase(keys_.find(key.name));
  return false;
}

void ConcurrencyKeys::begin_reservation(const Job& job) {
  ConcurrencyKey& key = *job.concurrency()->key;
  if (key.reserved++ == 0) ++reserved_keys_;
  update_room(key);
}

void ConcurrencyKeys::end_reservation(const Job& job) {
  ConcurrencyKey& key = *job.concurrency()->key;
  if (--key.reserved == 0) --reserved_keys_;
  update_room(key);
}

void ConcurrencyKeys::set_late(ConcurrencyKey& key, bool late) {
  if (key.late == late) return;
  key.late = late;
  late ? ++late_keys_ : --late_keys_;
}

// True: a call visits some of its tubes only. All would be more than a small part of a tick.
bool ConcurrencyKeys::is_wide(const ConcurrencyKey& key) const {
  constexpr std::uint32_t kPart = 64;
  return key.tubes.size() > limits_.work_per_turn / kPart &&
         !TUBED_PLANTED(wide_key_is_looked_at_whole);
}

void ConcurrencyKeys::add_ready(Job& job) {
  ConcurrencyRecord& record = *job.concurrency();
  Tube* tube = job.tube;
  ReadyOfKey& ready = record.key->tubes[{tube->number, job.epoch}];
  ready.tube = tube;
  ready.epoch = job.epoch;
  ready.jobs.push({job.priority, job.id}, &record);
  if (!record.key->open && is_wide(*record.key)) set_late(*record.key, true);
  park(job);
  expose_first(*record.key, ready);
}

void ConcurrencyKeys::erase_ready(Job& job) {
  ConcurrencyRecord& record = *job.concurrency();
  Tube* tube = job.tube;
  const auto found = record.key->tubes.find({tube->number, job.epoch});
  ReadyOfKey& ready = found->second;
  ready.jobs.erase(&record);
  if (record.parked) {
    tube->parked.erase(&job);
  } else {
    tube->ready.erase(&job);
    ready.exposed = nullptr;
  }
  record.parked = false;
  if (ready.jobs.empty()) {
    forget(*record.key, found);
  } else {
    expose_first(*record.key, ready);
  }
}

// Exposes the first job, and no other, if the key has room. Flushed jobs stay as they are.
// A job of a late key may stay exposed, unless a session waits in the tube: it would seem to have a
// job for that session.
void ConcurrencyKeys::expose_first(ConcurrencyKey& key, ReadyOfKey& ready) {
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
void ConcurrencyKeys::update_room(ConcurrencyKey& key) {
  if (key.open == key.has_room()) return;
  key.open = key.has_room();
  if (!key.open) {
    if (is_wide(key)) return set_late(key, true);
    entries_walked_ += key.tubes.size();
    for (auto& [number, ready] : key.tubes) expose_first(key, ready);
    return;
  }
  set_late(key, false);
  while (ReadyOfKey* ready = key.hidden.first()) {
    ++entries_walked_;
    set_hidden(key, *ready, false);
    expose_first(key, *ready);
    if (ready->epoch == ready->tube->epoch) serve_queue_.push(ready->tube);
  }
}

void ConcurrencyKeys::park_blocked(Tube* tube) {
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

void ConcurrencyKeys::park_blocked(const Session& session) {
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

}  // namespace tubed::engine
