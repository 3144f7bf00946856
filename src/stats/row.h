// Row: one statistic. A row defines its line of stats, its metric, and its place in both
// references. A row without a key is a metric only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
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

// Rows of one family are adjacent; the first row has the family's type and help.
struct Metric {
  std::string_view family;  // empty: the row is not a metric
  MetricType type = MetricType::gauge;
  std::string_view label = {};  // in addition to the tube's: `state="ready"`, or empty
  std::string_view help = {};   // empty: the row's meaning
  bool journal_only = false;    // absent without a journal
  bool tls_only = false;        // absent without TLS
};

// One statistic of a State. Exactly one of the functions is set and returns the value.
template <class State>
struct Row {
  std::string_view key;
  std::string_view meaning;
  std::uint64_t (*number)(const State&) = nullptr;
  std::string_view (*text)(const State&) = nullptr;   // quoted where YAML needs it
  std::string_view (*plain)(const State&) = nullptr;  // never quoted
  std::string (*composed)(const State&) = nullptr;    // a text that is made for the call
  bool (*flag)(const State&) = nullptr;
  Duration (*seconds)(const State&) = nullptr;  // in stats with microseconds
  HistogramCounts (*histogram)(const State&) = nullptr;
  Metric metric = {};
  bool (*shown)(const State&) = nullptr;  // null: always. False: stats has no line
  std::string_view info_label = {};       // if not empty, the text is this label of tubed_info

  std::string_view help() const { return metric.help.empty() ? meaning : metric.help; }
};

// A time in stats: whole seconds, never negative.
inline std::uint64_t whole_seconds_of(Duration duration) {
  return static_cast<std::uint64_t>(whole_seconds(duration));
}

template <class State>
using Rows = std::span<const Row<State>>;

}  // namespace tubed::stats
