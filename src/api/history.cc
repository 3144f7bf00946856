#include "api/history.h"

#include <algorithm>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tubed::api {

namespace {

// Takes the numbers of the keys that are kept, in their order.
class KeptNumbers final : public protocol::BlockSink {
 public:
  explicit KeptNumbers(std::span<std::uint64_t, History::kKeys.size()> numbers)
      : numbers_(numbers) {}

  void member(std::string_view key, const protocol::Value& value) override {
    const auto kept = std::ranges::find(History::kKeys, key);
    const auto* number = std::get_if<std::uint64_t>(&value);
    if (kept == History::kKeys.end() || number == nullptr) return;
    numbers_[static_cast<std::size_t>(kept - History::kKeys.begin())] = *number;
  }

 private:
  std::span<std::uint64_t, History::kKeys.size()> numbers_;
};

}  // namespace

void History::add(std::uint64_t seconds, const protocol::Block& stats) {
  Sample sample{};
  sample[0] = seconds;
  KeptNumbers numbers{std::span(sample).subspan<1>()};
  stats.write(numbers);
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
