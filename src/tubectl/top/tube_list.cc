// rows_ is sorted by name, which lets update() merge the old and the new rows in one pass and keep
// the history of each tube. shown_ has the indices of the tubes that pass the filter, in the order
// of the sort key; arrange() rebuilds it after every change and moves the selection to the followed
// tube.
#include "tubectl/top/tube_list.h"

#include <algorithm>

namespace tubed::tubectl::top {

double sort_value(const TubeCounts& counts, const std::optional<Rates>& rates, SortKey key) {
  if (key == SortKey::name) return 0;
  if (key == SortKey::puts) return rates ? rates->puts : 0;
  if (key == SortKey::deletes) return rates ? rates->deletes : 0;
  return static_cast<double>(counts.*kSortCounts[static_cast<std::size_t>(key)]);
}

// Drops the oldest value if the history is full.
void History::add(double value) {
  if (values_.size() == longest_) values_.erase(values_.begin());
  values_.push_back(static_cast<float>(value));
}

std::string_view name_of(SortKey key) {
  return kSortNames[static_cast<std::size_t>(key)];
}

std::optional<SortKey> sort_key_of(std::string_view name) {
  const auto found = std::ranges::find(kSortNames, name);
  if (found == kSortNames.end()) return std::nullopt;
  return static_cast<SortKey>(found - kSortNames.begin());
}

void TubeList::update(std::vector<TubeCounts> tubes, std::optional<double> seconds) {
  merge(std::move(tubes), [seconds](const TubeRow* before, TubeRow& row) {
    TubeCounts counted;
    if (before != nullptr) {
      counted.total_jobs = before->counted_puts;
      counted.deleted_jobs = before->counted_deletes;
    }
    if (seconds) {
      row.rates = rates_between(before != nullptr ? &counted : nullptr, row.counts, *seconds);
    }
    row.counted_puts = row.counts.total_jobs;
    row.counted_deletes = row.counts.deleted_jobs;
    row.ready.add(static_cast<double>(row.counts.ready));
  });
}

// A tube that was created meanwhile counts from its beginning.
void TubeList::refresh(std::vector<TubeCounts> tubes) {
  merge(std::move(tubes), [](const TubeRow* before, TubeRow& row) {
    if (before == nullptr) return;
    row.rates = before->rates;
    row.counted_puts = before->counted_puts;
    row.counted_deletes = before->counted_deletes;
  });
}

template <class Rate>
void TubeList::merge(std::vector<TubeCounts> tubes, Rate rate) {
  std::vector<TubeRow> rows;
  rows.reserve(tubes.size());
  auto before = rows_.begin();
  for (TubeCounts& tube : tubes) {
    while (before != rows_.end() && before->counts.name < tube.name) ++before;
    const bool known = before != rows_.end() && before->counts.name == tube.name;
    TubeRow row;
    if (known) row.ready = std::move(before->ready);
    row.counts = std::move(tube);
    rate(known ? &*before : nullptr, row);
    rows.push_back(std::move(row));
  }
  rows_ = std::move(rows);
  has_held_ = std::ranges::any_of(rows_, [](const TubeRow& row) { return row.counts.held > 0; });
  arrange();
}

void TubeList::sort_by(SortKey key) {
  key_ = key;
  reversed_ = false;
  arrange();
}

void TubeList::reverse() {
  reversed_ = !reversed_;
  arrange();
}

void TubeList::filter(std::string text) {
  filter_ = std::move(text);
  arrange();
}

const TubeRow* TubeList::find(std::string_view tube) const {
  const auto name = [](const TubeRow& row) -> std::string_view { return row.counts.name; };
  const auto found = std::ranges::lower_bound(rows_, tube, {}, name);
  return found != rows_.end() && found->counts.name == tube ? &*found : nullptr;
}

void TubeList::move(std::ptrdiff_t rows) {
  if (shown_.empty()) return;
  const auto last = static_cast<std::ptrdiff_t>(shown_.size()) - 1;
  const auto from = static_cast<std::ptrdiff_t>(selected_);
  const auto to = rows < 0 ? std::max(from + std::max(rows, -from), std::ptrdiff_t{0})
                           : from + std::min(rows, last - from);
  selected_ = static_cast<std::size_t>(to);
  followed_ = selected()->counts.name;
}

void TubeList::fit(std::size_t rows) {
  page_ = std::max<std::size_t>(rows, 1);
  if (selected_ < first_) first_ = selected_;
  if (selected_ >= first_ + page_) first_ = selected_ + 1 - page_;
  // Leaves no empty rows below while tubes are hidden above.
  first_ = std::min(first_, shown_.size() > page_ ? shown_.size() - page_ : 0);
}

void TubeList::arrange() {
  shown_.clear();
  longest_name_ = 0;
  for (std::size_t index = 0; index < rows_.size(); ++index) {
    const std::string& name = rows_[index].counts.name;
    if (name.find(filter_) == name.npos) continue;
    shown_.push_back(static_cast<std::uint32_t>(index));
    longest_name_ = std::max(longest_name_, name.size());
  }
  // shown_ is sorted by name, and a stable sort keeps that order among equals.
  if (key_ != SortKey::name) {
    std::vector<double> values(rows_.size());
    for (const std::uint32_t index : shown_) {
      values[index] = sort_value(rows_[index].counts, rows_[index].rates, key_);
    }
    std::ranges::stable_sort(shown_, [&values, this](std::uint32_t one, std::uint32_t other) {
      return reversed_ ? values[one] < values[other] : values[one] > values[other];
    });
  } else if (reversed_) {
    std::ranges::reverse(shown_);
  }
  selected_ = std::min(selected_, shown_.empty() ? 0 : shown_.size() - 1);
  if (!followed_.empty()) {
    const auto found = std::ranges::find_if(
        shown_, [this](std::uint32_t index) { return rows_[index].counts.name == followed_; });
    if (found != shown_.end()) selected_ = static_cast<std::size_t>(found - shown_.begin());
  }
  fit(page_);
}

}  // namespace tubed::tubectl::top
