#include "client/stats_block.h"

#include <algorithm>

#include "text/numbers.h"

namespace tubed::client {
namespace {

// `text` with '?' in place of every byte that is not printable ASCII.
std::string printable(std::string_view text) {
  std::string result(text);
  std::ranges::replace_if(
      result, [](char c) { return c < ' ' || c > '~'; }, '?');
  return result;
}

// Calls visit(line) for each line except the initial "---".
template <class Visit>
void for_each_line(std::string_view block, Visit visit) {
  while (!block.empty()) {
    const auto end = block.find('\n');
    const std::string_view line = block.substr(0, end);
    if (!line.empty() && line != "---") visit(line);
    if (end == block.npos) break;
    block.remove_prefix(end + 1);
  }
}

}  // namespace

StatsBlock::StatsBlock(std::string_view block) {
  for_each_line(block, [this](std::string_view line) {
    const auto colon = line.find(": ");
    if (colon == line.npos) return;
    std::string_view value = line.substr(colon + 2);
    const bool quoted = value.size() >= 2 && value.front() == '"' && value.back() == '"';
    if (quoted) value = value.substr(1, value.size() - 2);
    lines_.push_back({printable(line.substr(0, colon)), printable(value), quoted});
  });
}

std::optional<std::string_view> StatsBlock::text(std::string_view key) const {
  for (const Line& line : lines_) {
    if (line.key == key) return line.value;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> StatsBlock::number(std::string_view key) const {
  const auto value = text(key);
  return value ? parse_number<std::uint64_t>(*value) : std::nullopt;
}

std::vector<std::string> list_items(std::string_view block) {
  std::vector<std::string> items;
  for_each_line(block, [&items](std::string_view line) {
    if (line.starts_with("- ")) items.push_back(printable(line.substr(2)));
  });
  return items;
}

}  // namespace tubed::client
