// Splitter: the words of a command line as options, their values and arguments.
//
// getopt_long(3) splits the words, so clusters of letters (-lf FILE), attached values (-tmail) and
// --option=value behave as in other programs. Three rules are added:
//
// - A long option is not abbreviated: a new option cannot change the meaning of a script.
// - A word such as -5 is an argument, unless an option has that letter.
// - After "--" every word is an argument.
//
// A mistake does not end the splitting: the caller decides which mistake it reports, and how.
//
// Ownership: pieces refer to the words, which must outlive them.
// Cost: each piece takes time proportional to the number of options and the length of its word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tubed::options {

enum class Takes : std::uint8_t {
  nothing,
  value,
  optional_value  // given as --option=value; a word after the option is an argument
};

// An option as the splitter needs it.
struct Syntax {
  std::vector<std::string> names;  // with their hyphens: "-t", "--tube"
  Takes takes = Takes::nothing;
};

struct Piece {
  enum class Kind : std::uint8_t {
    option,
    argument,
    end_of_options,  // "--"
    unknown,         // an option that is not declared
    missing_value,   // an option without the value that it takes
    needless_value,  // an option with a value that it does not take
  };

  Kind kind = Kind::argument;
  std::size_t option = 0;      // its index, unless it is unknown
  std::string_view text{};     // the value or the argument, if any
  std::string unknown_name{};  // as it was written, with the rest of its cluster, without a value
};

class Splitter {
 public:
  // `words` are those after the program's name.
  Splitter(std::vector<Syntax> options, std::span<const char* const> words);

  // The next piece; nothing at the end. Not for two threads at once: getopt_long(3) has global
  // state. Several splitters may alternate: none leaves state behind.
  std::optional<Piece> next();

  // The words that follow the last piece. Precondition: the last piece is an argument.
  std::span<const char* const> rest() const;

  const std::vector<Syntax>& options() const { return options_; }

 private:
  void split_word();
  void split_long(std::string_view word, std::size_t index);
  void split_cluster(std::string_view word);
  void add(Piece::Kind kind, std::size_t option, std::string_view text = {});
  void add_unknown(std::string_view name);
  std::optional<std::size_t> index_of(std::string_view name) const;
  bool is_argument(std::string_view word) const;
  int count_left() const { return static_cast<int>(words_.size() - at_) + 1; }

  std::vector<Syntax> options_;
  std::span<const char* const> words_;
  std::vector<char*> argv_;  // the program's place, the words, and null
  std::string letters_;      // as getopt_long(3) takes them
  std::size_t at_ = 0;       // the first word that is not split yet
  bool only_arguments_ = false;
  std::deque<Piece> pieces_;  // of the last word, which next() has not returned
};

// --- Messages

// " (did you mean --tube?)", or "".
std::string suggestion_for(std::string_view name, std::span<const Syntax> options);
// `placeholder`: the value as the help shows it.
std::string missing_value(std::string_view name, std::string_view placeholder);
std::string needless_value(std::string_view name);

}  // namespace tubed::options
