// The pages of list-jobs and list-clients: `next` and the place at which the next page begins, the
// names of the columns, and a line of words for each item. A later server may have more columns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tubectl/json.h"

namespace tubed::tubectl {

struct ListPage {
  std::uint64_t next = 0;    // 0: the last page
  std::uint64_t looked = 0;  // of a filtered list: at this number of jobs
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> lines;  // the words of each line; columns[i] names word i
};

// No value: the block has no columns.
std::optional<ListPage> read_page(std::string_view block);

// Returns a number if the word is a number, else text.
Json number_or_text(const std::string& word);

}  // namespace tubed::tubectl
