// WatchLists: the tubes that each session watches, in the order of list-tubes-watched.
//
// A list longer than limits.short_watch_list is also kept as a set of tubes (Session::watched).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/tube_registry.h"
#include "facts/types.h"
#include "tables/job.h"
#include "tables/tube_table.h"

namespace tubed::engine {

class WatchLists {
 public:
  // All of them outlive it.
  WatchLists(const Limits& limits, TubeTable& tubes, TubeRegistry& registry,
             std::uint64_t& entries_walked)
      : limits_(limits), tubes_(tubes), registry_(registry), entries_walked_(entries_walked) {}

  // The number of entries of all lists.
  std::uint64_t size() const { return size_; }

  // Begins the list of a new session with "default". O(1).
  void begin(Session& session);
  // Returns false if the tubes or the watches would be too many. Sets the weight of a tube that is
  // already in the list. Precondition: the session is not waiting. O(watched).
  bool add(Session& session, Time now, std::string_view name, std::uint32_t weight);
  // Returns false if it is the only watched tube, and true for a tube that is not watched.
  // Precondition: the session is not waiting. O(watched).
  bool remove(Session& session, Time now, std::string_view name);
  // Empties the list of a session that ends. O(watched).
  void clear(Session& session, Time now);
  // Returns the end of the list if the session does not watch the tube. O(watched).
  std::vector<WatchEntry>::iterator find(Session& session, const Tube* tube);

 private:
  const Limits& limits_;
  TubeTable& tubes_;
  TubeRegistry& registry_;
  std::uint64_t& entries_walked_;
  std::uint64_t size_ = 0;
};

}  // namespace tubed::engine
