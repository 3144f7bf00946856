// TubeList: the best rows of the pages of stats-tubes, by one column.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/problem.h"
#include "api/target.h"

namespace tubed::api {

class TubeList {
 public:
  // A list reaches this far: the rows before it are kept while the pages are read.
  static constexpr std::uint64_t kMostRows = 10'000;

  // From the parameters filter, sort, order, from and limit. The problem: a value that they do not
  // take.
  static std::variant<TubeList, Problem> make(const Parameters& parameters);

  // Adds the rows of a page whose names have the text of the filter. Returns `next` of the page.
  // O(rows of the page), amortised.
  std::uint64_t add_page(std::string_view block);
  // {"total":…,"next":…,"tubes":[…]}. `next`: from where the next page of the list begins, 0 after
  // the last, or after kMostRows; `total`: how many rows there are. O(n log n) in kMostRows at
  // most.
  std::string to_json();

 private:
  struct Row {
    std::uint64_t number = 0;  // of the column, if that has numbers
    std::size_t name_bytes = 0;
    std::string line;

    std::string_view name() const { return std::string_view(line).substr(0, name_bytes); }
  };

  bool comes_before(const Row& a, const Row& b) const;
  void keep_best();

  std::string filter_;
  std::size_t column_ = 0;  // 0: the name
  bool descending_ = false;
  std::uint64_t from_ = 0;
  std::uint64_t limit_ = 100;
  std::uint64_t total_ = 0;
  std::string columns_;
  std::vector<Row> rows_;
};

}  // namespace tubed::api
