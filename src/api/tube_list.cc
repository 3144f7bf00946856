#include "api/tube_list.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "api/answer_json.h"
#include "text/numbers.h"

namespace tubed::api {

namespace {

// Of stats-tubes, in its order.
constexpr auto kColumns = std::to_array<std::string_view>(
    {"name", "urgent", "ready", "reserved", "delayed", "buried", "total", "using", "watching",
     "waiting", "delete", "pause", "pause-left"});
constexpr std::uint64_t kMostLimit = 1000;

// Precondition: the line has that many columns.
std::uint64_t number_at(std::string_view line, std::size_t column) {
  for (; column > 0; --column) line.remove_prefix(line.find(' ') + 1);
  return parse_number<std::uint64_t>(line.substr(0, line.find(' '))).value_or(0);
}

}  // namespace

std::variant<TubeList, Problem> TubeList::make(const Parameters& parameters) {
  TubeList list;
  if (const std::string* filter = find(parameters, "filter")) list.filter_ = *filter;
  if (const std::string* sort = find(parameters, "sort")) {
    const auto column = std::ranges::find(kColumns, *sort);
    if (column == kColumns.end()) return bad_request("the parameter sort is not a column");
    list.column_ = static_cast<std::size_t>(column - kColumns.begin());
  }
  if (const std::string* order = find(parameters, "order")) {
    if (*order != "asc" && *order != "desc")
      return bad_request("the parameter order is not asc or desc");
    list.descending_ = *order == "desc";
  }
  const auto read = [&](std::string_view name, std::uint64_t& value) {
    const std::string* text = find(parameters, name);
    if (text == nullptr) return true;
    const auto number = parse_number<std::uint64_t>(*text);
    value = number.value_or(0);
    return number.has_value();
  };
  if (!read("limit", list.limit_) || list.limit_ == 0 || list.limit_ > kMostLimit)
    return bad_request(fmt::format("the parameter limit is not from 1 to {}", kMostLimit));
  if (!read("from", list.from_) || list.from_ >= kMostRows)
    return bad_request(fmt::format("the parameter from is not below {}", kMostRows));
  list.limit_ = std::min(list.limit_, kMostRows - list.from_);
  return list;
}

bool TubeList::comes_before(const Row& a, const Row& b) const {
  if (a.number != b.number) return descending_ ? a.number > b.number : a.number < b.number;
  const bool reverse = descending_ && column_ == 0;
  return reverse ? a.name() > b.name() : a.name() < b.name();
}

std::uint64_t TubeList::add_page(std::string_view block) {
  std::uint64_t next = 0;
  std::size_t number = 0;
  for_each_line(block, [&](std::string_view line) {
    if (number++ == 0) {
      next = number_at(line, 1);
      return;
    }
    if (number == 2) {
      columns_ = line;
      return;
    }
    const std::string_view name = line.substr(0, line.find(' '));
    if (name.find(filter_) == std::string_view::npos) return;
    ++total_;
    rows_.push_back({.number = column_ == 0 ? 0 : number_at(line, column_),
                     .name_bytes = name.size(),
                     .line = std::string(line)});
  });
  if (rows_.size() > 2 * (from_ + limit_) + kMostLimit) keep_best();
  return next;
}

// The rows up to the end of the page, in no order.
void TubeList::keep_best() {
  const auto kept =
      static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(rows_.size(), from_ + limit_));
  std::ranges::nth_element(rows_, rows_.begin() + kept,
                           [this](const Row& a, const Row& b) { return comes_before(a, b); });
  rows_.resize(static_cast<std::size_t>(kept));
}

std::string TubeList::to_json() {
  std::ranges::sort(rows_, [this](const Row& a, const Row& b) { return comes_before(a, b); });
  const std::uint64_t end = from_ + limit_;
  const bool has_next = end < std::min(total_, kMostRows);
  std::string block = fmt::format("---\n- next {}\n- {}\n", has_next ? end : 0, columns_);
  for (std::uint64_t at = from_; at < std::min<std::uint64_t>(end, rows_.size()); ++at)
    block.append("- ").append(rows_[at].line) += '\n';
  std::string text = json_of_block(block, "tubes");
  return fmt::format("{{\"total\":{},{}\n", total_, text.substr(1));
}

}  // namespace tubed::api
