#include "engine/watch_lists.h"

#include <algorithm>
#include <memory>

#include "base/assert.h"

namespace tubed::engine {

void WatchLists::begin(Session& session) {
  Tube* tube = registry_.default_tube();
  session.watches.push_back({.tube = tube, .session = &session, .waiting_links = {}});
  ++tube->watching_count;
  ++size_;
}

bool WatchLists::add(Session& session, Time now, std::string_view name, std::uint32_t weight) {
  TUBED_ASSERT(!session.waiting);
  const Tube* known = tubes_.find(name);
  if (known != nullptr) {
    if (const auto found = find(session, known); found != session.watches.end()) {
      found->weight = weight;
      return true;
    }
  }
  if (session.watches.size() >= limits_.session_watches) return false;
  if (size_ >= limits_.watches) return false;
  Tube* tube = registry_.find_or_add(now, name);
  if (tube == nullptr) return false;
  session.watches.push_back(
      {.tube = tube, .session = &session, .waiting_links = {}, .weight = weight});
  ++tube->watching_count;
  ++size_;
  if (session.watched != nullptr) {
    session.watched->insert(tube->index);
  } else if (session.watches.size() > limits_.short_watch_list) {
    session.watched = std::make_unique<IndexSet>();
    for (const WatchEntry& watch : session.watches) session.watched->insert(watch.tube->index);
  }
  return true;
}

bool WatchLists::remove(Session& session, Time now, std::string_view name) {
  TUBED_ASSERT(!session.waiting);
  auto& watches = session.watches;
  Tube* tube = tubes_.find(name);
  const auto found = tube == nullptr ? watches.end() : find(session, tube);
  if (found == watches.end()) return true;
  if (watches.size() == 1) return false;
  *found = watches.back();
  watches.pop_back();
  if (watches.size() <= limits_.short_watch_list) {
    session.watched.reset();
  } else {
    session.watched->erase(tube->index);
  }
  --tube->watching_count;
  --size_;
  registry_.remove_if_unwanted(now, tube);
  return true;
}

void WatchLists::clear(Session& session, Time now) {
  size_ -= session.watches.size();
  for (const WatchEntry& watch : session.watches) {
    --watch.tube->watching_count;
    registry_.remove_if_unwanted(now, watch.tube);
  }
  session.watches.clear();
  session.watched.reset();
}

std::vector<WatchEntry>::iterator WatchLists::find(Session& session, const Tube* tube) {
  auto& watches = session.watches;
  if (session.watched != nullptr && !session.watched->contains(tube->index)) return watches.end();
  entries_walked_ += watches.size();
  return std::find_if(watches.begin(), watches.end(),
                      [&](const WatchEntry& watch) { return watch.tube == tube; });
}

}  // namespace tubed::engine
