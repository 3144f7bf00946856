// How a page is made: the constructor writes the families of the server. Then make_more() writes
// the families of tubes one after the other, each with the lines of all tubes, because the format
// wants the lines of a family side by side. It stops when enough bytes exist or kTubesAtOnce
// records were visited, and remembers the family and the name of the last tube. The next call
// continues after that name, so tubes may be created and removed in between.
//
// A page has hundreds of thousands of lines. So the text around a tube's name is made once for each
// family (LineWords), and a line is composed in a fixed buffer (MetricLine) and appended as a
// whole.
#include "stats/metrics.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

namespace tubed::stats {

using engine::TubeInfo;
using engine::TubeMetrics;

// Without an exponent: a bound is a label, and queries contain it.
std::string bound_text(const HistogramCounts& histogram, std::size_t bucket) {
  char digits[32];
  const double bound = static_cast<double>(histogram.bounds[bucket]) / histogram.per_unit;
  const auto result =
      std::to_chars(digits, digits + sizeof digits, bound, std::chars_format::fixed);
  return {digits, result.ptr};
}

namespace {

// How many records one call visits at most: a record without lines costs time too.
constexpr std::size_t kTubesAtOnce = 1000;

constexpr std::string_view kTubeLabel = "tube";
constexpr std::string_view kNodeLabel = "node";

// --- Text

// One line. Its buffer is on the stack and large enough: appending a word allocates nothing.
class MetricLine {
 public:
  void word(std::string_view word) {
    TUBED_ASSERT(word.size() <= room());
    end_ = std::copy(word.begin(), word.end(), end_);
  }
  template <class Number>
  void number(Number value) {
    const auto result = std::to_chars(end_, text_ + sizeof text_, value);
    TUBED_ASSERT(result.ec == std::errc());
    end_ = result.ptr;
  }
  // Exact: the nanoseconds of a long time have more digits than a double.
  void seconds(Duration duration);
  void append_to(std::string& text) {
    word("\n");
    text.append(text_, end_);
  }

 private:
  std::size_t room() const { return static_cast<std::size_t>(text_ + sizeof text_ - end_); }

  char text_[512];  // a tube's name has 200 bytes, a family's with its labels less
  char* end_ = text_;
};

void MetricLine::seconds(Duration duration) {
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  const std::int64_t total = duration.count();
  if (total < 0) word("-");
  const std::uint64_t size =
      total < 0 ? 0 - static_cast<std::uint64_t>(total) : static_cast<std::uint64_t>(total);
  number(size / kNanoseconds);
  std::uint64_t fraction = size % kNanoseconds;
  if (fraction == 0) return;
  word(".");
  for (std::uint64_t unit = kNanoseconds / 10; fraction > 0; unit /= 10) {
    number(fraction / unit);
    fraction %= unit;
  }
}

void append_label_value(std::string_view value, std::string& text) {
  for (const char c : value) {
    if (c == '\n') {
      text.append("\\n");
      continue;
    }
    if (c == '"' || c == '\\') text.push_back('\\');
    text.push_back(c);
  }
}

void begin_family(const Metric& metric, std::string_view help, std::string& text) {
  text.append("# HELP ").append(metric.family).append(" ").append(help);
  text.append("\n# TYPE ").append(metric.family).append(" ").append(name_of(metric.type));
  text.push_back('\n');
}

// The text before and after the name of a tube or of a node, up to the value. A line of the server
// has no name.
struct LineWords {
  std::string before;
  std::string after;

  // `subject` is the label of the name, or empty; `label` is one in addition to it, or empty.
  LineWords(std::string_view sample, std::string_view label, std::string_view subject)
      : before(sample) {
    if (!subject.empty()) {
      before.append("{").append(subject).append("=\"");
      after.append("\"");
      if (!label.empty()) after.append(",").append(label);
      after.append("} ");
    } else if (label.empty()) {
      after = " ";
    } else {
      after.append("{").append(label).append("} ");
    }
  }

