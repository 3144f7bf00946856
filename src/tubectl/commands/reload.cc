// tubectl reload: has a tubed read its settings, certificates and tokens again (reload).
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "client/stats_block.h"
#include "protocol/reply.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/json.h"

namespace tubed::tubectl {
namespace {

namespace word = protocol::word;

struct ReloadOptions {
  Server server;
  bool json = false;
};

// The texts of "[a, b]".
std::vector<std::string> list_of(std::optional<std::string_view> value) {
  std::vector<std::string> texts;
  std::string_view rest = value.value_or(std::string_view());
  if (rest.size() < 2 || rest.front() != '[' || rest.back() != ']') return texts;
  rest = rest.substr(1, rest.size() - 2);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(", "), rest.size());
    texts.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  return texts;
}

int print_changes(const ReloadOptions& options, const client::StatsBlock& block) {
  const auto changed = list_of(block.text("changed"));
  const auto needs_restart = list_of(block.text("needs-restart"));
  if (options.json) {
    return print(
        to_line({{"changed", Json::array({changed.begin(), changed.end()})},
                 {"needs-restart", Json::array({needs_restart.begin(), needs_restart.end()})}}) +
        "\n");
  }
  std::string text = changed.empty() ? "reloaded: nothing has changed\n"
                                     : fmt::format("reloaded: {}\n", fmt::join(changed, ", "));
  if (!needs_restart.empty())
    text += fmt::format("needs a restart: {}\n", fmt::join(needs_restart, ", "));
  return print(text);
}

Result<int> run_reload(const ReloadOptions& options) {
  auto connection = TRY(connect(options.server));
  const auto reply = TRY(connection.ask("reload"));
  if (reply.is("OK")) return print_changes(options, client::StatsBlock(reply.body));
  if (reply.is(word::kUnknownCommand)) {
    return fail(kExitFailure,
                "reload: the server does not know the command; a tubed reloads on SIGHUP: "
                "systemctl reload tubed");
  }
  if (std::string_view line = reply.line; line.starts_with(word::kNotReloaded)) {
    line.remove_prefix(std::min(word::kNotReloaded.size() + 1, line.size()));
    return fail(kExitFailure, fmt::format("not reloaded, nothing has changed: {}", line));
  }
  return refused("reload", reply);
}

constexpr std::array kReloadOptions{
    server_option<&ReloadOptions::server>(),
    kMaxReplyOption,
    option<&ReloadOptions::json>({.names = "--json", .help = "Print one object"}),
};

}  // namespace

const Subcommand& reload_command() {
  static constexpr Subcommand kCommand = runs<ReloadOptions, run_reload>(
      {.name = "reload",
       .group = kControlGroup,
       .summary = "Have a tubed read its settings and certificates again",
       .options = kReloadOptions,
       .footer = R"(The server reads the files of its settings, certificates and tokens again, as
with SIGHUP. It prints the keys that have changed, and those that need a restart. If
there is a mistake in a file, nothing changes, and it prints the mistake.

examples:
  tubectl reload
  tubectl reload --json)"});
  return kCommand;
}

}  // namespace tubed::tubectl
