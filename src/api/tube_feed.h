// TubeFeed: the tubes that have changed between two walks over the tubes.
//
// A walk visits the tubes in slices, which do not hold up clients: the caller calls slice() until
// it returns true, and after each slice takes the rows of the tubes that it has visited. Names and
// numbers of the walk before are kept: at most kMostTubes tubes, the first in the engine's order.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "facts/role.h"
#include "stats/tube_columns.h"

namespace tubed::api {

class TubeFeed {
 public:
  static constexpr std::uint32_t kTubesPerSlice = 250;
  static constexpr std::size_t kMostTubes = 100'000;
  // The columns of a row, as an array of JSON.
  static std::string columns();

  // Begins a walk.
  void begin();
  // Visits the next tubes. True: the walk is complete. O(kTubesPerSlice); the last slice O(tubes)
  // if some are missing.
  bool slice(engine::Engine& engine, Time now);

  // Appends the rows of the tubes of this slice that have changed since the walk before, or of all
  // of them, with a comma between. `role`: only those that it may use; null: all. O(slice).
  void append_rows(bool all, const Role* role, std::string& text) const;
  // After the last slice: appends the names of the tubes that were removed since the walk before.
  void append_gone(const Role* role, std::string& text) const;

  // The tube with the oldest ready job, of this walk; no name: no job is ready.
  struct Oldest {
    std::string tube;
    Duration age{};
  };
  const Oldest& oldest() const { return oldest_; }
  // Forgets everything: the next walk finds every tube new.
  void clear();

 private:
  // Of the columns after the name.
  using Numbers = std::array<std::uint64_t, stats::kTubeColumns.size() - 1>;
  struct Sample {
    Numbers numbers{};
    std::uint32_t walk = 0;  // the last that has visited the tube
    bool changed = false;    // in that walk
  };
  using Samples = std::unordered_map<std::string, Sample>;

  static Numbers numbers_of(const engine::TubeInfo& tube);
  void visit(const engine::TubeInfo& tube);
  void find_gone(engine::Engine& engine, Time now);

  Samples samples_;
  std::vector<Samples::const_pointer> in_slice_;
  std::vector<std::string> gone_;
  std::uint64_t next_ = 0;     // the place of the next slice
  std::uint64_t visited_ = 0;  // tubes of this walk
  std::uint32_t walk_ = 0;
  Oldest oldest_;
};

}  // namespace tubed::api
