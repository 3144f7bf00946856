#include "tubectl/subcommand.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "client/stats_block.h"
#include "client/system_error.h"
#include "engine/types.h"
#include "protocol/arguments.h"
#include "protocol/reply.h"
#include "tubectl/exit_codes.h"
#include "tubectl/suggestion.h"
#include "tubectl/values.h"

namespace tubed::tubectl {
namespace {

namespace word = protocol::word;

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kMeanings{{
    {word::kBuried, "the server had no memory to queue the job, and has buried it"},
    {word::kDraining, "the server is draining: it takes no jobs"},
    {word::kOutOfMemory, "the server has no room"},
    {word::kJobTooBig, "the job is larger than the server takes"},
    {word::kTimedOut, "nothing came in time"},
    {word::kDeadlineSoon, "a job that is held is about to run out of time"},
    {word::kBadFormat, "the server does not understand it"},
    {word::kUnknownCommand, "the server does not know that command"},
}};

}  // namespace

void add_server_option(CLI::App& app, Server& server) {
  app.add_option("-s,--server", server.text,
                 "HOST, HOST:PORT, [IPV6]:PORT, unix:PATH or an absolute path")
      ->type_name("ADDRESS")
      ->envname("TUBED_SERVER")
      ->check([](const std::string& text) {
        const auto address = client::parse_address(text);
        return address ? std::string() : address.error().message;
      })
      ->capture_default_str();
  app.add_option_function<std::uint64_t>(
         "--max-reply", [](std::uint64_t bytes) { client::limit_replies(bytes); },
         "Take no larger reply from the server [256MiB]")
      ->type_name("SIZE")
      ->transform(is_size(0, client::kMaxReplyBytesCeiling));
}

Result<client::Connection> connect(const Server& server) {
  auto address = TRY(client::parse_address(server.text));
  return client::Connection::open(address);
}

void add_json_flag(CLI::App& app, bool& json) {
  app.add_flag("--json", json, "Print JSON");
}

void add_raw_flag(CLI::App& app, bool& raw) {
  app.add_flag("--raw", raw, "Print bodies byte for byte on a terminal, too");
}

CLI::Validator is_tube() {
  return CLI::Validator(
      [](std::string& text) {
        return protocol::is_tube_name(text) ? std::string()
                                            : fmt::format("\"{}\" is not a tube's name", text);
      },
      "");
}

CLI::Option* add_tubes(CLI::App& app, std::vector<std::string>& tubes, const std::string& meaning) {
  return app.add_option("-t,--tube,TUBE", tubes, meaning)->check(is_tube())->type_name("TUBE");
}

std::string no_such_option(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::string name = word.substr(0, word.find('='));
  return fmt::format("there is no option {}{}", name, did_you_mean(name, names));
}

int fail(int code, const std::string& reason) {
  std::fprintf(stderr, "tubectl: %s\n", reason.c_str());
  return code;
}

std::string meaning_of(const client::Reply& answer, std::string_view not_found) {
  if (answer.is(word::kNotFound)) return fmt::format("{} ({})", not_found, answer.line);
  const auto meaning = std::ranges::find(kMeanings, answer.word(),
                                         &std::pair<std::string_view, std::string_view>::first);
  return meaning == kMeanings.end() ? fmt::format("the server answered \"{}\"", answer.line)
                                    : fmt::format("{} ({})", meaning->second, answer.line);
}

int refused(const std::string& attempt, const client::Reply& answer, std::string_view not_found) {
  return fail(kExitFailure, fmt::format("{}: {}", attempt, meaning_of(answer, not_found)));
}

Result<int> demand(client::Connection& connection, const std::string& command,
                   std::string_view due) {
  const auto answer = TRY(connection.ask(command));
  return answer.is(due) ? 0 : refused(command, answer);
}

Result<std::variant<std::uint64_t, client::Reply>> ask_largest_job(client::Connection& connection) {
  using Outcome = std::variant<std::uint64_t, client::Reply>;
  auto answer = TRY(connection.ask("stats"));
  if (!answer.is("OK")) return Outcome(std::move(answer));
  return Outcome(
      client::StatsBlock(answer.body).number("max-job-size").value_or(kMaxJobBytesCeiling));
}

int print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return 0;
  }
  return fail(kExitIo, client::system_error("cannot write to standard output").message);
}

}  // namespace tubed::tubectl
