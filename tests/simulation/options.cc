#include "tests/simulation/options.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tests/simulation/commands.h"
#include "text/numbers.h"

namespace tubed::simulation {

namespace {

using Milliseconds = std::chrono::milliseconds;

// Calls take(piece) for each piece between commas.
template <class Take>
void for_each_piece(std::string_view list, const Take& take) {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    take(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
}

// Parses `none`, or numbers separated by commas.
Kept kept_in(std::string_view list) {
  Kept kept(std::in_place);
  if (list == "none") return kept;
  for_each_piece(list, [&kept](std::string_view piece) { kept->insert(leading_number(piece)); });
  return kept;
}

std::string text_of(const Kept& kept) {
  return kept->empty() ? "none" : fmt::format("{}", fmt::join(*kept, ","));
}

// Parses client-2:31-42,client-3:1-7: the first and last commands that each client sends.
std::map<std::string, Range> commands_in(std::string_view list) {
  std::map<std::string, Range> commands;
  for_each_piece(list, [&commands](std::string_view piece) {
    const std::size_t colon = std::min(piece.rfind(':'), piece.size());
    const std::string_view range = piece.substr(std::min(colon + 1, piece.size()));
    const std::size_t dash = std::min(range.find('-'), range.size());
    const std::string_view last = dash < range.size() ? range.substr(dash + 1) : range;
    commands[std::string(piece.substr(0, colon))] = {.first = leading_number(range),
                                                     .last = leading_number(last)};
  });
  return commands;
}

std::string text_of(const std::map<std::string, Range>& commands) {
  std::vector<std::string> pieces;
  for (const auto& [client, range] : commands)
    pieces.push_back(fmt::format("{}:{}-{}", client, range.first, range.last));
  return fmt::format("{}", fmt::join(pieces, ","));
}

struct Flag {
  std::string_view word;
  bool LifeOptions::*option;
  bool value;
};
constexpr std::array<Flag, 6> kSwitches = {{{"--memory", &LifeOptions::has_journal, false},
                                            {"--operated", &LifeOptions::operated, true},
                                            {"--roles", &LifeOptions::has_roles, true},
                                            {"--http", &LifeOptions::has_http, true},
                                            {"--busy", &LifeOptions::is_busy, true},
                                            {"--unsynced", &LifeOptions::is_unsynced, true}}};

struct Count {
  std::string_view word;
  unsigned LifeOptions::*option;
};
constexpr std::array<Count, 3> kCounts = {{{"--clients", &LifeOptions::clients},
                                           {"--ledgers", &LifeOptions::ledgers},
                                           {"--models", &LifeOptions::models}}};

}  // namespace

bool take_option(std::string_view word, LifeOptions& options) {
  Reductions& reductions = options.reductions;
  for (const Flag& flag : kSwitches) {
    if (word != flag.word) continue;
    options.*flag.option = flag.value;
    return true;
  }
  if (word == "--calm") {
    reductions.is_calm = true;
    return true;
  }
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = word.substr(equals + 1);
  for (const Count& count : kCounts) {
    if (name != count.word) continue;
    options.*count.option = static_cast<unsigned>(leading_number(value));
    return true;
  }
  if (name == "--milliseconds") {
    options.duration = Milliseconds(leading_number(value));
  } else if (name == "--until") {
    options.until = value;
  } else if (name == "--without-clients") {
    for_each_piece(value,
                   [&reductions](std::string_view piece) { reductions.left_out.emplace(piece); });
  } else if (name == "--commands") {
    reductions.commands = commands_in(value);
  } else if (name == "--ends") {
    reductions.ends = kept_in(value);
  } else if (name == "--acts") {
    reductions.acts = kept_in(value);
  } else {
    return false;
  }
  return true;
}

std::string words_of(const LifeOptions& options) {
  const LifeOptions usual;
  const Reductions& reductions = options.reductions;
  std::string words;
  const auto add = [&words](std::string_view name, const std::string& value) {
    words += fmt::format(" {}={}", name, value);
  };
  if (options.duration != usual.duration)
    add("--milliseconds", fmt::to_string(options.duration / Milliseconds(1)));
  for (const Count& count : kCounts) {
    if (options.*count.option != usual.*count.option)
      add(count.word, fmt::to_string(options.*count.option));
  }
  for (const Flag& flag : kSwitches) {
    if (options.*flag.option == flag.value) words += fmt::format(" {}", flag.word);
  }
  if (!options.until.empty()) words += fmt::format(" '--until={}'", options.until);
  if (!reductions.left_out.empty())
    add("--without-clients", fmt::format("{}", fmt::join(reductions.left_out, ",")));
  if (!reductions.commands.empty()) add("--commands", text_of(reductions.commands));
  if (reductions.ends) add("--ends", text_of(reductions.ends));
  if (reductions.acts) add("--acts", text_of(reductions.acts));
  if (reductions.is_calm) words += " --calm";
  return words;
}

std::string Reductions::word_for(std::string name) {
  std::ranges::replace(name, ' ', '-');
  return name;
}

Range Reductions::commands_of(const std::string& client) const {
  const auto found = commands.find(word_for(client));
  return found == commands.end() ? Range{} : found->second;
}

}  // namespace tubed::simulation
