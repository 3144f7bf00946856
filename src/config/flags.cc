// options::Splitter splits the words by the names of the rows. The messages are written here, and
// the rule that tubed takes no arguments: a word that is not a flag is a mistake, and so is "--".
#include "config/flags.h"

#include <string>

#include <fmt/format.h>

#include "config/value.h"
#include "options/splitter.h"

namespace tubed::config {
namespace {

using options::Piece;
using options::Syntax;
using options::Takes;

// The rows, and how each is written: lists in the same order.
struct DeclaredFlags {
  std::vector<GivenFlag> rows;
  std::vector<Syntax> syntax;
  std::vector<std::string> placeholders;

  void add(GivenFlag row, char short_flag, const std::string& long_flag, std::string placeholder,
           Takes takes) {
    Syntax names{.names = {}, .takes = takes};
    if (!long_flag.empty()) names.names.push_back(long_flag);
    if (short_flag != '\0') names.names.push_back({'-', short_flag});
    rows.push_back(row);
    syntax.push_back(std::move(names));
    placeholders.push_back(std::move(placeholder));
  }
};

DeclaredFlags declared_flags() {
  DeclaredFlags flags;
  for (const auto& row : settings_table()) {
    flags.add({nullptr, &row, ""}, row.short_flag, row.flag(), placeholder(row.type), Takes::value);
  }
  for (const auto& row : options_table()) {
    const auto takes = row.argument.empty()       ? Takes::nothing
                       : row.argument_is_optional ? Takes::optional_value
                                                  : Takes::value;
    flags.add({&row, nullptr, ""}, row.short_flag, std::string(row.long_flag),
              std::string(row.argument), takes);
  }
  return flags;
}

std::string unknown(std::string_view flag, std::span<const Syntax> syntax) {
  return fmt::format("unknown flag {}{}", printable(flag), options::suggestion_for(flag, syntax));
}

// The mistake; empty: the piece is a flag.
std::string mistake_in(const Piece& piece, const DeclaredFlags& flags) {
  switch (piece.kind) {
    case Piece::Kind::option:
      return "";
    case Piece::Kind::argument:
      if (!piece.text.starts_with('-')) {
        return fmt::format("unexpected argument {}", in_quotes(piece.text));
      }
      return unknown(piece.text.substr(0, piece.text.find('=')), flags.syntax);
    case Piece::Kind::end_of_options:
      return unknown("--", flags.syntax);
    case Piece::Kind::unknown:
      return unknown(piece.unknown_name, flags.syntax);
    case Piece::Kind::missing_value:
      return options::missing_value(flags.syntax[piece.option].names.front(),
                                    flags.placeholders[piece.option]);
    case Piece::Kind::needless_value:
      return options::needless_value(flags.syntax[piece.option].names.front());
  }
  return "";
}

}  // namespace

Result<std::vector<GivenFlag>> split_flags(std::span<const char* const> args) {
  const auto flags = declared_flags();
  options::Splitter splitter(flags.syntax, args);
  std::vector<GivenFlag> given;
  while (const auto piece = splitter.next()) {
    if (auto mistake = mistake_in(*piece, flags); !mistake.empty())
      return Error{std::move(mistake)};
    given.push_back(flags.rows[piece->option]);
    given.back().text = piece->text;
  }
  return given;
}

}  // namespace tubed::config
