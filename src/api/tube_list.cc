#include "api/tube_list.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/block_json.h"
#include "text/numbers.h"

namespace tubed::api {

namespace {

constexpr std::uint64_t kMostLimit = 1000;

}  // namespace

std::variant<TubeList, Problem> TubeList::make(const Parameters& parameters) {
  TubeList list;
  if (const std::string* filter = find(parameters, "filter")) list.filter_ = *filter;
  if (const std::string* sort = find(parameters, "sort")) {
    const auto& columns = stats::kListedTubeNames;
    const auto column = std::ranges::find(columns, *sort);
    if (column == columns.end()) return bad_parameter("sort", "is not a column");
    list.column_ = static_cast<std::size_t>(column - columns.begin());
  }
  if (const std::string* order = find(parameters, "order")) {
    if (*order != "asc" && *order != "desc") return bad_parameter("order", "is not asc or desc");
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
    return bad_parameter("limit", fmt::format("is not from 1 to {}", kMostLimit));
  if (!read("from", list.from_) || list.from_ >= kMostRows)
    return bad_parameter("from", fmt::format("is not below {}", kMostRows));
  list.limit_ = std::min(list.limit_, kMostRows - list.from_);
  return list;
}

bool TubeList::comes_before(const Row& a, const Row& b) const {
  const std::uint64_t number = number_of(a);
  const std::uint64_t other = number_of(b);
  if (number != other) return descending_ ? number > other : number < other;
  const bool reverse = descending_ && column_ == 0;
  return reverse ? a.name > b.name : a.name < b.name;
}

class TubeList::PageReader final : public protocol::BlockSink {
 public:
  explicit PageReader(TubeList& list) : list_(list) {}

  void row(std::span<const protocol::Value> values) override { list_.add_row(values); }
  void end_table(std::uint64_t next) override { next_ = next; }
  std::uint64_t next() const { return next_; }

 private:
  TubeList& list_;
  std::uint64_t next_ = 0;
};

void TubeList::add_row(std::span<const protocol::Value> values) {
  const std::string_view name = std::get<protocol::Plain>(values[0]).text;
  if (name.find(filter_) == std::string_view::npos) return;
  ++total_;
  Row& row = rows_.emplace_back(Row{.name = std::string(name)});
  for (std::size_t i = 0; i < row.numbers.size(); ++i)
    row.numbers[i] = std::get<std::uint64_t>(values[i + 1]);
}

std::uint64_t TubeList::add_page(const protocol::Block& page) {
  PageReader reader(*this);
  page.write(reader);
  if (rows_.size() > 2 * (from_ + limit_) + kMostLimit) keep_best();
  return reader.next();
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
  std::string json;
  JsonBlock block(json, "tubes");
  block.member("total", total_);
  block.begin_table({.names = stats::kListedTubeNames});
  for (std::uint64_t at = from_; at < std::min<std::uint64_t>(end, rows_.size()); ++at) {
    std::array<protocol::Value, stats::kListedTubeColumns> values{protocol::Plain{rows_[at].name}};
    std::ranges::copy(rows_[at].numbers, values.begin() + 1);
    block.row(values);
  }
  block.end_table(has_next ? end : 0);
  block.finish();
  return json + '\n';
}

}  // namespace tubed::api
