// tubectl list: lists the jobs of a tube, page by page (list-jobs).
//
// In a page, the words after the last column are the tags of the job.
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "protocol/text_keys.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/jobs/counts.h"
#include "tubectl/jobs/filters.h"
#include "tubectl/json.h"
#include "tubectl/list_page.h"
#include "tubectl/snapshot.h"
#include "tubectl/terminal.h"
#include "tubectl/watch.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kListFooter =
    R"(In the order of their ids; with --next, ready jobs in the order in which they are
given. The server must have list-jobs, for a filter with filters: beanstalkd has not.
If there are more jobs than the table shows, a line on standard error says so.

examples:
  tubectl list mail
  tubectl list mail --state buried --count 20
  tubectl list mail --grep error --older-than 1h
  tubectl list mail --next --json)";

constexpr std::array<std::string_view, 5> kStates = {"ready", "delayed", "buried", "reserved",
                                                     "held"};
constexpr std::uint64_t kPageJobs = 1000;

struct ListOptions {
  Server server;
  std::string tube;
  std::string state = "all";
  std::uint64_t from = 0;
  std::uint64_t count = 100;
  bool next = false;
  JobFilters filters;
  std::optional<double> watch;
  bool json = false;
};

// The number of the tube's jobs in the state.
std::uint64_t count_in(const TubeCounts& tube, std::string_view state) {
  if (state == "ready" || state == "next") return tube.ready;
  if (state == "delayed") return tube.delayed - std::min(tube.delayed, tube.held);
  if (state == "buried") return tube.buried;
  if (state == "reserved") return tube.reserved;
  if (state == "held") return tube.held;
  return tube.ready + tube.delayed + tube.buried + tube.reserved;
}

// Collects the lines of the pages. Prints JSON page by page; prints the table at the end.
class List {
 public:
  explicit List(const ListOptions& options) : options_(options) {}

  Result<int> run(client::Connection& connection) {
    const std::string_view listed = options_.next ? "next" : std::string_view(options_.state);
    const std::string filters = options_.filters.words();
    std::uint64_t from = options_.from;
    std::uint64_t left = options_.count;
    do {
      const std::uint64_t limit = std::min(left, kPageJobs);
      const auto reply = TRY(connection.ask(
          fmt::format("list-jobs {} {} {} {}{}", options_.tube, listed, from, limit, filters)));
      if (reply.is("UNKNOWN_COMMAND")) {
        return fail(kExitFailure, "list: the server does not know list-jobs");
      }
      if (!reply.is("OK")) return refused("list", reply);
      auto page = read_page(reply.body);
      if (!page) return fail(kExitUnavailable, "list: the reply has no columns");
      from = page->next;
      looked_ += page->looked;
      columns_ = std::move(page->columns);
      left -= std::min<std::uint64_t>(left, page->lines.size());
      for (auto& words : page->lines) {
        if (const int code = take(std::move(words)); code != 0) return code;
      }
    } while (from != 0 && left > 0 && !options_.next);
    if (options_.json) return 0;
    if (const int code = print_table(); code != 0) return code;
    if (from != 0 || options_.next) TRY(report_rest(connection, listed, from));
    return 0;
  }

 private:
  // Says on standard error that there are more jobs, if there are.
  Result<void> report_rest(client::Connection& connection, std::string_view listed, JobId from) {
    const auto counts = TRY(take_snapshot(connection, {options_.tube}));
    const TubeCounts* const tube = counts.find(options_.tube);
    const std::uint64_t there = tube == nullptr ? 0 : count_in(*tube, listed);
    const std::string next =
        from == 0 ? "" : fmt::format("; --from {} shows those that follow", from);
    if (options_.filters.any()) {
      fail(0,
           fmt::format("{} found among {} of {}{}", jobs_in_words(shown_), looked_, there, next));
    } else if (there > shown_) {
      fail(0, fmt::format("{} of {} jobs{}", shown_, there, next));
    }
    return {};
  }

