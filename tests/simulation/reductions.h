// Reductions: what a life omits, to make a failing life short (shorten.h).
//
// The choices still follow from the seed: omitted items are chosen too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace tubed::simulation {

// A range of numbers that count from 1.
struct Range {
  std::uint64_t first = 1;
  std::uint64_t last = UINT64_MAX;

  bool has(std::uint64_t number) const { return first <= number && number <= last; }
  bool operator==(const Range&) const = default;
};

// All numbers, or only these.
using Kept = std::optional<std::set<std::uint64_t>>;

struct Reductions {
  std::set<std::string> left_out;         // words for clients
  std::map<std::string, Range> commands;  // by client word: the commands that it sends
  Kept ends;                              // of processes
  Kept acts;                              // of the operator
  // The network passes everything whole and in constant time, and no reader or disk operation is
  // slow.
  bool is_calm = false;

  // Returns the name of a client without blanks.
  static std::string word_for(std::string name);
  bool leaves_out(const std::string& client) const { return left_out.contains(word_for(client)); }
  Range commands_of(const std::string& client) const;
  static bool keeps(const Kept& kept, std::uint64_t number) {
    return !kept || kept->contains(number);
  }
  bool operator==(const Reductions&) const = default;
};

}  // namespace tubed::simulation
