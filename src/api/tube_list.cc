#include "api/tube_list.h"

#include <algorithm>

#include "api/block_json.h"

namespace tubed::api {

std::variant<TubeList, Problem> TubeList::make(const Parameters& parameters) {
  TubeList list;
  if (const std::string* filter = find(parameters, "filter")) list.filter_ = *filter;
  if (const std::string* sort = find(parameters, "sort")) {
    const auto& columns = stats::kListedTubeNames;
    const auto column = std::ranges::find(columns, *sort);
    if (column == columns.end()) return bad_parameter("sort", "is not a column");
    list.column_ = static_cast<std::size_t>(column - columns.begin());
  }
  if (auto problem = list.window_.read(parameters)) return *std::move(problem);
  return list;
}

bool TubeList::comes_before(const Row& a, const Row& b) const {
  const std::uint64_t number = number_of(a);
  const std::uint64_t other = number_of(b);
  if (number != other) return window_.descending ? number > other : number < other;
  const bool reverse = window_.descending && column_ == 0;
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
  keep_best(rows_, window_, [this](const Row& a, const Row& b) { return comes_before(a, b); });
  return reader.next();
}

std::string TubeList::to_json() {
  std::ranges::sort(rows_, [this](const Row& a, const Row& b) { return comes_before(a, b); });
  const auto end = std::min<std::uint64_t>(window_.end(), rows_.size());
  std::string json;
  JsonBlock block(json, "tubes");
  block.member("total", total_);
  block.begin_table({.names = stats::kListedTubeNames});
  for (std::uint64_t at = window_.from; at < end; ++at) {
    std::array<protocol::Value, stats::kListedTubeColumns> values{protocol::Plain{rows_[at].name}};
    std::ranges::copy(rows_[at].numbers, values.begin() + 1);
    block.row(values);
  }
  block.end_table(window_.next(total_));
  block.finish();
  return json + '\n';
}

}  // namespace tubed::api
