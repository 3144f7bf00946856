#include "tests/wire/pattern.h"

#include <algorithm>
#include <span>

#include "tests/wire/escape.h"

namespace tubed::wire {
namespace {

constexpr Match kNo{Match::Outcome::no, 0};
constexpr Match kNeedsMore{Match::Outcome::needs_more, 0};

Match match_from(std::span<const PatternPiece> pieces, std::string_view bytes, std::size_t at);

Match match_literal(std::span<const PatternPiece> pieces, std::string_view bytes, std::size_t at) {
  const std::string_view wanted = pieces.front().text;
  const std::string_view there = bytes.substr(at, wanted.size());
  if (there == wanted) return match_from(pieces.subspan(1), bytes, at + wanted.size());
  return wanted.starts_with(there) ? kNeedsMore : kNo;
}

Match match_integer(std::span<const PatternPiece> pieces, std::string_view bytes, std::size_t at) {
  const std::size_t end = bytes.find_first_not_of("0123456789", at);
  if (end == std::string_view::npos) return kNeedsMore;
  return end == at ? kNo : match_from(pieces.subspan(1), bytes, end);
}

// Finds the longest text after which the rest of the pattern matches.
Match match_any(std::span<const PatternPiece> pieces, std::string_view bytes, std::size_t at) {
  const std::size_t line_end = bytes.find_first_of("\r\n", at);
  if (line_end == std::string_view::npos) return kNeedsMore;
  Match best = kNo;
  for (std::size_t end = line_end;; --end) {
    const Match tried = match_from(pieces.subspan(1), bytes, end);
    if (tried.outcome == Match::Outcome::yes) return tried;
    if (tried.outcome == Match::Outcome::needs_more) best = tried;
    if (end == at) return best;
  }
}

Match match_from(std::span<const PatternPiece> pieces, std::string_view bytes, std::size_t at) {
  if (pieces.empty()) return {Match::Outcome::yes, at};
  switch (pieces.front().kind) {
    case PatternPiece::Kind::literal:
      return match_literal(pieces, bytes, at);
    case PatternPiece::Kind::integer:
      return match_integer(pieces, bytes, at);
    case PatternPiece::Kind::any:
      return match_any(pieces, bytes, at);
    case PatternPiece::Kind::rest:
      break;
  }
  return kNo;
}

}  // namespace

Match match(const Pattern& pattern, std::string_view bytes) {
  return match_from(pattern, bytes, 0);
}

std::string shown(const Pattern& pattern) {
  std::string out;
  for (const PatternPiece& piece : pattern) {
    if (!out.empty()) out += ' ';
    switch (piece.kind) {
      case PatternPiece::Kind::literal:
        out += shown(piece.text);
        break;
      case PatternPiece::Kind::integer:
        out += "{int}";
        break;
      case PatternPiece::Kind::any:
        out += "{any}";
        break;
      case PatternPiece::Kind::rest:
        out += "{rest}";
        break;
    }
  }
  return out;
}

bool is_rest(const Pattern& pattern) {
  return pattern.size() == 1 && pattern.front().kind == PatternPiece::Kind::rest;
}

std::size_t lines_in(const Pattern& pattern) {
  std::ptrdiff_t lines = 0;
  for (const PatternPiece& piece : pattern) lines += std::ranges::count(piece.text, '\n');
  return static_cast<std::size_t>(lines);
}

}  // namespace tubed::wire
