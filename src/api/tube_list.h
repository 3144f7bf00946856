// TubeList: the best rows of the pages of stats-tubes, by one column.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "api/problem.h"
#include "api/target.h"
#include "protocol/block.h"
#include "stats/tube_columns.h"

namespace tubed::api {

class TubeList {
 public:
  // A list reaches this far: the rows before it are kept while the pages are read.
  static constexpr std::uint64_t kMostRows = 10'000;

  // Reads the parameters filter, sort, order, from and limit, or returns the problem with a value.
  static std::variant<TubeList, Problem> make(const Parameters& parameters);

  // Adds the rows of a page whose names have the text of the filter. Returns `next` of the page.
  // O(rows of the page), amortised.
  std::uint64_t add_page(const protocol::Block& page);
  // {"total":…,"next":…,"tubes":[…]}. `next`: where the next page of the list begins, 0 after the
  // last page, or after kMostRows; `total`: the number of rows. At most O(n log n) in kMostRows.
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
  void keep_best();

  std::string filter_;
  std::size_t column_ = 0;  // 0: the name
  bool descending_ = false;
  std::uint64_t from_ = 0;
  std::uint64_t limit_ = 100;
  std::uint64_t total_ = 0;
  std::vector<Row> rows_;
};

}  // namespace tubed::api
