// tubectl list: lists the jobs of a tube, page by page (list-jobs).
//
// In a page, the words after the last column are the tags of the job.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <unistd.h>

#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/json.h"
#include "tubectl/list_page.h"
#include "tubectl/terminal.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kListFooter =
    R"(In the order of their ids; with --next, ready jobs in the order in which they are
given. The server must have list-jobs: beanstalkd has not.

examples:
  tubectl list mail
  tubectl list mail --state buried --count 20
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
  bool json = false;
};

// Collects the lines of the pages. Prints JSON page by page; prints the table at the end.
class List {
 public:
  explicit List(const ListOptions& options) : options_(options) {}

  Result<int> run(client::Connection& connection) {
    const std::string_view listed = options_.next ? "next" : std::string_view(options_.state);
    std::uint64_t from = options_.from;
    std::uint64_t left = options_.count;
    do {
      const std::uint64_t limit = std::min(left, kPageJobs);
      const auto reply = TRY(
          connection.ask(fmt::format("list-jobs {} {} {} {}", options_.tube, listed, from, limit)));
      if (reply.is("UNKNOWN_COMMAND")) {
        return fail(kExitFailure, "list: the server does not know list-jobs");
      }
      if (!reply.is("OK")) return refused("list", reply);
      auto page = read_page(reply.body);
      if (!page) return fail(kExitUnavailable, "list: the reply has no columns");
      from = page->next;
      columns_ = std::move(page->columns);
      left -= std::min<std::uint64_t>(left, page->lines.size());
      for (auto& words : page->lines) {
        if (const int code = take(std::move(words)); code != 0) return code;
      }
    } while (from != 0 && left > 0 && !options_.next);
    return options_.json ? 0 : print_table();
  }

 private:
  int take(std::vector<std::string> words) {
    if (!options_.json) {
      jobs_.push_back(std::move(words));
      return 0;
    }
    Json job{{"tube", options_.tube}};
    for (std::size_t i = 0; i < std::min(words.size(), columns_.size()); ++i) {
      std::string key = columns_[i];
      std::ranges::replace(key, '-', '_');
      job[key == "pri" ? "priority" : key] = number_or_text(words[i]);
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
    for (const std::string& title : columns_) columns.push_back({title, title != "state"});
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
  std::vector<std::string> columns_;
  std::vector<std::vector<std::string>> jobs_;
};

Result<int> run_list(const ListOptions& options) {
  if (options.next && options.from != 0) {
    return fail(kExitUsage, "--next begins with the next job; it has no --from");
  }
  auto connection = TRY(connect(options.server));
  return List(options).run(connection);
}

constexpr std::array kListOptions{
    tube_option_or_word<&ListOptions::tube>("Whose jobs", true),
    server_option<&ListOptions::server>(),
    kMaxReplyOption,
    option<&ListOptions::state>(
        {.names = "--state",
         .type = choice("STATE", kStates),
         .help = "Only ready, delayed, buried or reserved jobs, or those held by a group"}),
    option<&ListOptions::next>({.names = "--next",
                                .help = "Ready jobs, in the order in which they are given",
                                .excludes = {"--state"}}),
    option<&ListOptions::from>(
        {.names = "--from", .type = count(0, UINT64_MAX, "ID"), .help = "Begin with this id"}),
    option<&ListOptions::count>(
        {.names = "--count", .type = count(1), .help = "At most this many [100]"}),
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
