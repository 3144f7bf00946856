// How a command line becomes values:
//
// 1. split() sorts the pieces of the command line by their rows. It ends at a value that is missing
//    or needless, because the meaning of the words after it is not certain.
// 2. --help wins over all later mistakes: a user can add it to a line that is refused.
// 3. take_values() asks the environment for options that are not given, and checks each value.
// 4. The unknown options, check_relations() and the arguments that are too many: the first mistake
//    is reported. Of several unexpected words an unknown option is named first, since the words
//    after it are often its values.
// 5. assign() sets the members.
#include "options/parse.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "options/value.h"

namespace tubed::options {
namespace {

bool is_flag(const OptionRow& row) {
  return row.type.kind == ValueType::Kind::flag;
}

// The value of a flag given as --flag=TEXT; an empty text is as if it were left out.
Result<std::string> truth(std::string_view text) {
  constexpr std::array<std::string_view, 5> kTrue{"", "true", "yes", "on", "1"};
  constexpr std::array<std::string_view, 4> kFalse{"false", "no", "off", "0"};
  if (std::ranges::find(kTrue, text) != kTrue.end()) return std::string("true");
  if (std::ranges::find(kFalse, text) != kFalse.end()) return std::string("false");
  return not_a_value(text, "true or false");
}

class Parser {
 public:
  Parser(std::span<const OptionRow> rows, AfterArguments after) : rows_(rows), after_(after) {
    for (const OptionRow& row : rows_) names_.push_back(split_names(row));
    values_.resize(rows_.size());
  }

  Result<Parsed> parse(std::span<const char* const> words, Environment environment, void* options) {
    Splitter splitter(syntax_of(rows_), words);
    TRY(split(splitter));
    parsed_.wants_help = is_help_given();
    if (parsed_.wants_help) return std::move(parsed_);
    for (std::size_t i = 0; i < rows_.size(); ++i) TRY(take_values(i, environment));
    if (unknown_) {
      return Error{fmt::format("there is no option {}{}{}", *unknown_,
                               suggestion_for(*unknown_, splitter.options()), unknown_hint_)};
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) TRY(check_relations(i));
    if (!too_many_.empty()) {
      return Error{fmt::format("there {} too many: {}",
                               too_many_.size() > 1 ? "are arguments" : "is an argument",
                               fmt::join(too_many_, " "))};
    }
    assign(options);
    return std::move(parsed_);
  }

 private:
  Result<void> split(Splitter& splitter) {
    while (const auto piece = splitter.next()) {
      const auto bare = std::exchange(bare_, std::nullopt);
      if (piece->kind == Piece::Kind::argument) {
        if (bare && take_value_of(*bare, piece->text)) continue;
        if (take_argument(piece->text)) continue;
        if (after_ == AfterArguments::nothing_follows) {
          too_many_.emplace_back(piece->text);
          continue;
        }
        parsed_.program_arguments.emplace_back(piece->text);
        const auto rest = splitter.rest();
        parsed_.program_arguments.insert(parsed_.program_arguments.end(), rest.begin(), rest.end());
        return {};
      }
      TRY(take_option(*piece));
    }
    return {};
  }

  Result<void> take_option(const Piece& piece) {
    if (piece.kind == Piece::Kind::unknown) {
      if (unknown_) return {};
      unknown_ = piece.unknown_name;
      // The command that is run has options of its own.
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        if (rows_[i].type.kind != ValueType::Kind::command || values_[i].empty()) continue;
        unknown_hint_ = fmt::format("; for an option of {0}, write -- before it: -- {0} {1}",
                                    values_[i].front(), *unknown_);
      }
      return {};
    }
    if (piece.kind == Piece::Kind::end_of_options) return {};
    if (piece.kind == Piece::Kind::missing_value) {
      return Error{
          missing_value(names_[piece.option].shown(), shown_value(rows_[piece.option].type))};
    }
    const OptionRow& row = rows_[piece.option];
    if (!row.bare_value.empty() && piece.text.empty()) {
      add_value(piece.option, row.bare_value);
      bare_ = piece.option;
      return {};
    }
    if (!is_flag(row)) {
      add_value(piece.option, piece.text);
      return {};
    }
    auto value = truth(piece.text);
    if (!value) return error_of(piece.option, value.error());
    values_[piece.option] = {std::move(*value)};
    return {};
  }

