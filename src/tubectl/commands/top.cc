// tubectl top: shows the server and its tubes, live.
//
// With --once it takes two snapshots, needed for rates, and prints one frame as text. Otherwise
// top/live_view.h runs the screen until the user quits. The locale decides whether graphs use block
// characters; it is set here, before ncurses starts.
#include <chrono>
#include <clocale>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/address.h"
#include "text/numbers.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/json.h"
#include "tubectl/terminal.h"
#include "tubectl/top/frame.h"
#include "tubectl/top/live_view.h"
#include "tubectl/top/model.h"
#include "tubectl/top/text.h"

namespace tubed::tubectl {
namespace {

using std::chrono::steady_clock;
using top::Glyphs;
using top::Model;
using top::Size;

constexpr double kLeastInterval = 0.1;
constexpr double kMostInterval = 3600;

constexpr std::string_view kTopFooter = R"(keys:
  q quit, ? help, arrows or j k select a tube, Enter its details, / filter,
  s sort, r reverse, p pause, K kick, Space freeze

examples:
  tubectl top
  tubectl top --interval 0.5 --sort puts
  tubectl top --filter mail
  tubectl top --once
  tubectl top --once --json)";

struct TopOptions {
  Server server;
  double interval = 1;
  std::string sort = "ready";
  std::string filter;
  bool once = false;
  bool json = false;

  steady_clock::duration pause() const {
    return std::chrono::duration_cast<steady_clock::duration>(
        std::chrono::duration<double>(interval));
  }
};

// Cannot fail: the options were checked when the command line was parsed.
Model make_model(const TopOptions& options) {
  Model model(to_string(options.server.target));
  const auto key = top::sort_key_of(options.sort);
  model.tubes.sort_by(key.value_or(top::SortKey::ready));
  model.tubes.filter(options.filter);
  return model;
}

// The value of COLUMNS or LINES. No value: not set, or not a usable number.
std::optional<std::size_t> size_from(const char* variable) {
  const char* const value = std::getenv(variable);
  if (value == nullptr) return std::nullopt;
  constexpr std::size_t kMost = 10'000;
  const auto number = leading_number<std::size_t>(value);
  return number == 0 || number > kMost ? std::nullopt : std::optional(number);
}

Size size_of_output() {
  Size size;
  winsize window{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 && window.ws_row > 0) {
    size = {window.ws_col, window.ws_row};
  }
  size.columns = size_from("COLUMNS").value_or(size.columns);
  size.rows = size_from("LINES").value_or(size.rows);
  return size;
}

// Removes trailing blanks, which matter only on a screen.
std::string frame_text(const top::Frame& frame) {
  const Paint paint = Paint::for_descriptor(STDOUT_FILENO);
  std::string text;
  for (const top::Line& shown : frame.lines) {
    std::string line;
    for (const top::Span& span : shown.spans()) line += paint(span.style, span.text);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

// One object: the lines of `stats`, the rates, and an object for each shown tube.
std::string as_json(const Model& model) {
  using top::Flow;
  const auto number = [](std::optional<double> value) { return value ? Json(*value) : Json(); };
  Json all{{"server", stats_json(model.server())},
           {"puts-per-second", number(model.rate(Flow::puts))},
           {"reserves-per-second", number(model.rate(Flow::reserves))},
           {"deletes-per-second", number(model.rate(Flow::deletes))},
           {"timeouts-per-second", number(model.rate(Flow::timeouts))},
           {"cpu-percent", number(model.cpu_percent())}};
  std::vector<Json> tubes;
  for (std::size_t i = 0; i < model.tubes.size(); ++i) {
    const top::TubeRow& row = model.tubes[i];
    Json tube{{"name", row.counts.name}};
    for (std::size_t key = 0; key < top::kSortKeys; ++key) {
      const auto count = top::kSortCounts[key];
      if (count != nullptr) tube[top::kSortNames[key]] = row.counts.*count;
    }
    const auto rates = row.rates.value_or(Rates());
    tube["puts-per-second"] = rates.puts;
    tube["deletes-per-second"] = rates.deletes;
    tubes.push_back(std::move(tube));
  }
  all["tubes"] = Json::array(std::move(tubes));
  return to_line(all) + "\n";
}

Result<int> print_once(const TopOptions& options, const Glyphs& glyphs) {
  auto connection = TRY(connect(options.server));
  Model model = make_model(options);
  for (int taken = 0; taken < 2; ++taken) {
    // Rates need two snapshots.
    if (taken > 0) std::this_thread::sleep_for(options.pause());
    auto snapshot = TRY(take_snapshot(connection));
    model.update(std::move(snapshot));
  }
  if (options.json) return print(as_json(model));
  return print(frame_text(top::compose_once(model, glyphs, size_of_output())));
}

Result<int> run_top(const TopOptions& options) {
  std::setlocale(LC_ALL, "");
  const Glyphs glyphs(std::string_view(::nl_langinfo(CODESET)) == "UTF-8");
  if (options.once) return print_once(options, glyphs);
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDOUT_FILENO) != 1) {
    return fail(kExitUsage, "top wants a terminal; tubectl tubes prints once");
  }
  return top::run_live_view(options.server, make_model(options), glyphs, options.pause());
}

constexpr std::array kTopOptions{
    server_option<&TopOptions::server>(),
    kMaxReplyOption,
    option<&TopOptions::interval>({.names = "--interval",
                                   .type = time(kLeastInterval, kMostInterval),
                                   .help = "Time between two refreshes",
                                   .shows_default = true}),
    option<&TopOptions::sort>({.names = "--sort",
                               .type = choice("KEY", top::kSortNames),
                               .help = "Sort the tubes by this column",
                               .shows_default = true}),
    option<&TopOptions::filter>({.names = "--filter",
                                 .type = text("TEXT"),
                                 .help = "Show only tubes with this in their names"}),
    option<&TopOptions::once>(
        {.names = "--once",
         .help = "Print one screen as text and end; its size is that of the terminal, or 80 x 24, "
                 "or what COLUMNS and LINES say"}),
    option<&TopOptions::json>(
        {.names = "--json", .help = "Print JSON, with all tubes", .needs = "--once"}),
};

}  // namespace

const Subcommand& top_command() {
  static constexpr Subcommand kCommand =
      runs<TopOptions, run_top>({.name = "top",
                                 .group = kLookGroup,
                                 .summary = "Watch a server and its tubes, live",
                                 .options = kTopOptions,
                                 .footer = kTopFooter});
  return kCommand;
}

}  // namespace tubed::tubectl
