// --watch: a subcommand that shows a state shows it again every few seconds, until SIGINT, SIGTERM
// or SIGHUP ends the program with exit code 0.
//
// On a terminal each look replaces the last. The terminal's alternate screen is used, and the last
// look stays on the screen when the program ends. On a pipe or in a file the looks follow each
// other, each after a line with its time; in JSON each object has its time under the key "time".
//
// A lost server does not end it: the loss and the return are reported once, on a terminal above the
// last look, otherwise on standard error.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "client/address.h"
#include "client/connection.h"
#include "tubectl/options.h"
#include "tubectl/server.h"

namespace tubed::tubectl {

// `excludes`: another option, if any, that shows nothing that could be watched.
template <auto kWatch>
constexpr OptionRow watch_option(std::string_view excludes = {}) {
  return option<kWatch>({.names = "--watch",
                         .type = time(0.1, 86'400),
                         .help = "Show it again every TIME, 2 s if none is given, until Ctrl-C",
                         .bare_value = "2",
                         .excludes = {excludes}});
}

struct Watching {
  std::optional<double> seconds;  // the value of --watch; no value: look once
  bool json = false;              // print() gets lines of JSON
  std::string title;              // of a terminal: "tubectl stats on 127.0.0.1:11300"
};

// Shows the state by print() and fail(), and returns the exit code. An Error: the server was lost.
using Look = std::function<Result<int>()>;

// Looks once, or again and again. A first look that fails ends it, with what look() returns.
// Precondition of --watch: no other thread exists.
Result<int> look_or_watch(const Watching& watching, const Look& look);

// As look_or_watch(), for a look(client::Connection&) at `server`. The connection is kept between
// two looks, and opened again if the server has closed it.
template <class LookAt>
Result<int> look_or_watch(const Server& server, std::string_view subcommand,
                          const std::optional<double>& seconds, bool json, LookAt look) {
  std::optional<client::Connection> connection;
  const auto look_once = [&]() -> Result<int> {
    if (connection) {
      auto code = look(*connection);
      if (code) return code;
      connection.reset();
    }
    auto opened = TRY(connect(server));
    connection.emplace(std::move(opened));
    auto code = look(*connection);
    if (!code) connection.reset();
    return code;
  };
  return look_or_watch(
      {.seconds = seconds,
       .json = json,
       .title = "tubectl " + std::string(subcommand) + " on " + to_string(server.target)},
      look_once);
}

// The lines of JSON with the member "time" first in each object.
std::string with_time(std::string_view lines, std::string_view time);

}  // namespace tubed::tubectl