  // Replaces the value of an option that was given without one, if the word is a value of it.
  bool take_value_of(std::size_t index, std::string_view text) {
    if (!normalized(rows_[index].type, text)) return false;
    values_[index].back() = text;
    return true;
  }

  // False: no row takes it.
  bool take_argument(std::string_view text) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (names_[i].positional.empty() || (!values_[i].empty() && !rows_[i].repeats)) continue;
      add_value(i, text);
      return true;
    }
    return false;
  }

  // Empty values between separators are left out.
  void add_value(std::size_t index, std::string_view text) {
    auto& values = values_[index];
    const char separator = rows_[index].separator;
    const auto before = values.size();
    while (separator != '\0' && text.find(separator) != text.npos) {
      const auto end = text.find(separator);
      if (end > 0) values.emplace_back(text.substr(0, end));
      text.remove_prefix(end + 1);
    }
    if (!text.empty() || values.size() == before) values.emplace_back(text);
  }

  bool is_help_given() const {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].names == kHelpOption.names) return !values_[i].empty();
    }
    return false;
  }

  // Precondition: the command line is split.
  Result<void> take_values(std::size_t index, Environment environment) {
    const OptionRow& row = rows_[index];
    auto& values = values_[index];
    if (values.empty() && !row.env.empty()) {
      const char* const text = environment(std::string(row.env).c_str());
      if (text != nullptr && *text != '\0') values.emplace_back(text);
    }
    if (is_flag(row)) return {};
    for (std::string& value : values) {
      auto checked = normalized(row.type, value);
      if (!checked) return error_of(index, checked.error());
      value = std::move(*checked);
    }
    if (values.size() > 1 && !row.repeats) {
      return Error{fmt::format("{} may be given only once", names_[index].shown())};
    }
    return {};
  }

  // Precondition: all values are taken.
  Result<void> check_relations(std::size_t index) const {
    const OptionRow& row = rows_[index];
    const OptionNames& names = names_[index];
    if (values_[index].empty()) {
      if (!row.required) return {};
      return Error{fmt::format("{} is missing",
                               names.positional.empty() ? names.shown() : names.positional)};
    }
    if (!row.needs.empty() && values_[index_of(row.needs)].empty()) {
      return Error{fmt::format("{} requires {}", names.shown(), row.needs)};
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (values_[i].empty() || !exclude_each_other(row, rows_[i])) continue;
      return Error{fmt::format("{} excludes {}", names.shown(), names_[i].shown())};
    }
    return {};
  }

  Error error_of(std::size_t index, const Error& reason) const {
    return Error{fmt::format("{}: {}", names_[index].shown(), reason.message)};
  }

  // Precondition: a row has the name.
  std::size_t index_of(std::string_view name) const {
    const auto row = std::ranges::find_if(
        rows_, [name](const OptionRow& other) { return has_name(other, name); });
    TUBED_ASSERT(row != rows_.end());
    return static_cast<std::size_t>(row - rows_.begin());
  }

  void assign(void* options) const {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!values_[i].empty() && rows_[i].assign != nullptr) rows_[i].assign(options, values_[i]);
    }
  }

  std::span<const OptionRow> rows_;
  AfterArguments after_;
  std::vector<OptionNames> names_;
  std::vector<std::vector<std::string>> values_;  // of each row
  std::optional<std::size_t> bare_;               // the last piece was this option without a value
  std::optional<std::string> unknown_;            // the first unknown option
  std::string unknown_hint_;
  std::vector<std::string> too_many_;
  Parsed parsed_;
};

}  // namespace

Result<Parsed> parse(std::span<const OptionRow> rows, std::span<const char* const> words,
                     Environment environment, void* options, AfterArguments after) {
  return Parser(rows, after).parse(words, environment, options);
}

std::vector<Syntax> syntax_of(std::span<const OptionRow> rows) {
  std::vector<Syntax> result;
  for (const OptionRow& row : rows) {
    const Takes takes = is_flag(row)             ? Takes::nothing
                        : row.bare_value.empty() ? Takes::value
                                                 : Takes::optional_value;
    result.push_back({.names = split_names(row).names, .takes = takes});
  }
  return result;
}

}  // namespace tubed::options
