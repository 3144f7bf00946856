#include "tests/simulation/commands.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/assert.h"

namespace tubed::simulation {

using commands::ArgumentText;
using commands::Command;

namespace {

// Few enough that clients meet.
constexpr std::array<std::string_view, 4> kTubes = {"default", "a", "b", "c"};
constexpr std::array<std::string_view, 2> kGroups = {"g", "h"};

// Out of a hundred commands; the others are drawn uniformly from all rows.
struct Share {
  std::string_view name;
  unsigned percent;
};
constexpr std::array<Share, 9> kShares = {{{"put", 9},
                                           {"put-in-tube", 13},
                                           {"reserve-with-timeout", 10},
                                           {"reserve-batch", 12},
                                           {"delete", 8},
                                           {"delete-force", 5},
                                           {"flush-tube", 6},
                                           {"truncate", 4},
                                           {"release", 4}}};

std::string an_id(Chance& chance, const Knowledge& known) {
  constexpr std::uint64_t kUnknown = std::uint64_t{1} << 40;
  if (known.recent.empty() || chance.percent(8)) return std::to_string(kUnknown + chance.below(9));
  return std::to_string(chance.one_of(known.recent));
}

std::string some_tags(Chance& chance) {
  std::string tags;
  const auto add = [&](unsigned percent, const std::string& tag) {
    if (chance.percent(percent)) tags.append(tags.empty() ? "" : " ").append(tag);
  };
  // Separate statements: the compiler chooses the order in which arguments of a call are evaluated.
  const bool cools_down = chance.percent(40);
  add(25, fmt::format("idp:k{}{}", chance.below(4), cools_down ? ":1" : ""));
  const std::uint64_t most = chance.between(1, 2);
  add(25, fmt::format("con:c{}:{}", chance.below(3), most));
  const bool buries = chance.percent(50);
  add(15, fmt::format("max:{}{}", chance.between(1, 3), buries ? ":b" : ":delete"));
  add(15, fmt::format("ttl:{}", chance.below(3)));
  add(15, fmt::format("grp:{}", chance.one_of(kGroups)));
  add(10, fmt::format("aft:{}", chance.one_of(kGroups)));
  return tags;
}

std::string some_filters(Chance& chance) {
  static constexpr std::array<std::string_view, 10> kFilters = {
      "body:body%201", "body:xxx", "body:%00",   "age>0",      "age<1",
      "pri>0",         "pri<2",    "failures>0", "tag:idp:k1", "tag:grp:g"};
  std::string filters(chance.one_of(kFilters));
  while (chance.percent(40)) filters.append(" ").append(chance.one_of(kFilters));
  return filters;
}

std::string a_policy(Chance& chance) {
  static constexpr std::array<std::string_view, 8> kPolicies = {
      "max-attempts 3", "max-attempts -", "dead b", "dead -",
      "backoff 1:60:3", "backoff -",      "keep -", "ttl 4294967295"};
  return std::string(chance.one_of(kPolicies));
}

std::string a_word_of(std::string_view words, Chance& chance) {
  std::vector<std::string_view> found;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (end > 0) found.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return std::string(chance.one_of(found));
}

// Short, to end within a life.
std::string a_time(Chance& chance, bool takes_milliseconds) {
  static constexpr std::array<std::string_view, 6> kTimes = {"0", "0", "1", "3ms", "20ms", "60"};
  const std::string_view time = chance.one_of(kTimes);
  return std::string(takes_milliseconds || !time.ends_with("ms") ? time : "1");
}

std::string a_value(const ArgumentText& argument, Chance& chance, const Knowledge& known) {
  const std::string_view type = argument.type;
  constexpr std::string_view kWords = "one of: ";
  if (type.starts_with(kWords)) return a_word_of(type.substr(kWords.size()), chance);
  if (argument.name == "group") return std::string(chance.one_of(kGroups));
  if (type.starts_with("tube name")) return std::string(a_tube(chance));
  if (argument.name == "id") return an_id(chance, known);
  if (type.starts_with("1 to 1000 ids")) {
    std::string ids = an_id(chance, known);
    for (std::uint64_t more = chance.below(4); more > 0; --more) ids += ' ' + an_id(chance, known);
    return ids;
  }
  if (type.starts_with("words with spaces between")) return some_tags(chance);
  if (type.starts_with("filters with a space between")) return some_filters(chance);
  if (type.starts_with("priority and delay")) {
    const std::string delay = a_time(chance, true);
    return fmt::format("{} {}", chance.below(3), delay);
  }
  if (type.starts_with("key of a policy")) return a_policy(chance);
  if (type.starts_with("seconds")) return a_time(chance, type.find("500ms") != type.npos);
  // The capabilities that change replies are chosen when a client connects.
  if (argument.name == "bits") return "0";
  if (type.find("1 to 1000") != type.npos) return std::to_string(chance.between(1, 10));
  if (type.find("1 to 9999") != type.npos) return std::to_string(chance.between(1, 3));
  TUBED_ASSERT(type.find("integer < 2^") != type.npos);
  return std::to_string(chance.below(4));
}

// Sets how long a row may wait with this line.
void set_wait(MadeCommand& made) {
  const std::string_view name = made.row->name;
  if (name == "reserve" || name == "reserve-with-abort") made.waits_for_ever = true;
  const bool waits = name == "reserve-with-timeout" || name == "reserve-batch" || name == "wait";
  if (waits) made.waits = std::chrono::seconds(60);
}

}  // namespace

std::string_view a_tube(Chance& chance) {
  return chance.one_of(kTubes);
}

MadeCommand make_command(Chance& chance, Knowledge& known) {
  unsigned drawn = static_cast<unsigned>(chance.below(100));
  for (const Share& share : kShares) {
    if (drawn < share.percent)
      return make_command(*commands::find_command(share.name), chance, known);
    drawn -= share.percent;
  }
  for (;;) {
    const Command& row = chance.one_of(commands::command_table());
    // `auth` needs roles. A client that quits has no further commands.
    const bool is_rare = row.name == "quit" || row.name == "drain" || row.name == "reserve" ||
                         row.name == "pause-tube" || row.name == "reserve-with-abort";
    if (&row == &commands::auth_command() || (is_rare && !chance.percent(10))) continue;
    return make_command(row, chance, known);
  }
}

MadeCommand make_command(const Command& row, Chance& chance, Knowledge& known) {
  MadeCommand made{.row = &row, .line = std::string(row.name)};
  bool has_body = false;
  for (const ArgumentText& argument : row.arguments) {
    if (argument.optional && chance.percent(50)) break;
    std::string value;
    if (argument.name == "bytes") {
      has_body = true;
      const std::size_t more = chance.percent(5) ? chance.below(9000) : chance.below(12);
      made.body = fmt::format("body {} ", known.puts++) + std::string(more, 'x');
      known.bodies.emplace(made.body, 0);
      value = std::to_string(made.body.size());
    } else if (argument.name == "from" && made.line.ends_with(" next")) {
      value = "0";  // the only page of that list
    } else if (argument.name == "filters" && made.line.find(" next 0 ") != std::string::npos) {
      break;  // it has none
    } else {
      value = a_value(argument, chance, known);
    }
    if (value.empty()) break;
    made.line.append(" ").append(value);
  }
  TUBED_ASSERT(has_body == (row.begin_body != nullptr));
  set_wait(made);
  return made;
}

}  // namespace tubed::simulation
