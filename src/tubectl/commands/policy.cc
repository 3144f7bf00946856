// tubectl policy: shows the policy of a tube, or sets one of its values (tube-policy).
//
// The keys, values and origins are the server's own words; a later server may have more. The server
// answers BAD_FORMAT both to an unknown key and to a value that it does not accept; the keys that
// it lists distinguish the two.
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "client/stats_block.h"
#include "protocol/reply.h"
#include "text/suggestion.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/json.h"
#include "tubectl/terminal.h"
#include "tubectl/watch.h"

namespace tubed::tubectl {
namespace {

namespace word = protocol::word;

constexpr std::string_view kPolicyFooter =
    R"(Without a key: all keys, their values, and where these come from: default, the
settings of the server (file), or a client that has set them (wire). What is set
stays when the tube is empty. The server must have tube-policy: beanstalkd has not.

examples:
  tubectl policy mail
  tubectl policy mail max-attempts 5
  tubectl policy mail dead mail-dead
  tubectl policy mail max-attempts -)";

// The line after a key's line has the origin of its value. Its key has this suffix.
constexpr std::string_view kOriginSuffix = "-from";

struct PolicyOptions {
  Server server;
  std::string tube;
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::optional<double> watch;
  bool json = false;
};

struct PolicyLine {
  std::string key;
  Json value;
  std::string origin;
};

std::vector<PolicyLine> policy_lines(std::string_view block) {
  std::vector<PolicyLine> lines;
  const Json values = stats_json(client::StatsBlock(block));
  for (const auto& [key, value] : values.members()) {
    const std::string* const text = value.text();
    if (!lines.empty() && key == lines.back().key + std::string(kOriginSuffix) && text != nullptr) {
      lines.back().origin = *text;
    } else {
      lines.push_back({key, value, ""});
    }
  }
  return lines;
}

int unknown_command() {
  return fail(kExitFailure, "policy: the server does not know tube-policy");
}

int print_policy(const PolicyOptions& options, const std::vector<PolicyLine>& lines) {
  std::string text;
  TextTable table({{"key"}, {"value"}, {"origin"}});
  for (const auto& [key, value, origin] : lines) {
    if (options.json) {
      text += to_line({{"tube", options.tube}, {"key", key}, {"value", value}, {"origin", origin}});
      text += "\n";
    } else {
      const Style style = origin == "default" ? Style::dim : Style::plain;
      const std::string* const shown = value.text();
      table.add({{key}, {shown != nullptr ? *shown : to_line(value), style}, {origin, style}});
    }
  }
  return print(options.json ? text : table.text(Paint::for_descriptor(STDOUT_FILENO)));
}

Result<client::Reply> ask_policy(client::Connection& connection, const std::string& tube) {
  return connection.ask(fmt::format("tube-policy {}", tube));
}

// Explains the reply BAD_FORMAT.
Result<int> report_malformed(const PolicyOptions& options, client::Connection& connection) {
  const auto reply = TRY(ask_policy(connection, options.tube));
  const auto lines = reply.is("OK") ? policy_lines(reply.body) : std::vector<PolicyLine>();
  std::vector<std::string> keys;
  for (const PolicyLine& line : lines) keys.push_back(line.key);
  if (std::ranges::find(keys, *options.key) != keys.end()) {
    return fail(kExitFailure,
                fmt::format("policy: \"{}\" is no value of {}", *options.value, *options.key));
  }
  return fail(kExitFailure, fmt::format("policy: there is no key {}{}", *options.key,
                                        suggestion(*options.key, keys)));
}

// A space would start another argument, and a line end would end the command.
bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

Result<int> set_policy(const PolicyOptions& options, client::Connection& connection) {
  const auto reply = TRY(connection.ask(
      fmt::format("tube-policy {} {} {}", options.tube, *options.key, *options.value)));
  if (reply.is("POLICY_SET")) return 0;
  if (reply.is(word::kUnknownCommand)) return unknown_command();
  if (reply.is(word::kBadFormat)) return report_malformed(options, connection);
  if (reply.is(word::kOutOfMemory)) {
    return fail(kExitFailure,
                "policy: the server keeps no more values than limits.policies (OUT_OF_MEMORY)");
  }
  return refused("policy", reply);
}

Result<int> run_policy(const PolicyOptions& options) {
  if (options.key && !options.value) {
    return fail(kExitUsage, "VALUE is missing: that of the key, or - to take it away");
  }
  for (const auto& word : {options.key, options.value}) {
    if (word && !is_word(*word)) {
      return fail(kExitUsage, "a key and a value are words without spaces");
    }
  }
  if (options.key) {
    auto connection = TRY(connect(options.server));
    return set_policy(options, connection);
  }
  return look_or_watch(options.server, "policy", options.watch, options.json,
                       [&](client::Connection& connection) -> Result<int> {
                         const auto reply = TRY(ask_policy(connection, options.tube));
                         if (reply.is("OK")) return print_policy(options, policy_lines(reply.body));
                         return reply.is(word::kUnknownCommand) ? unknown_command()
                                                                : refused("policy", reply);
                       });
}

constexpr std::array kPolicyOptions{
    tube_option_or_word<&PolicyOptions::tube>("The tube; it need not exist", true),
    option<&PolicyOptions::key>(
        {.names = "KEY", .type = text("KEY"), .help = "Set this key: max-attempts, ttl, ..."}),
    option<&PolicyOptions::value>(
        {.names = "VALUE", .type = text("VALUE"), .help = "Its value; - takes it away"}),
    server_option<&PolicyOptions::server>(),
    kMaxReplyOption,
    watch_option<&PolicyOptions::watch>("KEY"),
    option<&PolicyOptions::json>(
        {.names = "--json", .help = "Print an object for each key", .excludes = {"KEY"}}),
};

}  // namespace

const Subcommand& policy_command() {
  static constexpr Subcommand kCommand =
      runs<PolicyOptions, run_policy>({.name = "policy",
                                       .group = kControlGroup,
                                       .summary = "Show the policy of a tube, or set a value of it",
                                       .options = kPolicyOptions,
                                       .footer = kPolicyFooter,
                                       .usage = "[OPTIONS] TUBE [KEY VALUE]"});
  return kCommand;
}

}  // namespace tubed::tubectl
