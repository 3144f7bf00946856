// What a client is to receive: literal bytes and placeholders.
//
// Invariant: a pattern that has {any} or {int} ends with a line end, so that a placeholder always
// sees where its line ends before it decides.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tubed::wire {

struct PatternPiece {
  enum class Kind {
    literal,
    integer,  // {int}: one or more digits
    any,      // {any}: zero or more bytes up to a line end
    rest,     // {rest}: what is left of an announced block, with its CRLF; stands alone
  };
  Kind kind = Kind::literal;
  std::string text;  // of a literal
};

using Pattern = std::vector<PatternPiece>;

struct Match {
  enum class Outcome { yes, no, needs_more };
  Outcome outcome = Outcome::no;
  std::size_t bytes = 0;  // how many matched, when yes
};

// Matches `pattern` at the start of `bytes`; needs_more while what has come may still become a
// match. {rest} is for the caller, who knows where the block ends; here it is never matched.
Match match(const Pattern& pattern, std::string_view bytes);

// The pattern for a person, placeholders as they are written.
std::string shown(const Pattern& pattern);

// Whether the pattern is {rest}.
bool is_rest(const Pattern& pattern);

// The line ends that the pattern spells out.
std::size_t lines_in(const Pattern& pattern);

}  // namespace tubed::wire
