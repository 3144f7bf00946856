// TestFile: one file of a TestDisk: what is durable of it, what a reader sees, and the changes
// between the two.
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
  // Numbers grow from change to change, over all files.
  using ChangeNumber = std::uint64_t;

  // What a reader sees.
  const std::string& contents() const { return now_; }
  // All that is sure to survive a power loss.
  const std::string& durable() const { return durable_; }

  void resize(ChangeNumber number, std::uint64_t bytes);
  // One write may come in several parts, one behind the other, of the same number.
  void write(ChangeNumber number, std::uint64_t at, const std::string& part);
  // Changes of smaller numbers than `before`, and the one called `own`, are durable.
  void sync(ChangeNumber before, ChangeNumber own);
  // The same changes were to become durable and did not: no later sync makes them so.
  void give_up(ChangeNumber before, ChangeNumber own);
  // Another process takes over: its syncs cover what is there, as storage.h says.
  void begin_anew();
  // Has these contents, durable.
  void settle(std::string contents);

  // What a power loss makes of it: each change that is not durable is kept, lost, or, if it is a
  // write, torn.
  std::string after_power_loss(Random& random) const;

 private:
  struct Change {
    ChangeNumber number = 0;
    bool resize = false;
    std::uint64_t at = 0;  // a resize: the new size
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
  std::vector<Change> changes_;  // oldest first; durable_ with them all is now_
};

}  // namespace tubed::journal
