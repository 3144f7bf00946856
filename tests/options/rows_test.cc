// The rows of both programs: the daemon's flags, and the options of each subcommand of tubectl.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config/flags.h"
#include "config/table.h"
#include "options/parse.h"
#include "tests/options/words.h"
#include "tubectl/commands/table.h"

namespace tubed::options_test {
namespace {

using options::OptionRow;
using options::ValueType;
using Words = std::vector<std::string>;

std::string mistake_in(const tubectl::Subcommand& subcommand, const Words& words) {
  const auto given = subcommand.make_options();
  const auto parsed =
      options::parse(tubectl::options_of(subcommand), pointers(words), no_environment, given.get());
  return parsed ? "" : parsed.error().message;
}

// Calls f(subcommand, its rows) for each subcommand.
template <class F>
void for_each_subcommand(F f) {
  REQUIRE(tubectl::subcommands().size() > 20);
  for (const tubectl::Subcommand* subcommand : tubectl::subcommands()) {
    CAPTURE(subcommand->name);
    f(*subcommand, tubectl::options_of(*subcommand));
  }
}

TEST_CASE("tubectl: the names of a subcommand are unique, and have the right form") {
  for_each_subcommand([](const tubectl::Subcommand&, const std::vector<OptionRow>& rows) {
    std::set<std::string> seen;
    for (const OptionRow& row : rows) {
      auto names = options::split_names(row);
      if (!names.positional.empty()) names.names.push_back(names.positional);
      CHECK(!names.names.empty());
      CHECK(!row.help.empty());
      for (const std::string& name : names.names) {
        CAPTURE(name);
        CHECK(seen.insert(name).second);
        CHECK((!name.starts_with('-') || name.starts_with("--") || name.size() == 2));
      }
    }
  });
}

TEST_CASE("tubectl: a subcommand has one of the headings of the help") {
  for_each_subcommand([](const tubectl::Subcommand& subcommand, const std::vector<OptionRow>&) {
    const auto group = subcommand.group;
    CHECK((group == tubectl::kWorkGroup || group == tubectl::kLookGroup ||
           group == tubectl::kControlGroup || group == tubectl::kManyGroup));
  });
}

TEST_CASE("tubectl: the rows that a row names exist") {
  for_each_subcommand([](const tubectl::Subcommand&, const std::vector<OptionRow>& rows) {
    const auto exists = [&rows](std::string_view name) {
      return std::ranges::any_of(
          rows, [name](const OptionRow& row) { return options::has_name(row, name); });
    };
    for (const OptionRow& row : rows) {
      CAPTURE(row.names);
      if (!row.needs.empty()) CHECK(exists(row.needs));
      for (const auto other : row.excludes) {
        if (!other.empty()) CHECK(exists(other));
      }
    }
  });
}

TEST_CASE("tubectl: a row sets a member, is shown with its value, and repeats if it separates") {
  for_each_subcommand([](const tubectl::Subcommand&, const std::vector<OptionRow>& rows) {
    for (const OptionRow& row : rows) {
      CAPTURE(row.names);
      CHECK((row.assign != nullptr) == (row.names != options::kHelpOption.names));
      CHECK((row.type.kind == ValueType::Kind::flag) == row.type.placeholder.empty());
      CHECK((row.type.kind == ValueType::Kind::choice) == !row.type.choices.empty());
      if (row.separator != '\0') CHECK(row.repeats);
    }
  });
}

TEST_CASE("tubectl: no row but the last positional takes several arguments") {
  for_each_subcommand([](const tubectl::Subcommand&, const std::vector<OptionRow>& rows) {
    bool ended = false;
    for (const OptionRow& row : rows) {
      if (options::split_names(row).positional.empty()) continue;
      CAPTURE(row.names);
      CHECK(!ended);
      ended = row.repeats;
    }
  });
}

TEST_CASE("tubectl: an option without its value and an abbreviation are refused") {
  for_each_subcommand(
      [](const tubectl::Subcommand& subcommand, const std::vector<OptionRow>& rows) {
        for (const OptionRow& row : rows) {
          for (const std::string& name : options::split_names(row).names) {
            CAPTURE(name);
            if (row.type.kind != ValueType::Kind::flag && row.bare_value.empty()) {
              CHECK(mistake_in(subcommand, {name}).ends_with(" missing"));
            }
            const auto shorter = name.substr(0, name.size() - 1);
            const bool is_other = std::ranges::any_of(
                rows, [&](const OptionRow& other) { return options::has_name(other, shorter); });
            if (!name.starts_with("--") || is_other) continue;
            CHECK(mistake_in(subcommand, {shorter}).starts_with("there is no option " + shorter));
          }
        }
      });
}

TEST_CASE("tubed: each flag is split with its value, and is not abbreviated") {
  const auto split = [](const Words& words) { return config::split_flags(pointers(words)); };
  for (const auto& row : config::settings_table()) {
    const auto name = row.flag();
    CAPTURE(name);
    for (const auto& words : {Words{name, "x"}, {name + "=x"}}) {
      const auto given = split(words);
      REQUIRE(given.ok());
      REQUIRE(given.value().size() == 1);
      CHECK(given.value()[0].setting == &row);
      CHECK(given.value()[0].text == "x");
    }
    CHECK(split({name}).error().message.ends_with(" missing"));
    CHECK(!split({name.substr(0, name.size() - 1) + "=x"}).ok());
    if (row.short_flag != '\0') {
      CHECK(split({fmt::format("-{}x", row.short_flag)}).value()[0].setting == &row);
    }
  }
  for (const auto& row : config::options_table()) {
    const auto name =
        row.long_flag.empty() ? fmt::format("-{}", row.short_flag) : std::string(row.long_flag);
    CAPTURE(name);
    const bool takes_value = !row.argument.empty() && !row.argument_is_optional;
    const auto words = takes_value ? Words{name, "x"} : Words{name};
    const auto given = split(words);
    REQUIRE(given.ok());
    CHECK(given.value()[0].option == &row);
    CHECK(given.value()[0].text == (takes_value ? "x" : ""));
  }
}

}  // namespace
}  // namespace tubed::options_test
