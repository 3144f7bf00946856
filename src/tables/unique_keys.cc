#include "tables/unique_keys.h"

#include <iterator>
#include <utility>

namespace tubed::engine {

UniqueKey* UniqueKeys::find(std::string_view tube, std::string_view key) {
  const auto of_tube = tubes_.find(tube);
  if (of_tube == tubes_.end()) return nullptr;
  const auto found = of_tube->second->keys.find(key);
  return found == of_tube->second->keys.end() ? nullptr : &found->second;
}

UniqueKey* UniqueKeys::insert(std::string_view tube, std::string_view key, JobId id) {
  auto of_tube = tubes_.find(tube);
  if (of_tube == tubes_.end()) {
    auto new_tube = std::make_unique<KeysOfTube>();
    new_tube->tube = tube;
    const std::string_view name = new_tube->tube;
    of_tube = tubes_.try_emplace(name, std::move(new_tube)).first;
  }
  KeysOfTube* const keys = of_tube->second.get();
  const std::size_t before = keys->keys.size();
  const auto beside = keys->newest == keys->keys.end() ? keys->newest : std::next(keys->newest);
  const auto place = keys->keys.try_emplace(beside, std::string(key));
  if (keys->keys.size() == before) return nullptr;
  keys->newest = place;
  place->second.id = id;
  place->second.name = &place->first;
  place->second.tube = keys;
  return &place->second;
}

void UniqueKeys::cool_down(UniqueKey* key, Time until) {
  key->until = until;
  cooldowns_.set(true, {until, key->id}, key);
  by_id_.try_emplace(key->id, key);
  update_next();
}

void UniqueKeys::update_next() {
  next_ = !flushed_.empty()    ? Time::min()
          : cooldowns_.empty() ? kNever
                               : cooldowns_.top_key().deadline;
}

void UniqueKeys::erase(UniqueKey* key) {
  if (key->has_cooldown()) {
    cooldowns_.erase(key);
    by_id_.erase(key->id);
    update_next();
  }
  KeysOfTube* const tube = key->tube;
  const auto place = tube->keys.find(*key->name);
  if (place == tube->newest) tube->newest = tube->keys.end();
  tube->keys.erase(place);
  if (!tube->keys.empty()) return;
  memory_.give_back_part(cost_of_tube(tube->tube));
  if (!tube->flushed) {
    tubes_.erase(tubes_.find(tube->tube));
    return;
  }
  while (!flushed_.empty() && flushed_.front()->keys.empty()) flushed_.pop_front();
  update_next();
}

UniqueKey* UniqueKeys::taken(Time now, std::string_view tube, std::string_view key, FactSink& out) {
  if (key.empty()) return nullptr;
  UniqueKey* found = find(tube, key);
  if (found == nullptr || !found->cooldown_is_over(now)) return found;
  end(found, out);
  return nullptr;
}

UniqueKey* UniqueKeys::add(std::string_view tube, std::string_view key, JobId id) {
  if (!tubes_.contains(tube)) memory_.restore_part(cost_of_tube(tube));
  if (UniqueKey* added = insert(tube, key, id)) return added;
  forget(find(tube, key));
  return add(tube, key, id);
}

void UniqueKeys::remove(Job& job) {
  UniqueKey* key = std::exchange(job.tags()->unique, nullptr);
  // The flush of its tube has freed the key of a flushed job.
  if (key != nullptr && !job.flushed()) free(key);
}

bool UniqueKeys::move(Time now, Job& job, std::string_view to, FactSink& out) {
  TagRecord* tags = job.tags();
  if (tags == nullptr || tags->unique == nullptr) return false;
  const std::string name = *tags->unique->name;
  if (taken(now, to, name, out) != nullptr) {
    forget(tags->unique);
    return false;
  }
  erase(tags->unique);
  tags->unique = add(to, name, job.id);
  return true;
}

bool UniqueKeys::begin_cooldown(Time now, Job& job) {
  TagRecord* tags = job.tags();
  if (tags->unique == nullptr || tags->cooldown.count == 0 || job.flushed()) return false;
  cool_down(std::exchange(tags->unique, nullptr), now + tags->cooldown);
  return true;
}

void UniqueKeys::forget(UniqueKey* key) {
  if (!key->has_cooldown() && !key->tube->flushed) {
    Job* job = jobs_.find(key->id);
    job->tags()->unique = nullptr;
    records_.drop_empty(*job);
  }
  free(key);
}

void UniqueKeys::free(UniqueKey* key) {
  memory_.give_back_part(cost_of(*key->name));
  erase(key);
}

void UniqueKeys::end(UniqueKey* key, FactSink& out) {
  const JobId id = key->id;
  const bool had_cooldown = key->has_cooldown();
  forget(key);
  if (had_cooldown) out.fact(Removed{.id = id});
}

void UniqueKeys::end_next(FactSink& out) {
  end(flushed_.empty() ? cooldowns_.top() : &flushed_.front()->keys.begin()->second, out);
}

bool UniqueKeys::flush(std::string_view tube) {
  const auto found = tubes_.find(tube);
  if (found == tubes_.end()) return false;
  std::unique_ptr<KeysOfTube> keys = std::move(found->second);
  tubes_.erase(found);  // its name is in `keys`
  keys->flushed = true;
  flushed_.push_back(std::move(keys));
  update_next();
  return true;
}

std::size_t UniqueKeys::keys_of_jobs() const {
  std::size_t count = 0;
  for (const auto& [name, tube] : tubes_) count += tube->keys.size();
  for_each_cooldown([&count](const UniqueKey&) { --count; });
  return count;
}

std::uint64_t UniqueKeys::memory() const {
  std::uint64_t bytes = 0;
  const auto add = [&bytes](const KeysOfTube& tube) {
    if (!tube.keys.empty()) bytes += cost_of_tube(tube.tube);
    for (const auto& [key, record] : tube.keys) bytes += cost_of(key);
  };
  for (const auto& [name, tube] : tubes_) add(*tube);
  for (const auto& tube : flushed_) add(*tube);
  return bytes;
}

void UniqueKeys::check_invariants() const {
  cooldowns_.check_invariants();
  std::size_t cooldowns = 0;
  const auto check = [&](const KeysOfTube& tube, bool flushed) {
    TUBED_ASSERT(tube.flushed == flushed);
    for (const auto& [key, record] : tube.keys) {
      TUBED_ASSERT(record.name == &key && record.tube == &tube);
      TUBED_ASSERT((of_deleted_job(record.id) == &record) == record.has_cooldown());
      if (record.has_cooldown()) ++cooldowns;
    }
  };
  for (const auto& [name, tube] : tubes_) {
    TUBED_ASSERT(!tube->keys.empty() && tube->tube == name);
    check(*tube, false);
  }
  TUBED_ASSERT(flushed_.empty() || !flushed_.front()->keys.empty());
  for (const auto& tube : flushed_) check(*tube, true);
  const Time next_end = cooldowns_.empty() ? kNever : cooldowns_.top_key().deadline;
  TUBED_ASSERT(next_ == (flushed_.empty() ? next_end : Time::min()));
  TUBED_ASSERT(cooldowns == cooldowns_.size() && cooldowns == by_id_.size());
}

}  // namespace tubed::engine
