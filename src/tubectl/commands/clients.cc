// tubectl clients: lists the clients of a server, page by page (list-clients).
//
// In a page, the word after the last column is the tls-name of the client.
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "protocol/text_keys.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/json.h"
#include "tubectl/list_page.h"
#include "tubectl/terminal.h"
#include "tubectl/watch.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kClientsFooter =
    R"(waiting: 1 in a reserve or a wait. held: how many jobs it holds. idle: for how many
seconds it has sent nothing. A token whose role is limited to some tubes shows the
clients of its role. The server must have list-clients: beanstalkd has not.

examples:
  tubectl clients
  tubectl clients --json
  tubectl clients --watch)";

struct ClientsOptions {
  Server server;
  std::optional<double> watch;
  bool json = false;
};

using ClientWords = std::vector<std::string>;

constexpr std::string_view kTlsName = "tls-name";

std::string client_as_json(const ClientWords& columns, const ClientWords& words) {
  Json client;
  for (std::size_t i = 0; i < std::min(words.size(), columns.size()); ++i) {
    client[columns[i]] =
        protocol::is_text_column(columns[i]) ? Json(words[i]) : number_or_text(words[i]);
  }
  if (words.size() > columns.size()) client[std::string(kTlsName)] = words[columns.size()];
  return to_line(client) + "\n";
}

// The column of names only if a client has one.
int print_clients(ClientWords columns, const std::vector<ClientWords>& clients) {
  const bool has_names = std::ranges::any_of(
      clients, [&](const ClientWords& words) { return words.size() > columns.size(); });
  if (has_names) columns.emplace_back(kTlsName);
  std::vector<TextTable::Column> titles;
  for (const std::string& column : columns)
    titles.push_back({column, !protocol::is_text_column(column)});
  TextTable table(titles);
  for (const ClientWords& words : clients) {
    std::vector<TextTable::Cell> row;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      row.push_back({i < words.size() ? words[i] : "", Style::plain});
    }
    table.add(std::move(row));
  }
  return print(table.text(Paint::for_descriptor(STDOUT_FILENO)));
}

// Prints JSON page by page; prints the table at the end.
Result<int> show_clients(const ClientsOptions& options, client::Connection& connection) {
  ClientWords columns;
  std::vector<ClientWords> clients;
  std::uint64_t from = 0;
  do {
    const auto reply = TRY(connection.ask(fmt::format("list-clients {} 1000", from)));
    if (reply.is("UNKNOWN_COMMAND")) {
      return fail(kExitFailure, "clients: the server does not know list-clients");
    }
    if (!reply.is("OK")) return refused("clients", reply);
    auto page = read_page(reply.body);
    if (!page) return fail(kExitUnavailable, "clients: the reply has no columns");
    from = page->next;
    columns = std::move(page->columns);
    for (ClientWords& words : page->lines) {
      if (!options.json) {
        clients.push_back(std::move(words));
      } else if (const int code = print(client_as_json(columns, words)); code != 0) {
        return code;
      }
    }
  } while (from != 0);
  return options.json ? 0 : print_clients(columns, clients);
}

Result<int> run_clients(const ClientsOptions& options) {
  return look_or_watch(
      options.server, "clients", options.watch, options.json,
      [&](client::Connection& connection) { return show_clients(options, connection); });
}

constexpr std::array kClientsOptions{
    server_option<&ClientsOptions::server>(),
    kMaxReplyOption,
    watch_option<&ClientsOptions::watch>(),
    json_option<&ClientsOptions::json>("Print an object for each client"),
};

}  // namespace

const Subcommand& clients_command() {
  static constexpr Subcommand kCommand =
      runs<ClientsOptions, run_clients>({.name = "clients",
                                         .group = kLookGroup,
                                         .summary = "List the connected clients",
                                         .options = kClientsOptions,
                                         .footer = kClientsFooter});
  return kCommand;
}

}  // namespace tubed::tubectl
