#include "tubectl/list_page.h"

#include <algorithm>

#include "client/stats_block.h"
#include "text/numbers.h"

namespace tubed::tubectl {

namespace {

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

// The word after `name`; 0: it is not there, or is no number.
std::uint64_t number_after(std::string_view name, const std::vector<std::string>& words) {
  const auto found = std::ranges::find(words, name);
  if (found == words.end() || found + 1 == words.end()) return 0;
  return parse_number<std::uint64_t>(*(found + 1)).value_or(0);
}

}  // namespace

std::optional<ListPage> read_page(std::string_view block) {
  const auto items = client::list_items(block);
  if (items.size() < 2) return std::nullopt;
  const auto first = words_of(items[0]);
  ListPage page;
  page.next = number_after("next", first);
  page.looked = number_after("looked", first);
  page.columns = words_of(items[1]);
  for (std::size_t i = 2; i < items.size(); ++i) page.lines.push_back(words_of(items[i]));
  return page;
}

Json number_or_text(const std::string& word) {
  const auto number = parse_number<std::uint64_t>(word);
  return number ? Json(*number) : Json(word);
}

}  // namespace tubed::tubectl
