// TubeList: owns every tube, in the order of list-tubes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tables/job.h"

namespace tubed::engine {

class TubeList {
 public:
  const std::vector<std::unique_ptr<Tube>>& tubes() const { return tubes_; }

  // Appends a tube. O(1) amortised.
  Tube* add(std::unique_ptr<Tube> tube) {
    tubes_.push_back(std::move(tube));
    Tube* added = tubes_.back().get();
    added->list_index = static_cast<std::uint32_t>(tubes_.size() - 1);
    changed(added->list_index);
    return added;
  }
  // Returns the tube. The last tube of the list takes its place. O(1).
  std::unique_ptr<Tube> remove(const Tube& tube) {
    const std::uint32_t place = tube.list_index;
    changed(place);
    std::unique_ptr<Tube> removed = std::move(tubes_[place]);
    if (place + 1 != tubes_.size()) {
      changed(tubes_.size() - 1);
      tubes_[place] = std::move(tubes_.back());
      tubes_[place]->list_index = place;
    }
    tubes_.pop_back();
    return removed;
  }

  // Calls visit(std::string_view) for the name of each tube.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& tube : tubes_) visit(std::string_view(tube->name));
  }
  // The list is divided into parts of kPart places. change() is a number that grows with each
  // change of the part or, without an argument, of the list. It is never 0 for a part that is not
  // empty. O(1).
  std::size_t parts() const { return (tubes_.size() + kPart - 1) / kPart; }
  std::uint64_t change(std::size_t part) const { return part_changes_[part]; }
  std::uint64_t change() const { return last_change_; }
  // The same for the tubes of one part.
  template <class Visit>
  void for_each(std::size_t part, Visit visit) const {
    const std::size_t end = std::min((part + 1) * kPart, tubes_.size());
    for (std::size_t i = part * kPart; i < end; ++i) visit(std::string_view(tubes_[i]->name));
  }

 private:
  static constexpr std::size_t kPart = 256;

  void changed(std::size_t place) {
    const std::size_t part = place / kPart;
    if (part >= part_changes_.size()) part_changes_.resize(part + 1);
    part_changes_[part] = ++last_change_;
  }

  std::vector<std::unique_ptr<Tube>> tubes_;
  std::vector<std::uint64_t> part_changes_;
  std::uint64_t last_change_ = 0;
};

}  // namespace tubed::engine
