// TubeList: the tubes of a server as a table: the last counts and rates of each, the filter, the
// order, the selection and the scroll position.
//
// Invariant: shown_ holds each tube that passes the filter once; the indices of the selected and of
// the first row are less than its size, or 0 when it is empty. It never asks the server.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tubectl/snapshot.h"

namespace tubed::tubectl::top {

// The last values of a number, the oldest first.
class History {
 public:
  explicit History(std::size_t longest) : longest_(longest) {}

  void add(double value);  // O(longest)
  std::span<const float> values() const { return values_; }

 private:
  std::size_t longest_;
  std::vector<float> values_;
};

// In the order in which the keys select them.
enum class SortKey : std::uint8_t {
  name,
  ready,
  urgent,
  reserved,
  delayed,
  held,  // only if TubeList::has_held()
  buried,
  waiting,
  watching,
  paused,
  puts,
  deletes
};
inline constexpr std::size_t kSortKeys = 12;
// As written by --sort and on the screen, in the order of SortKey.
inline constexpr std::array<std::string_view, kSortKeys> kSortNames{
    "name",   "ready",   "urgent",   "reserved", "delayed", "held",
    "buried", "waiting", "watching", "paused",   "puts",    "deletes"};
// The number of each key in a tube, in the order of SortKey; null for the name and the rates.
inline constexpr std::array<std::uint64_t TubeCounts::*, kSortKeys> kSortCounts{
    nullptr,
    &TubeCounts::ready,
    &TubeCounts::urgent,
    &TubeCounts::reserved,
    &TubeCounts::delayed,
    &TubeCounts::held,
    &TubeCounts::buried,
    &TubeCounts::waiting,
    &TubeCounts::watching,
    &TubeCounts::pause_seconds_left,
    nullptr,
    nullptr};
std::string_view name_of(SortKey key);
std::optional<SortKey> sort_key_of(std::string_view name);
// Rows with larger values come first; all values are 0 for SortKey::name. Without rates, puts and
// deletes are 0.
double sort_value(const TubeCounts& counts, const std::optional<Rates>& rates, SortKey key);

struct TubeRow {
  TubeCounts counts;
  std::optional<Rates> rates;      // no value: only one snapshot
  std::uint64_t counted_puts = 0;  // the counters from which the next rates count
  std::uint64_t counted_deletes = 0;
  History ready{64};
};

class TubeList {
 public:
  // `tubes` is sorted by name and was taken `seconds` after the last update; no value: the first
  // update. O(tubes log tubes), like all functions that change the order.
  void update(std::vector<TubeCounts> tubes, std::optional<double> seconds);
  // As update(), but keeps the rates and their beginning: the tubes come too soon for new rates.
  void refresh(std::vector<TubeCounts> tubes);

  void sort_by(SortKey key);
  // By default names ascend and numbers descend; this reverses both.
  void reverse();
  SortKey sorted_by() const { return key_; }
  bool ascending() const { return (key_ == SortKey::name) != reversed_; }
  // Shows only tubes whose names contain `text`; empty: all.
  void filter(std::string text);
  const std::string& filter() const { return filter_; }

  std::size_t all() const { return rows_.size(); }
  std::size_t size() const { return shown_.size(); }
  // True if a tube, shown or not, has jobs that a group holds. beanstalkd has no such jobs.
  bool has_held() const { return has_held_; }
  const TubeRow& operator[](std::size_t index) const { return rows_[shown_[index]]; }
  // Also finds hidden tubes. Null: no such tube. O(log tubes).
  const TubeRow* find(std::string_view tube) const;
  // The length of the longest shown name.
  std::size_t longest_name() const { return longest_name_; }

  // Null: no tube is shown. Once moved, the selection stays with its tube.
  const TubeRow* selected() const { return shown_.empty() ? nullptr : &(*this)[selected_]; }
  std::size_t selected_index() const { return selected_; }
  // Moves the selection down, or up if negative; stops at the ends.
  void move(std::ptrdiff_t rows);

  // Scrolls to make the selected row visible among the `rows` rows of the screen.
  void fit(std::size_t rows);
  std::size_t first() const { return first_; }
  std::size_t page() const { return page_; }

 private:
  // Calls rate(former row or null, row) for each tube, whose counts are set.
  template <class Rate>
  void merge(std::vector<TubeCounts> tubes, Rate rate);
  void arrange();

  std::vector<TubeRow> rows_;         // by name
  std::vector<std::uint32_t> shown_;  // indices into rows_
  SortKey key_ = SortKey::ready;
  bool reversed_ = false;
  bool has_held_ = false;
  std::string filter_;
  std::string followed_;  // name of the selected tube, once the selection was moved
  std::size_t longest_name_ = 0;
  std::size_t selected_ = 0;
  std::size_t first_ = 0;
  std::size_t page_ = 1;
};

}  // namespace tubed::tubectl::top