  // Names of tubes and of nodes have no characters that need an escape. [protocol: Name convention]
  void begin(std::string_view name, MetricLine& line) const {
    line.word(before);
    line.word(name);
    line.word(after);
  }
};

// The lines of each histogram of a family.
struct HistogramWords {
  HistogramWords(std::string_view family, const HistogramCounts& any, std::string_view subject)
      : sum(std::string(family) + "_sum", {}, subject),
        count(std::string(family) + "_count", {}, subject) {
    const std::string bucket = std::string(family) + "_bucket";
    for (std::size_t i = 0; i < any.bounds.size(); ++i) {
      buckets.emplace_back(bucket, "le=\"" + bound_text(any, i) + '"', subject);
    }
    buckets.emplace_back(bucket, "le=\"+Inf\"", subject);
  }

  LineWords sum;
  LineWords count;
  std::vector<LineWords> buckets;
};

template <class Number>
void append_number(const LineWords& words, std::string_view name, Number value, std::string& text) {
  MetricLine line;
  words.begin(name, line);
  line.number(value);
  line.append_to(text);
}

void append_histogram(const HistogramWords& words, std::string_view tube,
                      const HistogramCounts& histogram, std::string& text) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i <= histogram.bounds.size(); ++i) {
    count += histogram.counts[i];
    append_number(words.buckets[i], tube, count, text);
  }
  append_number(words.sum, tube, histogram.sum / histogram.per_unit, text);
  append_number(words.count, tube, count, text);
}

// The line of one row that is not a histogram.
template <class State>
void append_row(const Row<State>& row, const LineWords& words, std::string_view name,
                const State& state, std::string& text) {
  MetricLine line;
  words.begin(name, line);
  if (row.number != nullptr) line.number(row.number(state));
  if (row.flag != nullptr) line.word(row.flag(state) ? "1" : "0");
  if (row.seconds != nullptr) line.seconds(row.seconds(state));
  line.append_to(text);
}

// --- The server as a whole

template <class State>
void append_info(const Metric& metric, Rows<State> rows, const State& state, std::string& text) {
  begin_family(metric, metric.help, text);
  text.append(metric.family).push_back('{');
  bool first = true;
  for (const Row<State>& row : rows) {
    if (row.info_label.empty()) continue;
    if (!std::exchange(first, false)) text.push_back(',');
    text.append(row.info_label).append("=\"");
    if (row.text != nullptr) append_label_value(row.text(state), text);
    if (row.plain != nullptr) append_label_value(row.plain(state), text);
    if (row.composed != nullptr) append_label_value(row.composed(state), text);
    text.push_back('"');
  }
  text.append("} 1\n");
}

// False: the server has no journal, or no TLS, which the metric is about.
bool applies(const Metric& metric, const ServerState& state) {
  const bool has_tls = state.counters.certificate_expiry() > Duration::zero();
  return (!metric.journal_only || state.log.on_disk) && (!metric.tls_only || has_tls);
}

// Neither a metric of a node of a cluster.
bool applies(const Metric&, const ClusterState&) {
  return true;
}

template <class State>
void append_rows(Rows<State> rows, const State& state, std::string& text) {
  std::string_view family;
  for (const Row<State>& row : rows) {
    if (row.metric.family.empty() || !applies(row.metric, state)) continue;
    if (row.metric.family != family) begin_family(row.metric, row.help(), text);
    family = row.metric.family;
    if (row.shown != nullptr && !row.shown(state)) continue;
    if (row.histogram == nullptr) {
      append_row(row, LineWords(family, row.metric.label, {}), {}, state, text);
    } else {
      const HistogramCounts histogram = row.histogram(state);
      append_histogram(HistogramWords(family, histogram, {}), {}, histogram, text);
    }
  }
}

void append_command_counts(CommandCounts commands, std::string& text) {
  begin_family(kCommandMetric, kCommandMetric.help, text);
  for (const CommandCount& command : commands) {
    const std::string label = "command=\"" + std::string(command.command) + '"';
    append_number(LineWords(kCommandMetric.family, label, {}), {}, command.count, text);
  }
}

