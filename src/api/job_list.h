// JobList: the best rows of the pages of list-jobs, by one column.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/list_window.h"
#include "api/operation.h"
#include "commands/job_columns.h"
#include "protocol/block.h"

namespace tubed::api {

class JobList {
 public:
  // The columns by which a list can be sorted. Those that only a filtered list has need a filter.
  static constexpr auto kColumns = [] {
    std::array<std::string_view, commands::kFilteredJobColumns.size() + 1> names{};
    std::ranges::copy(commands::kFilteredJobColumns, names.begin());
    names.back() = commands::kJobTags;
    return names;
  }();

  // Reads the parameters sort, order, from and limit, or returns the problem with a value.
  // `operation` outlives the list, and its line is list-jobs.
  static std::variant<JobList, Problem> make(const Operation& operation, Parameters parameters);

  // The line of the page that begins at this id, or the problem of another parameter.
  std::variant<std::string, Problem> line_from(std::uint64_t id) const;
  // The problem of a line that the command does not take.
  Problem bad_format() const { return api::bad_format(operation_.get(), parameters_); }
  // Adds the rows of a page. Returns `next` of the page. O(rows of the page), amortised.
  std::uint64_t add_page(const protocol::Block& page);
  // {"total":…,"next":…,"looked":…,"jobs":[…]}. `next`: where the next page of the list begins, 0
  // after the last page, or after ListWindow::kMostRows; `total`: the number of rows; `looked`: the
  // number of jobs that the pages have looked at, with filters. O(n log n) in the rows kept.
  std::string to_json();

 private:
  class PageReader;

  // Texts have a place of their own.
  struct Row {
    std::array<std::uint64_t, kColumns.size()> numbers{};
    std::array<std::string, 3> texts;
  };

  JobList(const Operation& operation, Parameters parameters);

  void add_row(std::span<const protocol::Value> values);
  bool comes_before(const Row& a, const Row& b) const;

  std::reference_wrapper<const Operation> operation_;
  Parameters parameters_;  // of the line, without from and limit
  ListWindow window_;
  std::size_t column_ = 0;
  std::span<const std::string_view> columns_ = commands::kJobColumns;  // of the pages
  std::uint64_t total_ = 0;
  std::optional<std::uint64_t> looked_;
  std::vector<Row> rows_;
};

}  // namespace tubed::api
