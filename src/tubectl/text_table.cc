#include "tubectl/text_table.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"

namespace tubed::tubectl {

void TextTable::add(std::vector<Cell> row) {
  TUBED_ASSERT(row.size() == columns_.size());
  rows_.push_back(std::move(row));
}

std::string TextTable::text(const Paint& paint) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = columns_[i].title.size();
    for (const auto& row : rows_) width = std::max(width, row[i].text.size());
    widths.push_back(width);
  }
  std::string text;
  const auto append = [&](std::size_t column, const Cell& cell) {
    const std::string padding(widths[column] - cell.text.size(), ' ');
    const bool right = columns_[column].right;
    const bool last = column + 1 == columns_.size();
    if (column > 0) text.append("  ");
    if (right) text.append(padding);
    text.append(paint(cell.style, cell.text));
    if (!right && !last) text.append(padding);
    if (last) text.push_back('\n');
  };
  for (std::size_t i = 0; i < columns_.size(); ++i) append(i, {columns_[i].title, Style::bold});
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) append(i, row[i]);
  }
  return text;
}

}  // namespace tubed::tubectl
