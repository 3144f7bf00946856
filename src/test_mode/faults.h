// Faults: commands that are answered with an error and not done (test-fault).
//
// Each fault concerns the next commands of one verb, or of any. Faults of the same verb take effect
// in the order in which they were set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tubed::test_mode {

class Faults {
 public:
  static constexpr std::size_t kMost = 1000;
  static constexpr std::string_view kAny = "any";

  enum class Kind : std::uint8_t {
    reply,  // an error word
    close,  // the connection is closed
    hang,   // no answer until the next reset
  };
  struct Fault {
    Kind kind = Kind::reply;
    std::string_view word;  // a literal; for `reply` only
  };

  // The fault that this text names: an error word, CLOSE or HANG. No value: it is another text.
  static std::optional<Fault> named(std::string_view reply);

  // Fails if kMost faults are set. O(1).
  bool add(std::string_view verb, std::uint64_t count, Fault fault);
  void clear() { rules_.clear(); }

  // Takes the next fault for a command of this verb; no value: no fault concerns it. O(faults).
  std::optional<Fault> take(std::string_view verb);
  // The same without taking it.
  std::optional<Fault> peek(std::string_view verb) const;

 private:
  struct Rule {
    std::string verb;
    std::uint64_t left;
    Fault fault;
  };

  std::vector<Rule> rules_;
};

}  // namespace tubed::test_mode
