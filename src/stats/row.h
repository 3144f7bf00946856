// Row: a number that stats or the metrics tell. One row is its line of stats, its metric and its
// place in both references; a row without a key is a metric only.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/histogram.h"
#include "base/time.h"

namespace tubed::stats {

enum class MetricType : std::uint8_t { gauge, counter, histogram };

constexpr std::string_view name_of(MetricType type) {
  switch (type) {
    case MetricType::gauge:
      return "gauge";
    case MetricType::counter:
      return "counter";
    case MetricType::histogram:
      return "histogram";
  }
  return "";
}

// Rows of one family stand side by side; the first one has its type and help.
struct Metric {
  std::string_view family;  // empty: the row is no metric
  MetricType type = MetricType::gauge;
  std::string_view label = {};  // beside that of the tube: `state="ready"`, or nothing
  std::string_view help = {};   // empty: the row's meaning says it
  bool journal_only = false;    // absent without a journal
};

// What a row tells of a State. Exactly one of the functions is set.
template <class State>
struct Row {
  std::string_view key;
  std::string_view meaning;
  std::uint64_t (*number)(const State&) = nullptr;
  std::string_view (*quoted)(const State&) = nullptr;
  std::string_view (*plain)(const State&) = nullptr;
  bool (*flag)(const State&) = nullptr;
  Duration (*seconds)(const State&) = nullptr;  // in stats with microseconds
  HistogramView (*histogram)(const State&) = nullptr;
  Metric metric = {};
  std::string_view info_label = {};  // its text is this label of tubed_info

  std::string_view help() const { return metric.help.empty() ? meaning : metric.help; }
};

// As stats tells times: whole seconds, never negative.
inline std::uint64_t whole_seconds_of(Duration duration) {
  return static_cast<std::uint64_t>(whole_seconds(duration));
}

template <class State>
using Rows = std::span<const Row<State>>;

}  // namespace tubed::stats
