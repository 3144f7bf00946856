// TubeTable: owns every tube and finds it by name or index. It has the order of list-tubes and the
// set of tubes that give jobs.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "engine/job.h"

namespace tubed::engine {

// Names a tube between two slices of a command, after which it may not exist any more.
struct TubeRef {
  std::uint32_t index = UINT32_MAX;  // no tube has it
  std::uint64_t number = 0;
};

class TubeTable {
 public:
  std::size_t size() const { return tubes_.size(); }

  // Null if no tube has this name. O(log n).
  Tube* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  // A new tube. Precondition: no tube has this name. O(log n).
  Tube* add(std::string_view name) {
    tubes_.push_back(std::make_unique<Tube>());
    Tube* tube = tubes_.back().get();
    tube->name = name;
    tube->number = next_number_++;
    tube->index = free_index();
    by_index_[tube->index] = tube;
    tube->list_index = static_cast<std::uint32_t>(tubes_.size() - 1);
    list_changed(tube->list_index);
    by_name_.emplace(tube->name, tube);
    return tube;
  }

  // Returns the tube. The last tube of the list takes its place. O(log n).
  std::unique_ptr<Tube> remove(Tube* tube) {
    by_index_[tube->index] = nullptr;
    free_indices_.push_back(tube->index);
    by_name_.erase(tube->name);
    const std::uint32_t place = tube->list_index;
    list_changed(place);
    std::unique_ptr<Tube> removed = std::move(tubes_[place]);
    if (place + 1 != tubes_.size()) {
      list_changed(tubes_.size() - 1);
      tubes_[place] = std::move(tubes_.back());
      tubes_[place]->list_index = place;
    }
    tubes_.pop_back();
    return removed;
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

  // In the order of list-tubes.
  const std::vector<std::unique_ptr<Tube>>& all() const { return tubes_; }

  // The list is divided into parts of kListPart places. list_change() is a number that grows with
  // each change of the part or, without an argument, of the list. It is never 0 for a part that is
  // not empty. O(1).
  std::size_t list_parts() const { return (tubes_.size() + kListPart - 1) / kListPart; }
  std::uint64_t list_change(std::size_t part) const { return part_changes_[part]; }
  std::uint64_t list_change() const { return last_change_; }
  // The tubes of one part. O(1).
  std::span<const std::unique_ptr<Tube>> list_part(std::size_t part) const {
    const std::size_t begin = part * kListPart;
    return std::span(tubes_).subspan(begin, std::min(kListPart, tubes_.size() - begin));
  }

 private:
  static constexpr std::size_t kListPart = 256;

  void list_changed(std::size_t place) {
    const std::size_t part = place / kListPart;
    if (part >= part_changes_.size()) part_changes_.resize(part + 1);
    part_changes_[part] = ++last_change_;
  }

  std::uint32_t free_index() {
    if (free_indices_.empty()) {
      by_index_.push_back(nullptr);
      return static_cast<std::uint32_t>(by_index_.size() - 1);
    }
    const std::uint32_t index = free_indices_.back();
    free_indices_.pop_back();
    return index;
  }

  std::vector<std::unique_ptr<Tube>> tubes_;
  std::vector<Tube*> by_index_;
  std::vector<std::uint32_t> free_indices_;
  IndexSet giving_;
  // A tree and not a hash map: clients choose the names and could choose names that collide.
  std::map<std::string_view, Tube*> by_name_;  // keys point into the tubes
  std::uint64_t next_number_ = 0;
  std::vector<std::uint64_t> part_changes_;
  std::uint64_t last_change_ = 0;
};

}  // namespace tubed::engine
