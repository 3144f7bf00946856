// The member templates of Engine that walk tubes and watch lists. Only engine/engine.h includes it.
#pragma once

#include "engine/engine.h"
#include "engine/tube_info.h"

namespace tubed::engine {

template <class Visit>
void Engine::for_each_tube(Visit visit) const {
  for (const auto& tube : tubes_.all()) visit(std::string_view(tube->name));
}

template <class Visit>
std::uint64_t Engine::visit_tubes(Time now, std::uint64_t from, std::uint32_t limit, Visit visit) {
  const auto& all = tubes_.all();
  std::uint64_t place = from;
  for (std::uint32_t visited = 0; place < all.size() && visited < limit; ++place, ++visited) {
    ++entries_walked_;
    visit(info_of(*all[place], now));
  }
  return place < all.size() ? place : 0;
}

template <class Visit>
void Engine::for_each_tube(std::size_t part, Visit visit) const {
  for (const auto& tube : tubes_.list_part(part)) visit(std::string_view(tube->name));
}

template <class Visit>
void Engine::for_each_watched(SessionId session, Visit visit) const {
  for (const WatchEntry& watch : sessions_.at(session).watches)
    visit(std::string_view(watch.tube->name));
}

}  // namespace tubed::engine
