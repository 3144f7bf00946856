// TubeList: the best rows of the pages of stats-tubes, by one column.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "api/list_window.h"
#include "api/problem.h"
#include "api/target.h"
#include "protocol/block.h"
#include "stats/tube_columns.h"

namespace tubed::api {

class TubeList {
 public:
  // Reads the parameters filter, sort, order, from and limit, or returns the problem with a value.
  static std::variant<TubeList, Problem> make(const Parameters& parameters);

  // Adds the rows of a page whose names have the text of the filter. Returns `next` of the page.
  // O(rows of the page), amortised.
  std::uint64_t add_page(const protocol::Block& page);
  // {"total":…,"next":…,"tubes":[…]}. `next`: where the next page of the list begins, 0 after the
  // last page, or after ListWindow::kMostRows; `total`: the number of rows. O(n log n) in the rows
  // kept.
  std::string to_json();

 private:
  class PageReader;

  struct Row {
    std::string name;
    std::array<std::uint64_t, stats::kListedTubeColumns - 1> numbers{};  // of the other columns
  };

  std::uint64_t number_of(const Row& row) const {
    return column_ == 0 ? 0 : row.numbers[column_ - 1];
  }
  void add_row(std::span<const protocol::Value> values);
  bool comes_before(const Row& a, const Row& b) const;

  std::string filter_;
  std::size_t column_ = 0;  // 0: the name
  ListWindow window_;
  std::uint64_t total_ = 0;
  std::vector<Row> rows_;
};

}  // namespace tubed::api
