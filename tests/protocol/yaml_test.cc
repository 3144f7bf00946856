#include "protocol/yaml.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "facts/types.h"

using namespace tubed;
using namespace tubed::protocol;

namespace {

struct Notation {
  const char* description;
  std::regex regex;
};

Notation notation(const char* description, const char* regex) {
  return {description, std::regex(regex, std::regex::ECMAScript | std::regex::optimize)};
}

// The scalars that are no text by https://yaml.org/type/ (YAML 1.1), without those that have a
// character that no name has: `~`, `=`, `<<`, sexagesimal numbers and times. The page on numbers
// allows several points in one; no parser reads that, and it has no value.
const std::vector<Notation>& yaml_1_1() {
  static const std::vector<Notation> notations{
      notation("null", "null|Null|NULL"),
      notation("truth values",
               "y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|"
               "on|On|ON|off|Off|OFF"),
      notation("integers",
               "[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(0|[1-9][0-9_]*)|"
               "[-+]?0x[0-9a-fA-F_]+"),
      notation("fractions", "[-+]?([0-9][0-9_]*)?\\.[0-9]*([eE][-+][0-9]+)?"),
      notation("infinity and no number", "[-+]?\\.(inf|Inf|INF)|\\.(nan|NaN|NAN)"),
      notation("dates", "[0-9]{4}-[0-9]{2}-[0-9]{2}"),
  };
  return notations;
}

// The same by the core schema of YAML 1.2.2, section 10.3.2.
const std::vector<Notation>& yaml_1_2() {
  static const std::vector<Notation> notations{
      notation("null", "null|Null|NULL"),
      notation("truth values", "true|True|TRUE|false|False|FALSE"),
      notation("integers", "[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
      notation("fractions", "[-+]?(\\.[0-9]+|[0-9]+(\\.[0-9]*)?)([eE][-+]?[0-9]+)?"),
      notation("infinity and no number", "[-+]?\\.(inf|Inf|INF)|\\.nan|\\.NaN|\\.NAN"),
  };
  return notations;
}

// Notations that parsers read in addition: Psych (Ruby) letters of any case and days of one digit,
// go-yaml a base of any case, ruamel.yaml (Python) underscores in place of all digits.
const std::vector<Notation>& parsers() {
  static const std::vector<Notation> notations{
      notation("words",
               "([yY]|[nN]|[yY][eE][sS]|[nN][oO]|[oO][nN]|[oO][fF][fF]|[tT][rR][uU][eE]|"
               "[fF][aA][lL][sS][eE]|[nN][uU][lL][lL]|"
               "[-+]?\\.[iI][nN][fF]|[-+]?\\.[nN][aA][nN])"),
      notation("integers with a base", "[-+]?0_*([bB][01_]+|[oO][0-7_]+|[xX][0-9a-fA-F_]+)"),
      notation("numbers", "(?!_)[-+]?([0-9_]+(\\.[0-9_]*)?|\\.[0-9_]*)([eE][-+]?[0-9_]+)?"),
      notation("dates", "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"),
  };
  return notations;
}

bool matches_one(const std::vector<Notation>& notations, const std::string& name) {
  return std::ranges::any_of(
      notations, [&](const Notation& notation) { return std::regex_match(name, notation.regex); });
}

std::string written(const std::string& name) {
  return yaml_of({[&](BlockSink& block) { block.member("name", Text{name}); }});
}

// Compares the quotes of `name` with the descriptions.
void check(const std::string& name) {
  const bool is_text = !matches_one(yaml_1_1(), name) && !matches_one(yaml_1_2(), name) &&
                       !matches_one(parsers(), name);
  if (is_plain_yaml(name) == is_text) return;
  FAIL_CHECK("the name " << name << (is_text ? " has needless quotes" : " lacks quotes"));
}

// Names of all characters, most of which look like a number, a word or a date.
class Names {
 public:
  std::string next() {
    static const std::vector<std::string> parts{
        "0",  "1", "7",   "9",   "12",   "2026", "-01",  "-31", "-1", "_",   ".",
        "+",  "-", "e",   "E",   "e5",   "E+3",  "0x",   "0X",  "0b", "0o",  "0B",
        "ff", "A", "inf", "nan", ".inf", ".NaN", "true", "No",  "y",  "Off", "NULL",
        "on", "/", ";",   "$",   "(",    ")",    "x",    "Z",   "b"};
    while (true) {
      std::string name;
      for (auto i = 1 + random_() % 5; i > 0; --i) name += parts[random_() % parts.size()];
      if (is_tube_name(name)) return name;
    }
  }

 private:
  std::mt19937 random_{1};
};

}  // namespace

TEST_CASE("a block is written as beanstalkd writes it, with quotes where YAML needs them") {
  const Block block{[](BlockSink& sink) {
    sink.member("pid", std::uint64_t{42});
    sink.member("max", UINT64_MAX);
    sink.member("name", Text{"default"});
    sink.member("version", Text{"1.13"});
    sink.member("state", Plain{"ready"});
    sink.member("id", Plain{"0012"});
    sink.member("bound", Decimal{"0.5"});
    sink.member("draining", false);
    sink.member("full", true);
    sink.member("rusage-utime", std::chrono::microseconds(3'000'120));
    sink.member("rusage-stime", std::chrono::microseconds(999'999));
  }};
  CHECK(yaml_of(block) ==
        "---\npid: 42\nmax: 18446744073709551615\nname: default\nversion: \"1.13\"\nstate: ready\n"
        "id: 0012\nbound: 0.5\ndraining: false\nfull: true\nrusage-utime: 3.000120\n"
        "rusage-stime: 0.999999\n");
}

TEST_CASE("items are the lines of a list") {
  CHECK(yaml_of({[](BlockSink& sink) {
          sink.item("default");
          sink.item("5");
        }}) == "---\n- default\n- 5\n");
  CHECK(yaml_of({[](BlockSink&) {}}) == "---\n");
}

TEST_CASE("a table begins with the next page and its columns") {
  constexpr std::array<std::string_view, 2> kColumns{"id", "state"};
  const auto table = [&](std::uint64_t next, bool has_rows) {
    return yaml_of({[=](BlockSink& sink) {
      sink.begin_table({.names = kColumns, .rest = "tags"});
      if (has_rows) {
        sink.row(std::array<Value, 2>{std::uint64_t{7}, Plain{"ready"}});
        sink.row(std::array<Value, 3>{std::uint64_t{8}, Plain{"true"}, Plain{"idp:a con:b"}});
      }
      sink.end_table(next);
    }});
  };
  CHECK(table(0, false) == "---\n- next 0\n- id state\n");
  CHECK(table(9, true) == "---\n- next 9\n- id state\n- 7 ready\n- 8 true idp:a con:b\n");
}

TEST_CASE("a filtered table says how many items it has looked at") {
  CHECK(yaml_of({[](BlockSink& sink) {
          sink.begin_table({});
          sink.looked_at(1000);
          sink.end_table(7);
        }}) == "---\n- next 7 looked 1000\n-\n");
}

TEST_CASE("keys and values of any length are written") {
  for (const std::size_t size :
       {0UL, 60UL, 64UL, 65UL, 230UL, 254UL, 255UL, 256UL, 257UL, 1000UL}) {
    CAPTURE(size);
    const std::string text(size, 'k');
    CHECK(yaml_of({[&](BlockSink& sink) { sink.member(text, UINT64_MAX); }}) ==
          "---\n" + text + ": 18446744073709551615\n");
    CHECK(yaml_of({[&](BlockSink& sink) { sink.member(text, Plain{text}); }}) ==
          "---\n" + text + ": " + text + "\n");
    const std::array<Value, 4> row{Plain{text}, UINT64_MAX, Plain{text}, UINT64_MAX};
    CHECK(yaml_of({[&](BlockSink& sink) { sink.row(row); }}) ==
          "---\n- " + text + " 18446744073709551615 " + text + " 18446744073709551615\n");
  }
}

TEST_CASE("a block is appended to a text, and blocks are equal if their YAML is") {
  std::string text = "before";
  YamlBlock yaml(text);
  yaml.begin_table({});
  yaml.end_table(5);
  CHECK(text == "before---\n- next 5\n-\n");
  const auto item = [](const char* name) {
    return Block{[name](BlockSink& sink) { sink.item(name); }};
  };
  CHECK(item("a") == item("a"));
  CHECK_FALSE(item("a") == item("b"));
}

TEST_CASE("ordinary names have no quotes") {
  for (const char* const name : {"default",     "mail",
                                 "a",           "x",
                                 "e5",          "E",
                                 "_",           "__init__",
                                 "_1",          "a-b",
                                 "a.b",         "a/b",
                                 "a;b",         "$HOME",
                                 "(x)",         "1st",
                                 "10-mails",    "10.0.0.1",
                                 "2.0.0",       "v1.0",
                                 "1.0-beta",    "0xyz",
                                 "0b2",         "0o8",
                                 "0x",          "0b",
                                 "1e",          "1e+",
                                 "+",           "+e5",
                                 "..",          "...",
                                 "2026-01",     "2026-01-31-x",
                                 "20260-01-31", "2026-001-31",
                                 "yesterday",   "nothing",
                                 "nullable",    "truey",
                                 "inf",         "nan",
                                 "offline",     "one",
                                 "+yes",        "5/60"}) {
    CHECK_MESSAGE(written(name) == "---\nname: " + std::string(name) + "\n", name);
    check(name);
  }
}

TEST_CASE("names that YAML reads as something else are quoted") {
  for (const char* const name :
       {"0",          "7",        "+7",         "010",  "0_1",   "1_000", "1__0",  "1.0",   "1.",
        ".5",         "+.5",      ".",          "1e5",  "1.5e3", "1E-3",  "1.e+1", "0x1F",  "0X1f",
        "0b101",      "0o17",     "0O17",       "0b_",  "0x_",   "+_",    "._",    "1_e_5", "y",
        "N",          "yes",      "NO",         "on",   "oFF",   "true",  "False", "null",  "NULL",
        "2026-01-31", "2026-1-3", "9999-99-99", ".inf", "+.INF", ".nan",  ".NaN",  "0_x1"}) {
    CHECK_MESSAGE(written(name) == "---\nname: \"" + std::string(name) + "\"\n", name);
    check(name);
  }
}

TEST_CASE("texts that no tube can have as its name are quoted") {
  for (const char* const text : {"",
                                 " ",
                                 "a b",
                                 "#1 SMP",
                                 "a: b",
                                 "a:",
                                 "12:30",
                                 "10:300:3",
                                 "~",
                                 "=",
                                 "<<",
                                 "-",
                                 "-a",
                                 "-1",
                                 "[a]",
                                 "{a}",
                                 "a,b",
                                 "*a",
                                 "&a",
                                 "!a",
                                 "|",
                                 ">",
                                 "'a'",
                                 "%a",
                                 "@a",
                                 "`a`",
                                 "?",
                                 "a #b",
                                 "2026-01-31T00:00:00Z",
                                 "\xc3\xa4"}) {
    CHECK_MESSAGE(written(text) == "---\nname: \"" + std::string(text) + "\"\n", text);
  }
}

TEST_CASE("a name is quoted exactly if a version of YAML or a parser reads it as no text") {
  // All names of up to three of the characters that numbers and words consist of.
  constexpr std::string_view kCharacters = "0178_.+-eExXbofny";
  std::vector<std::string> names{""};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = names[i];
    if (is_tube_name(name)) check(name);
    if (name.size() == 3) continue;
    for (const char c : kCharacters) names.push_back(name + c);
  }
  Names random;
  for (int i = 0; i < 20'000; ++i) check(random.next());
}
