// The pages of list-jobs and list-clients: `next` and the place at which the next page begins, the
// names of the columns, and a line for each item, in words. A later server may have more columns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tubectl/json.h"

namespace tubed::tubectl {

struct ListPage {
  std::uint64_t next = 0;  // 0: this is the last page
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> lines;  // the words of each; columns[i] names word i
};

// No value: the block has no columns.
std::optional<ListPage> read_page(std::string_view block);

// A word as JSON: a number if it is one.
Json number_or_text(const std::string& word);

}  // namespace tubed::tubectl