  int take(std::vector<std::string> words) {
    ++shown_;
    if (!options_.json) {
      jobs_.push_back(std::move(words));
      return 0;
    }
    Json job{{"tube", options_.tube}};
    for (std::size_t i = 0; i < std::min(words.size(), columns_.size()); ++i) {
      job[columns_[i]] =
          protocol::is_text_column(columns_[i]) ? Json(words[i]) : number_or_text(words[i]);
    }
    if (words.size() > columns_.size()) job["tags"] = tags_of(words);
    return print(to_line(job) + "\n");
  }

  std::string tags_of(const std::vector<std::string>& words) const {
    std::string tags;
    for (std::size_t i = columns_.size(); i < words.size(); ++i) {
      tags += (tags.empty() ? "" : " ") + words[i];
    }
    return tags;
  }

  int print_table() const {
    std::vector<TextTable::Column> columns;
    for (const std::string& title : columns_) {
      columns.push_back({title, title != "state" && !protocol::is_text_column(title)});
    }
    columns.push_back({"tags", false});
    TextTable table(columns);
    for (const auto& words : jobs_) {
      std::vector<TextTable::Cell> row;
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        row.push_back({i < words.size() ? words[i] : "", Style::plain});
      }
      row.push_back({tags_of(words), Style::plain});
      table.add(std::move(row));
    }
    return print(table.text(Paint::for_descriptor(STDOUT_FILENO)));
  }

  const ListOptions& options_;
  std::uint64_t shown_ = 0;
  std::uint64_t looked_ = 0;  // with filters
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> jobs_;
};

Result<int> run_list(const ListOptions& options) {
  if (options.next && options.from != 0) {
    return fail(kExitUsage, "--next begins with the next job; it has no --from");
  }
  if (options.next && options.filters.any()) {
    return fail(kExitUsage, "--next takes no filters; --state ready does");
  }
  return look_or_watch(options.server, "list", options.watch, options.json,
                       [&](client::Connection& connection) -> Result<int> {
                         if (options.filters.any()) {
                           const auto known = demand_capability(connection, "list",
                                                                kFilterCapability, kFilterForm);
                           if (!known || *known != 0) return known;
                         }
                         return List(options).run(connection);
                       });
}

constexpr std::array kListOptions{
    tube_option_or_word<&ListOptions::tube>("Whose jobs", true),
    server_option<&ListOptions::server>(),
    kMaxReplyOption,
    option<&ListOptions::state>({.names = "--state",
                                 .type = choice("STATE", kStates),
                                 .help = "Only jobs in this state; held: by a group"}),
    option<&ListOptions::next>({.names = "--next",
                                .help = "Ready jobs, in the order in which they are given",
                                .excludes = {"--state"}}),
    grep_option<&ListOptions::filters>(),
    older_option<&ListOptions::filters>(),
    newer_option<&ListOptions::filters>(),
    priority_over_option<&ListOptions::filters>(),
    priority_below_option<&ListOptions::filters>(),
    failures_option<&ListOptions::filters>(),
    tag_option<&ListOptions::filters>(),
    option<&ListOptions::from>(
        {.names = "--from", .type = count(0, UINT64_MAX, "ID"), .help = "Begin with this id"}),
    option<&ListOptions::count>(
        {.names = "--count", .type = count(1), .help = "At most this many [100]"}),
    watch_option<&ListOptions::watch>(),
    json_option<&ListOptions::json>("Print an object for each job"),
};

}  // namespace

const Subcommand& list_command() {
  static constexpr Subcommand kCommand = runs<ListOptions, run_list>({.name = "list",
                                                                      .group = kLookGroup,
                                                                      .summary = "List jobs",
                                                                      .options = kListOptions,
                                                                      .footer = kListFooter});
  return kCommand;
}

}  // namespace tubed::tubectl