// At most kMostClusterNodes lines for each family.
void append_cluster_nodes(const ClusterState& cluster, std::string& text) {
  const std::size_t count = std::min(cluster.nodes.size(), kMostClusterNodes);
  const std::span nodes = std::span(cluster.nodes).first(count);
  for (const Row<ClusterNode>& row : cluster_node_rows()) {
    begin_family(row.metric, row.help(), text);
    const LineWords words(row.metric.family, row.metric.label, kNodeLabel);
    for (const ClusterNode& node : nodes) {
      if (row.shown == nullptr || row.shown(node)) append_row(row, words, node.name, node, text);
    }
  }
}

void append_server(const ServerState& state, std::string& text) {
  append_info(kInfoMetric, beanstalkd_rows(), state, text);
  append_rows(job_count_rows(), state, text);
  append_command_counts(state.commands, text);
  append_rows(beanstalkd_rows(), state, text);
  append_rows(own_rows(), state, text);
  append_rows(newest_rows(), state, text);
  if (state.cluster == nullptr) return;
  append_info(kClusterInfoMetric, cluster_rows(), *state.cluster, text);
  append_rows(cluster_rows(), *state.cluster, text);
  append_cluster_nodes(*state.cluster, text);
}

// --- Tubes

// The rows of one family of tubes, from one of the two tables. The other span is empty.
struct TubeFamily {
  Rows<TubeInfo> tube;
  Rows<TubeMetricsState> metrics;

  const Metric& metric() const { return tube.empty() ? metrics[0].metric : tube[0].metric; }
  std::string_view help() const { return tube.empty() ? metrics[0].help() : tube[0].help(); }
};

template <class State>
bool take_family(Rows<State> rows, std::size_t& index, Rows<State>& family) {
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t end = first + 1;
    const std::string_view name = rows[first].metric.family;
    while (end < rows.size() && rows[end].metric.family == name) ++end;
    if (!name.empty() && index-- == 0) {
      family = rows.subspan(first, end - first);
      return true;
    }
    first = end;
  }
  return false;
}

// Counts the families of the first table and then of the second. False: the index is too large.
bool family_at(std::size_t index, TubeFamily& family) {
  return take_family(tube_rows(), index, family.tube) ||
         take_family(tube_metrics_rows(), index, family.metrics);
}

// Writes the lines of one family for one record after the other.
class TubeWriter {
 public:
  TubeWriter(const TubeFamily& family, const TubeMetrics& any, Time now, std::string& text)
      : family_(family), now_(now), text_(text) {
    const auto add_words = [this](const auto& row) {
      words_.emplace_back(row.metric.family, row.metric.label, kTubeLabel);
    };
    for (const auto& row : family.tube) add_words(row);
    for (const auto& row : family.metrics) {
      add_words(row);
      if (row.histogram == nullptr) continue;
      histogram_words_.emplace(row.metric.family, row.histogram({any, now}), kTubeLabel);
    }
  }

  void append(const TubeMetrics& metrics) {
    const TubeMetricsState state{metrics, now_};
    if (histogram_words_) {
      // A histogram without values is left out. With many tubes most histograms are empty.
      const HistogramCounts histogram = family_.metrics[0].histogram(state);
      if (histogram.total() == 0) return;
      return append_histogram(*histogram_words_, metrics.name, histogram, text_);
    }
    auto words = words_.begin();
    if (!family_.tube.empty()) {
      const TubeInfo tube = metrics.tube_info();
      for (const auto& row : family_.tube) append_row(row, *words++, metrics.name, tube, text_);
    }
    for (const auto& row : family_.metrics) {
      if (row.shown == nullptr || row.shown(state)) {
        append_row(row, *words, metrics.name, state, text_);
      }
      ++words;
    }
  }

 private:
  const TubeFamily& family_;
  Time now_;
  std::string& text_;
  std::vector<LineWords> words_;  // of each row
  std::optional<HistogramWords>
      histogram_words_;  // if the family is a histogram, which has one row
};

// --- The reference

// The name of a label and its value, as text.
std::string label_text(std::string_view label) {
  const std::size_t equals = label.find('=');
  return std::string(label.substr(0, equals)) + ": " +
         std::string(label.substr(equals + 2, label.size() - equals - 3));
}

