// ListWindow: the rows of a sorted list that a request asks for. The list is sorted while its pages
// are read, and only the rows that may be in the window are kept.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "api/problem.h"
#include "api/target.h"

namespace tubed::api {

struct ListWindow {
  // A sorted list reaches this far.
  static constexpr std::uint64_t kMostRows = 10'000;
  static constexpr std::uint64_t kMostLimit = 1000;

  // Reads the parameters order, from and limit, or returns the problem with a value.
  std::optional<Problem> read(const Parameters& parameters);

  std::uint64_t end() const { return from + limit; }
  // Where the next window of a list of `total` rows begins, 0 after the last, or after kMostRows.
  std::uint64_t next(std::uint64_t total) const {
    return end() < std::min(total, kMostRows) ? end() : 0;
  }

  bool descending = false;
  std::uint64_t from = 0;
  std::uint64_t limit = 100;
};

// Drops rows that cannot be in the window, if there are many: at most twice the rows up to its end,
// and a page, stay. The order of the rest is lost. O(rows of a page), amortised.
template <class Row, class Before>
void keep_best(std::vector<Row>& rows, const ListWindow& window, const Before& comes_before) {
  if (rows.size() <= 2 * window.end() + ListWindow::kMostLimit) return;
  const auto kept = static_cast<std::ptrdiff_t>(window.end());
  std::ranges::nth_element(rows, rows.begin() + kept, comes_before);
  rows.resize(static_cast<std::size_t>(kept));
}

}  // namespace tubed::api
