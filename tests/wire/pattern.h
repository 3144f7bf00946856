// The input that a client expects: literal bytes and placeholders.
//
// Invariant: a pattern with {any} or {int} ends with a line end, so the end of the line is known
// when a placeholder is matched.
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
    rest,     // {rest}: the rest of an announced block, with its CRLF; alone in its pattern
  };
  Kind kind = Kind::literal;
  std::string text;  // of a literal
};

using Pattern = std::vector<PatternPiece>;

struct Match {
  enum class Outcome { yes, no, needs_more };
  Outcome outcome = Outcome::no;
  std::size_t bytes = 0;  // number of matched bytes
};

// Matches `pattern` at the start of `bytes`; needs_more if further bytes may complete a match.
// Never matches {rest}: the caller knows where the block ends.
Match match(const Pattern& pattern, std::string_view bytes);

// Returns the pattern for messages, with placeholders as written.
std::string shown(const Pattern& pattern);

// True if the pattern is {rest}.
bool is_rest(const Pattern& pattern);

// Returns the number of line ends in the literal parts of the pattern.
std::size_t lines_in(const Pattern& pattern);

}  // namespace tubed::wire
