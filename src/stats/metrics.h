// MetricsPage: all metrics in Prometheus' text format (version 0.0.4), made in pieces: a page of
// 10,000 tubes does not delay other clients.
//
// It reads the queue and never changes it. The lines of the whole server are made with the page,
// the lines of a tube with its piece: the queue may change between two pieces. A tube that is
// created or removed meanwhile is in some families and not in others; no tube is listed twice.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "stats/rows.h"

namespace tubed::stats {

// An upper bound as the page has it in `le`. Precondition: bucket < histogram.bounds.size().
std::string bound_text(const HistogramCounts& histogram, std::size_t bucket);

class MetricsPage {
 public:
  // `engine` outlives the page; `server` is used by the constructor only.
  MetricsPage(const ServerState& server, const engine::Engine& engine);

  // Appends the next piece of the page to `text`, up to `bytes` bytes. A piece may end in the
  // middle of a line, and may be empty if many records are left out. False: the page is complete.
  // Precondition: bytes > 0. O(bytes + 1,000 tubes).
  bool append_piece(Time now, std::size_t bytes, std::string& text);

 private:
  bool make_more(Time now, std::size_t bytes);

  const engine::Engine& engine_;
  std::string buffer_;      // bytes that exist and that no piece has had yet
  std::size_t taken_ = 0;   // how many of them a piece has had
  std::size_t family_ = 0;  // index of the family of tubes that is being written
  std::string last_tube_;   // the tube after which the next piece continues
};

// For the reference: each family, in the order of the page.
struct MetricText {
  std::string family;
  std::string type;
  std::string labels;  // their names and values, as words
  std::string help;
};
std::vector<MetricText> metric_texts();

}  // namespace tubed::stats
