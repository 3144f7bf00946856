#include "options/splitter.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/options/words.h"

namespace tubed::options_test {
namespace {

using options::Piece;
using options::Splitter;
using options::Syntax;
using options::Takes;

const std::vector<Syntax> kOptions{{{"-t", "--tube"}, Takes::value},
                                   {{"-l", "--lines"}, Takes::nothing},
                                   {{"-v"}, Takes::nothing},
                                   {{"--lines-of"}, Takes::value},
                                   {{"-c", "--clock"}, Takes::optional_value}};

// "-t" for an option by its first name, "-t=mail" with its value.
std::string shown(const Piece& piece, const std::vector<Syntax>& options) {
  const auto name = [&] { return options[piece.option].names.front(); };
  switch (piece.kind) {
    case Piece::Kind::option:
      return piece.text.empty() ? name() : fmt::format("{}={}", name(), piece.text);
    case Piece::Kind::argument:
      return fmt::format("[{}]", piece.text);
    case Piece::Kind::end_of_options:
      return "--";
    case Piece::Kind::unknown:
      return fmt::format("unknown {}", piece.unknown_name);
    case Piece::Kind::missing_value:
      return fmt::format("missing {}", name());
    case Piece::Kind::needless_value:
      return fmt::format("needless {}={}", name(), piece.text);
  }
  return "";
}

std::vector<std::string> split(const std::vector<std::string>& words,
                               const std::vector<Syntax>& options = kOptions) {
  const auto pointed = pointers(words);
  Splitter splitter(options, pointed);
  std::vector<std::string> result;
  while (const auto piece = splitter.next()) result.push_back(shown(*piece, options));
  return result;
}

using Shown = std::vector<std::string>;

TEST_CASE("an option takes its value from its word or the next word") {
  for (const auto& words : {Shown{"-t", "mail"}, {"-tmail"}, {"--tube", "mail"}, {"--tube=mail"}}) {
    CHECK(split(words) == Shown{"-t=mail"});
  }
  CHECK(split({"--tube=a=b"}) == Shown{"-t=a=b"});
  CHECK(split({"-t=b"}) == Shown{"-t==b"});
  CHECK(split({}).empty());
}

TEST_CASE("letters form a cluster, whose last letter may take a value") {
  CHECK(split({"-lv"}) == Shown{"-l", "-v"});
  CHECK(split({"-lvtmail", "x"}) == Shown{"-l", "-v", "-t=mail", "[x]"});
  CHECK(split({"-lvt", "mail", "x"}) == Shown{"-l", "-v", "-t=mail", "[x]"});
  CHECK(split({"-tl"}) == Shown{"-t=l"});
}

TEST_CASE("options and arguments keep their order") {
  CHECK(split({"a", "-l", "b", "--tube", "c", "d"}) == Shown{"[a]", "-l", "[b]", "-t=c", "[d]"});
}

TEST_CASE("the word after an option that takes a value is the value") {
  for (const auto* word : {"--", "-l", "--lines", "-", "-5", "--nonsense"}) {
    CAPTURE(word);
    CHECK(split({"-t", word, "x"}) == Shown{fmt::format("-t={}", word), "[x]"});
    CHECK(split({"--tube", word, "x"}) == Shown{fmt::format("-t={}", word), "[x]"});
  }
}

TEST_CASE("every word after two dashes is an argument") {
  CHECK(split({"-l", "--", "-l", "--tube=x", "--", "-"}) ==
        Shown{"-l", "--", "[-l]", "[--tube=x]", "[--]", "[-]"});
  CHECK(split({"--"}) == Shown{"--"});
}

TEST_CASE("a dash, an empty word and a negative number are arguments") {
  CHECK(split({"-", "", "-5", "-5x", "-0.5"}) == Shown{"[-]", "[]", "[-5]", "[-5x]", "[-0.5]"});
  const std::vector<Syntax> with_digit{{{"-5"}, Takes::nothing}};
  CHECK(split({"-5", "-6"}, with_digit) == Shown{"-5", "[-6]"});
}

TEST_CASE("a long option is not abbreviated") {
  CHECK(split({"--tub", "x"}) == Shown{"unknown --tub", "[x]"});
  CHECK(split({"--tub=x"}) == Shown{"unknown --tub"});
  CHECK(split({"--line"}) == Shown{"unknown --line"});
  CHECK(split({"--lines-o=x"}) == Shown{"unknown --lines-o"});
  CHECK(split({"--lines", "--lines-of=x"}) == Shown{"-l", "--lines-of=x"});
}

TEST_CASE("a long option has two dashes, and a letter has one") {
  CHECK(split({"-tube"}) == Shown{"-t=ube"});
  CHECK(split({"--t", "x"}) == Shown{"unknown --t", "[x]"});
  CHECK(split({"---tube"}) == Shown{"unknown ---tube"});
  CHECK(split({"--=x"}) == Shown{"unknown --"});
}

TEST_CASE("an unknown letter is named with the rest of its cluster, which is skipped") {
  CHECK(split({"-x", "-l"}) == Shown{"unknown -x", "-l"});
  CHECK(split({"-lxv", "-l"}) == Shown{"-l", "unknown -xv", "-l"});
  CHECK(split({"-xt", "mail"}) == Shown{"unknown -xt", "[mail]"});
  CHECK(split({"-l=x"}) == Shown{"-l", "unknown -"});
  CHECK(split({"-l-tube"}) == Shown{"-l", "unknown -l-tube"});
  for (const auto* word : {"-?", "-:", "-;", "-+", "-W", "-\xff"}) {
    CHECK(split({word}) == Shown{fmt::format("unknown {}", word)});
  }
}

TEST_CASE("a value that is missing or needless does not end the splitting") {
  CHECK(split({"-t"}) == Shown{"missing -t"});
  CHECK(split({"-lt"}) == Shown{"-l", "missing -t"});
  CHECK(split({"--tube"}) == Shown{"missing -t"});
  CHECK(split({"--lines=x", "y"}) == Shown{"needless -l=x", "[y]"});
  CHECK(split({"--lines=", "y"}) == Shown{"needless -l=", "[y]"});
}

TEST_CASE("an empty value is a value") {
  for (const auto& words : {Shown{"-t", "", "x"}, {"--tube", "", "x"}, {"--tube=", "x"}}) {
    CHECK(split(words) == Shown{"-t", "[x]"});
  }
}

TEST_CASE("an optional value follows an equals sign") {
  CHECK(split({"--clock=auto", "x"}) == Shown{"-c=auto", "[x]"});
  CHECK(split({"--clock", "x"}) == Shown{"-c", "[x]"});
  CHECK(split({"-cv", "x"}) == Shown{"-c", "-v", "[x]"});
}

TEST_CASE("rest() has the words after an argument") {
  const std::vector<std::string> words{"-t", "a", "run", "-l", "--", "x"};
  const auto pointed = pointers(words);
  Splitter splitter(kOptions, pointed);
  splitter.next();
  CHECK(splitter.next()->text == "run");
  CHECK(std::vector<std::string>(splitter.rest().begin(), splitter.rest().end()) ==
        Shown{"-l", "--", "x"});
}

TEST_CASE("two splitters may alternate within a cluster") {
  const std::vector<std::string> words{"-lv", "-v"};
  const auto pointed = pointers(words);
  Splitter one(kOptions, pointed);
  Splitter other(kOptions, pointed);
  Shown pieces;
  for (int i = 0; i < 3; ++i) {
    pieces.push_back(shown(*one.next(), kOptions));
    pieces.push_back(shown(*other.next(), kOptions));
  }
  CHECK(pieces == Shown{"-l", "-l", "-v", "-v", "-v", "-v"});
  CHECK(!one.next());
}

TEST_CASE("the nearest long option is suggested") {
  CHECK(options::suggestion_for("--tuve", kOptions) == " (did you mean --tube?)");
  CHECK(options::suggestion_for("--nonsense", kOptions).empty());
}

}  // namespace
}  // namespace tubed::options_test
