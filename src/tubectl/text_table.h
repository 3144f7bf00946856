// TextTable: rows in columns, as wide as what stands in them.
#pragma once

#include <string>
#include <vector>

#include "tubectl/terminal.h"

namespace tubed::tubectl {

class TextTable {
 public:
  struct Column {
    std::string title;
    bool right = false;  // numbers
  };
  struct Cell {
    std::string text;
    Style style = Style::plain;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Precondition: as many cells as columns.
  void add(std::vector<Cell> row);
  // The titles and the rows, a line each.
  std::string text(const Paint& paint) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace tubed::tubectl
