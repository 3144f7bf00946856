// TubeTable: finds a tube by name or index, and has the list of tubes and the set of tubes that
// give jobs.
#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "tables/job.h"
#include "tables/tube_list.h"

namespace tubed::engine {

// Names a tube between two slices of a command, after which it may no longer exist.
struct TubeRef {
  std::uint32_t index = UINT32_MAX;  // no tube has it
  std::uint64_t number = 0;
};

class TubeTable {
 public:
  std::size_t size() const { return all().size(); }

  // Null if no tube has this name. O(log n).
  Tube* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  // A new tube. Precondition: no tube has this name. O(log n).
  Tube* add(std::string_view name) {
    Tube* tube = list_.add(std::make_unique<Tube>());
    tube->name = name;
    tube->number = next_number_++;
    tube->index = free_index();
    by_index_[tube->index] = tube;
    by_name_.emplace(tube->name, tube);
    return tube;
  }

  // Returns the tube. The last tube of the list takes its place. O(log n).
  std::unique_ptr<Tube> remove(Tube* tube) {
    by_index_[tube->index] = nullptr;
    free_indices_.push_back(tube->index);
    by_name_.erase(tube->name);
    return list_.remove(*tube);
  }

  // Precondition: a tube has this index. O(1).
  Tube* at(std::uint32_t index) const { return by_index_[index]; }
  // Null: the tube was removed. O(1).
  Tube* find(const TubeRef& ref) const {
    Tube* tube = ref.index < by_index_.size() ? by_index_[ref.index] : nullptr;
    return tube != nullptr && tube->number == ref.number ? tube : nullptr;
  }

  // The indexes of the tubes that give jobs: not paused, with a ready job. Called after either
  // changed. O(1).
  void update_giving(const Tube* tube) { giving_.set(tube->index, tube->gives_jobs()); }
  const IndexSet& giving() const { return giving_; }

  const TubeList& list() const { return list_; }
  // In the order of the list.
  const std::vector<std::unique_ptr<Tube>>& all() const { return list_.tubes(); }

 private:
  std::uint32_t free_index() {
    if (free_indices_.empty()) {
      by_index_.push_back(nullptr);
      return static_cast<std::uint32_t>(by_index_.size() - 1);
    }
    const std::uint32_t index = free_indices_.back();
    free_indices_.pop_back();
    return index;
  }

  TubeList list_;
  std::vector<Tube*> by_index_;
  std::vector<std::uint32_t> free_indices_;
  IndexSet giving_;
  // A tree and not a hash map: clients choose the names and could choose names that collide.
  std::map<std::string_view, Tube*> by_name_;  // keys point into the tubes
  std::uint64_t next_number_ = 0;
};

}  // namespace tubed::engine