template <class State>
void append_metric_texts(Rows<State> rows, std::string_view common,
                         std::vector<MetricText>& texts) {
  for (const Row<State>& row : rows) {
    const Metric& metric = row.metric;
    if (metric.family.empty()) continue;
    if (!texts.empty() && texts.back().family == metric.family) {
      texts.back().labels.append(", ").append(
          label_text(metric.label).substr(metric.label.find('=') + 2));
      continue;
    }
    std::string labels(common);
    if (!metric.label.empty()) {
      labels.append(labels.empty() ? "" : "; ").append(label_text(metric.label));
    }
    texts.push_back({std::string(metric.family), std::string(name_of(metric.type)),
                     std::move(labels), std::string(row.help())});
  }
}

template <class State>
std::string info_labels(Rows<State> rows) {
  std::string labels;
  for (const Row<State>& row : rows) {
    if (row.info_label.empty()) continue;
    labels.append(labels.empty() ? "" : "; ").append(row.info_label);
  }
  return labels;
}

MetricText metric_text(const Metric& metric, std::string labels) {
  return {std::string(metric.family), std::string(name_of(metric.type)), std::move(labels),
          std::string(metric.help)};
}

}  // namespace

std::vector<MetricText> metric_texts() {
  std::vector<MetricText> texts;
  texts.push_back(metric_text(kInfoMetric, info_labels(beanstalkd_rows())));
  append_metric_texts(job_count_rows(), "", texts);
  texts.push_back(metric_text(kCommandMetric, "command"));
  append_metric_texts(beanstalkd_rows(), "", texts);
  append_metric_texts(own_rows(), "", texts);
  append_metric_texts(newest_rows(), "", texts);
  texts.push_back(metric_text(kClusterInfoMetric, info_labels(cluster_rows())));
  append_metric_texts(cluster_rows(), "", texts);
  append_metric_texts(cluster_node_rows(), kNodeLabel, texts);
  append_metric_texts(tube_rows(), kTubeLabel, texts);
  append_metric_texts(tube_metrics_rows(), kTubeLabel, texts);
  return texts;
}

MetricsPage::MetricsPage(const ServerState& server, const engine::Engine& engine)
    : engine_(engine) {
  append_server(server, buffer_);
}

bool MetricsPage::append_piece(Time now, std::size_t bytes, std::string& text) {
  TUBED_ASSERT(bytes > 0);
  if (taken_ == buffer_.size()) {
    buffer_.clear();
    taken_ = 0;
  }
  const bool has_more = buffer_.size() - taken_ >= bytes || make_more(now, bytes);
  const std::size_t piece = std::min(bytes, buffer_.size() - taken_);
  text.append(buffer_, taken_, piece);
  taken_ += piece;
  return piece > 0 || has_more;
}

// Writes until `bytes` bytes are ready or kTubesAtOnce records were visited. False: the page ends
// here.
bool MetricsPage::make_more(Time now, std::size_t bytes) {
  buffer_.erase(0, std::exchange(taken_, 0));
  const engine::TubeMetricsRegistry& registry = engine_.queries().tube_metrics();
  const Limits& limits = engine_.limits();
  std::size_t left = kTubesAtOnce;
  for (TubeFamily family; family_at(family_, family); family = {}) {
    if (buffer_.size() >= bytes || left == 0) return true;
    if (last_tube_.empty()) begin_family(family.metric(), family.help(), buffer_);
    TubeWriter writer(family, registry.overflow(), now, buffer_);
    bool finished = true;
    registry.visit_after(last_tube_, limits, now, [&](const TubeMetrics& metrics, bool expired) {
      if (!expired) writer.append(metrics);
      finished = buffer_.size() < bytes && --left > 0;
      if (!finished) last_tube_ = metrics.name;
      return finished;
    });
    if (!finished) return true;
    writer.append(registry.overflow());
    last_tube_.clear();
    ++family_;
  }
  return false;
}

}  // namespace tubed::stats
