// TubeListCache: the reply of list-tubes, as parts that all clients share.
//
// The names of 100,000 tubes are up to 20 MB. The list is stored as parts of 256 tubes each. A part
// is made again only after one of its tubes was created or removed, and replies refer to parts
// instead of copying them. A snapshot is the list at one moment: a client reads its parts over many
// ticks, while tubes are created and removed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "engine/engine.h"

namespace tubed::commands {

class TubeListCache {
 public:
  static constexpr std::size_t kPartsPerSlice = 32;

  // Some lines of YAML. Immutable.
  class Part {
   public:
    Part(Bytes text, std::shared_ptr<std::uint64_t> existing_bytes);
    ~Part() { *existing_bytes_ -= text_.size(); }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    const Bytes& text() const { return text_; }

   private:
    Bytes text_;
    std::shared_ptr<std::uint64_t> existing_bytes_;
  };

  // The list of one moment.
  struct Snapshot {
    std::vector<std::shared_ptr<const Part>> parts;
    std::uint64_t bytes = 0;  // of all parts
  };

  // Makes up to kPartsPerSlice of the parts that are out of date. True if all parts are up to date.
  // O(parts + names in the parts that it makes).
  bool refresh(const engine::Engine& engine);
  // The list at this moment; the same object as before if it has not changed. O(parts + names in
  // the parts that are out of date).
  std::shared_ptr<const Snapshot> snapshot(const engine::Engine& engine);

  // Bytes of parts that only snapshots still refer to, each counted once.
  std::uint64_t pinned_bytes() const { return *existing_bytes_ - current_bytes_; }

 private:
  struct Current {
    std::uint64_t change = 0;  // TubeList::change() when `part` was made
    std::shared_ptr<const Part> part;
  };

  void resize(std::size_t parts);
  std::shared_ptr<const Part> make(const engine::Engine& engine, std::size_t part) const;

  std::vector<Current> current_;
  std::uint64_t current_bytes_ = 0;
  std::weak_ptr<const Snapshot> newest_;
  std::uint64_t newest_change_ = 0;
  // Bytes of all parts that exist. Parts may outlive the cache.
  std::shared_ptr<std::uint64_t> existing_bytes_ = std::make_shared<std::uint64_t>(0);
};

}  // namespace tubed::commands
