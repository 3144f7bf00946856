// MetricsPage: all metrics in Prometheus' text format (version 0.0.4), made in pieces, so that a
// page of 10,000 tubes holds up nobody.
//
// It reads the queue and never changes it. The lines of the server as a whole are made with the
// page, and those of a tube when its piece is made: the queue may change between two pieces. A tube
// that is created or removed meanwhile is in some families and not in others; none is listed twice.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "stats/rows.h"

namespace tubed::stats {

class MetricsPage {
 public:
  // `engine` outlives the page; `server` is used by the constructor only.
  MetricsPage(const ServerState& server, const engine::Engine& engine);

  // Appends the next bytes of the page to `text`, `bytes` at most; a piece may end in the middle of
  // a line, and may be empty where many tubes have nothing to tell. False: nothing was left.
  // Precondition: bytes > 0. O(bytes + 1,000 tubes).
  bool append_piece(Time now, std::size_t bytes, std::string& text);

 private:
  bool make_more(Time now, std::size_t bytes);

  const engine::Engine& engine_;
  std::string made_;        // and not yet given
  std::size_t given_ = 0;   // of what was made
  std::size_t family_ = 0;  // of the tubes, that is at work
  std::string behind_;      // the tube behind which it goes on
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
