#include "api/job_list.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/block_json.h"

namespace tubed::api {

using commands::kFilteredJobColumns;
using commands::kJobColumns;

namespace {

constexpr std::size_t kNoText = 3;

// The place of a text in a row; kNoText: the column has numbers.
constexpr std::size_t text_of(std::size_t column) {
  const std::string_view name = JobList::kColumns[column];
  return name == "state" ? 0 : name == "dead-from" ? 1 : name == commands::kJobTags ? 2 : kNoText;
}

bool is_of_page(std::string_view name) {
  return name == "from" || name == "limit" || name == "sort" || name == "order";
}

// Of the parameters that are not of the page.
bool is_filter(const std::pair<std::string, std::string>& parameter) {
  return parameter.first != "tube" && parameter.first != "state";
}

}  // namespace

JobList::JobList(const Operation& operation, Parameters parameters)
    : operation_(operation), parameters_(std::move(parameters)) {}

std::variant<JobList, Problem> JobList::make(const Operation& operation, Parameters parameters) {
  ListWindow window;
  if (auto problem = window.read(parameters)) return *std::move(problem);
  const std::string* sort = find(parameters, "sort");
  const auto* const column =
      sort == nullptr ? kColumns.begin() : std::ranges::find(kColumns, *sort);
  if (column == kColumns.end()) return bad_parameter("sort", "is not a column");
  const std::string* state = find(parameters, "state");
  if (state != nullptr && *state == "next")
    return bad_parameter(sort == nullptr ? "order" : "sort", "is not for the state next");
  std::erase_if(parameters, [](const auto& parameter) { return is_of_page(parameter.first); });
  JobList list(operation, std::move(parameters));
  list.window_ = window;
  list.column_ = static_cast<std::size_t>(column - kColumns.begin());
  const bool is_of_filtered =
      list.column_ >= kJobColumns.size() && list.column_ < kFilteredJobColumns.size();
  if (is_of_filtered && std::ranges::none_of(list.parameters_, is_filter))
    return bad_parameter("sort", "is a column of lists with filters");
  return list;
}

std::variant<std::string, Problem> JobList::line_from(std::uint64_t id) const {
  Parameters parameters = parameters_;
  parameters.emplace_back("from", fmt::to_string(id));
  parameters.emplace_back("limit", fmt::to_string(ListWindow::kMostLimit));
  return line_of(operation_, parameters);
}

bool JobList::comes_before(const Row& a, const Row& b) const {
  const bool is_older = a.numbers[0] < b.numbers[0];  // its id
  if (const std::size_t text = text_of(column_); text != kNoText) {
    const int order = a.texts[text].compare(b.texts[text]);
    return order == 0 ? is_older : window_.descending ? order > 0 : order < 0;
  }
  const std::uint64_t number = a.numbers[column_];
  const std::uint64_t other = b.numbers[column_];
  if (number == other) return is_older;
  return window_.descending ? number > other : number < other;
}

class JobList::PageReader final : public protocol::BlockSink {
 public:
  explicit PageReader(JobList& list) : list_(list) {}

  void begin_table(const protocol::Columns& columns) override { list_.columns_ = columns.names; }
  void row(std::span<const protocol::Value> values) override { list_.add_row(values); }
  void looked_at(std::uint64_t items) override {
    list_.looked_ = list_.looked_.value_or(0) + items;
  }
  void end_table(std::uint64_t next) override { next_ = next; }
  std::uint64_t next() const { return next_; }

 private:
  JobList& list_;
  std::uint64_t next_ = 0;
};

void JobList::add_row(std::span<const protocol::Value> values) {
  ++total_;
  Row& row = rows_.emplace_back();
  for (std::size_t i = 0; i < values.size(); ++i) {
    // Tags, which a row may lack, come after the columns of the page.
    const std::size_t column = i < columns_.size() ? i : kColumns.size() - 1;
    if (const auto* text = std::get_if<protocol::Plain>(&values[i])) {
      row.texts[text_of(column)] = text->text;
    } else {
      row.numbers[column] = std::get<std::uint64_t>(values[i]);
    }
  }
}

std::uint64_t JobList::add_page(const protocol::Block& page) {
  PageReader reader(*this);
  page.write(reader);
  keep_best(rows_, window_, [this](const Row& a, const Row& b) { return comes_before(a, b); });
  return reader.next();
}

std::string JobList::to_json() {
  std::ranges::sort(rows_, [this](const Row& a, const Row& b) { return comes_before(a, b); });
  std::string json;
  JsonBlock block(json, "jobs");
  block.member("total", total_);
  block.begin_table({.names = columns_, .rest = commands::kJobTags});
  const auto end = std::min<std::uint64_t>(window_.end(), rows_.size());
  for (std::uint64_t at = window_.from; at < end; ++at) {
    const Row& row = rows_[at];
    std::array<protocol::Value, kColumns.size()> values;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::size_t text = text_of(i);
      if (text == kNoText) {
        values[i] = row.numbers[i];
      } else {
        values[i] = protocol::Plain{row.texts[text]};
      }
    }
    const std::string& tags = row.texts[text_of(kColumns.size() - 1)];
    values[columns_.size()] = protocol::Plain{tags};
    block.row(std::span(values).first(columns_.size() + (tags.empty() ? 0 : 1)));
  }
  if (looked_) block.looked_at(*looked_);
  block.end_table(window_.next(total_));
  block.finish();
  return json + '\n';
}

}  // namespace tubed::api
