#include "api/history.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/answer_json.h"
#include "text/numbers.h"

namespace tubed::api {

void History::add(std::uint64_t seconds, std::string_view stats) {
  Sample sample{};
  sample[0] = seconds;
  for_each_line(stats, [&](std::string_view line) {
    const std::size_t colon = line.find(": ");
    const auto key = std::ranges::find(kKeys, line.substr(0, colon));
    if (colon == std::string_view::npos || key == kKeys.end()) return;
    const std::string_view value = line.substr(colon + 2);
    sample[static_cast<std::size_t>(key - kKeys.begin()) + 1] =
        leading_number<std::uint64_t>(value);
  });
  if (samples_.size() < kSamples) {
    samples_.push_back(sample);
    return;
  }
  samples_[oldest_] = sample;
  oldest_ = (oldest_ + 1) % kSamples;
}

std::string History::to_json() const {
  std::string text = fmt::format("{{\"interval\":{},\"columns\":[\"time\",\"{}\"],\"samples\":[",
                                 whole_seconds(kInterval), fmt::join(kKeys, "\",\""));
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    const Sample& sample = samples_[(oldest_ + i) % samples_.size()];
    fmt::format_to(std::back_inserter(text), "{}[{}]", i == 0 ? "" : ",", fmt::join(sample, ","));
  }
  return text + "]}\n";
}

}  // namespace tubed::api
