// TestFile: one file of a TestDisk: its durable contents, the contents that a reader sees, and the
// changes between them.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tubed::journal {

using Random = std::mt19937_64;

inline bool coin(Random& random) {
  return random() % 2 == 0;
}

class TestFile {
 public:
  // Numbers increase from change to change, across all files.
  using ChangeNumber = std::uint64_t;

  // Returns the contents that a reader sees.
  const std::string& contents() const { return now_; }
  // Returns the contents that certainly survive a power loss.
  const std::string& durable() const { return durable_; }

  void resize(ChangeNumber number, std::uint64_t bytes);
  // A write may arrive in several consecutive parts with the same number.
  void write(ChangeNumber number, std::uint64_t at, const std::string& part);
  // Makes all changes with numbers below `before`, and the change `own`, durable.
  void sync(ChangeNumber before, ChangeNumber own);
  // A sync of the same changes has failed: no later sync makes them durable.
  void give_up(ChangeNumber before, ChangeNumber own);
  // Another process uses the file now: its syncs cover the current contents, as storage.h says.
  void begin_anew();
  // Replaces the contents, durably.
  void settle(std::string contents);

  // Returns the contents after a power loss: each change that is not durable is kept, lost or, if
  // it is a write, torn.
  std::string after_power_loss(Random& random) const;

 private:
  struct Change {
    ChangeNumber number = 0;
    bool resize = false;
    std::uint64_t at = 0;  // for a resize: the new size
    std::string data = {};
    bool durable = false;
    bool given_up = false;
  };

  static void apply(std::string& image, const Change& change);
  static void apply_part(std::string& image, const Change& change, std::size_t from, std::size_t to,
                         bool clipped);
  static void tear(std::string& image, const Change& change, bool clipped, Random& random);
  void fold();

  std::string durable_;
  std::string now_;
  std::vector<Change> changes_;  // oldest first; applied to durable_, they give now_
};

}  // namespace tubed::journal
