// How a word is split:
//
// 1. An argument, "--" and a long option that is not declared need no getopt_long(3). So it never
//    sees an abbreviation.
// 2. For any other word it is reset and gets the rest of the command line. It is called until its
//    index leaves the word: once for a long option, and once for each letter of a cluster. So it
//    keeps no state between two words.
// 3. After an unknown letter the rest of its cluster is skipped.
//
// getopt_long(3) reads the command line from element 1. The element before the word has the place
// of the program's name, which it does not read.
#include "options/splitter.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <getopt.h>

#include "text/suggestion.h"

namespace tubed::options {
namespace {

// getopt_long(3) returns the letter of a short option, this number for a long option, '?' for an
// unknown letter or a needless value, and ':' for a missing value.
constexpr int kLong = 256;
constexpr ::option kNoLongOptions[]{{}};

int as_getopt_takes(Takes takes) {
  switch (takes) {
    case Takes::nothing:
      return no_argument;
    case Takes::value:
      return required_argument;
    case Takes::optional_value:
      return optional_argument;
  }
  return no_argument;
}

// A new command line: getopt_long(3) forgets the former.
void begin_getopt() {
  opterr = 0;
  optind = 0;
}

std::string_view without_value(std::string_view word) {
  return word.substr(0, word.find('='));
}

std::string_view value_or_nothing(const char* value) {
  return value == nullptr ? std::string_view() : std::string_view(value);
}

}  // namespace

Splitter::Splitter(std::vector<Syntax> options, std::span<const char* const> words)
    : options_(std::move(options)), words_(words) {
  // '-': words are not reordered. ':': a missing value is returned as ':', and nothing is printed.
  letters_ = "-:";
  for (const Syntax& syntax : options_) {
    for (const std::string& name : syntax.names) {
      if (name.starts_with("--")) continue;
      letters_ += name[1];
      if (syntax.takes == Takes::value) letters_ += ':';
    }
  }
  argv_.push_back(nullptr);
  // getopt_long(3) writes to no word, and with '-' moves none.
  for (const char* word : words) argv_.push_back(const_cast<char*>(word));
  argv_.push_back(nullptr);
}

std::optional<Piece> Splitter::next() {
  if (pieces_.empty() && at_ < words_.size()) split_word();
  if (pieces_.empty()) return std::nullopt;
  auto piece = std::move(pieces_.front());
  pieces_.pop_front();
  return piece;
}

std::span<const char* const> Splitter::rest() const {
  return words_.subspan(at_);
}

void Splitter::split_word() {
  const std::string_view word = words_[at_];
  if (is_argument(word)) {
    add(Piece::Kind::argument, 0, word);
    ++at_;
  } else if (word == "--") {
    add(Piece::Kind::end_of_options, 0);
    only_arguments_ = true;
    ++at_;
  } else if (!word.starts_with("--")) {
    split_cluster(word);
  } else if (const auto index = index_of(without_value(word))) {
    split_long(word, *index);
  } else {
    add_unknown(word);
    ++at_;
  }
}

bool Splitter::is_argument(std::string_view word) const {
  if (only_arguments_ || word.size() < 2 || word[0] != '-') return true;
  return word[1] >= '0' && word[1] <= '9' && !index_of(word.substr(0, 2));
}

void Splitter::split_long(std::string_view word, std::size_t index) {
  const std::string name(without_value(word).substr(2));
  const std::array<::option, 2> only{
      {{name.c_str(), as_getopt_takes(options_[index].takes), nullptr, kLong}, {}}};
  begin_getopt();
  const int found = getopt_long(count_left(), argv_.data() + at_, "-:", only.data(), nullptr);
  if (found == ':') {
    add(Piece::Kind::missing_value, index);
  } else if (found == '?') {
    add(Piece::Kind::needless_value, index, word.substr(name.size() + 3));
  } else {
    add(Piece::Kind::option, index, value_or_nothing(optarg));
  }
  at_ += static_cast<std::size_t>(optind) - 1;
}

void Splitter::split_cluster(std::string_view word) {
  begin_getopt();
  for (std::size_t place = 1; optind <= 1; ++place) {
    const int found =
        getopt_long(count_left(), argv_.data() + at_, letters_.c_str(), kNoLongOptions, nullptr);
    const auto index = index_of(std::string{'-', word[place]});
    if (!index) {
      const auto rest = word.substr(place);
      add_unknown(rest.starts_with('-') ? std::string(word) : fmt::format("-{}", rest));
      ++at_;
      return;
    }
    if (found == ':') {
      add(Piece::Kind::missing_value, *index);
    } else {
      add(Piece::Kind::option, *index, value_or_nothing(optarg));
    }
  }
  at_ += static_cast<std::size_t>(optind) - 1;
}

void Splitter::add(Piece::Kind kind, std::size_t option, std::string_view text) {
  pieces_.push_back({.kind = kind, .option = option, .text = text});
}

void Splitter::add_unknown(std::string_view name) {
  pieces_.push_back(
      {.kind = Piece::Kind::unknown, .unknown_name = std::string(without_value(name))});
}

std::optional<std::size_t> Splitter::index_of(std::string_view name) const {
  const auto has_name = [name](const Syntax& syntax) {
    return std::ranges::find(syntax.names, name) != syntax.names.end();
  };
  const auto found = std::ranges::find_if(options_, has_name);
  if (found == options_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - options_.begin());
}

std::string suggestion_for(std::string_view name, std::span<const Syntax> options) {
  std::vector<std::string> candidates;
  for (const Syntax& syntax : options) {
    for (const std::string& candidate : syntax.names) {
      if (candidate.starts_with("--")) candidates.push_back(candidate);
    }
  }
  return suggestion(name, candidates);
}

std::string missing_value(std::string_view name, std::string_view placeholder) {
  return fmt::format("{}: 1 required {} missing", name, placeholder);
}

std::string needless_value(std::string_view name) {
  return fmt::format("{} takes no argument", name);
}

}  // namespace tubed::options
