// Rates are differences of the server's counters divided by the time between two snapshots. A
// counter that has decreased shows that the server was restarted, and counts as a rate of 0. After
// a loss of the server, the next snapshot starts without rates. A snapshot that is too early for
// rates changes only what is shown as it is.
#include "tubectl/top/model.h"

#include <charconv>
#include <utility>

namespace tubed::tubectl::top {
namespace {

std::uint64_t counter(const client::StatsBlock& stats, Flow flow) {
  switch (flow) {
    case Flow::puts:
      return stats.count("total-jobs");
    case Flow::reserves:
      return stats.count("cmd-reserve") + stats.count("cmd-reserve-with-timeout") +
             stats.count("cmd-reserve-job");
    case Flow::deletes:
      return stats.count("cmd-delete");
    case Flow::timeouts:
      return stats.count("job-timeouts");
  }
  return 0;
}

double decimal(const client::StatsBlock& stats, std::string_view key) {
  const std::string_view text = stats.text(key).value_or("");
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

double processor_seconds(const client::StatsBlock& stats) {
  return decimal(stats, "rusage-utime") + decimal(stats, "rusage-stime");
}

}  // namespace

void Model::update(Snapshot snapshot) {
  if (taken_ && snapshot.taken - *taken_ < least_) {
    server_ = std::move(snapshot.server);
    tubes.refresh(std::move(snapshot.tubes));
    trouble_.reset();
    return;
  }
  std::optional<double> seconds;
  if (taken_ && snapshot.taken > *taken_) {
    seconds = std::chrono::duration<double>(snapshot.taken - *taken_).count();
  }
  for (std::size_t index = 0; index < kFlows; ++index) {
    const auto flow = static_cast<Flow>(index);
    rates_[index].reset();
    const std::uint64_t after = counter(snapshot.server, flow);
    const std::uint64_t before = std::exchange(counted_[index], after);
    if (!seconds) continue;
    rates_[index] = after > before ? static_cast<double>(after - before) / *seconds : 0;
    histories_[index].add(*rates_[index]);
  }
  cpu_percent_.reset();
  const double used = processor_seconds(snapshot.server);
  const double used_before = std::exchange(processor_seconds_, used);
  if (seconds) cpu_percent_ = 100 * (used - used_before) / *seconds;
  server_ = std::move(snapshot.server);
  tubes.update(std::move(snapshot.tubes), seconds);
  taken_ = snapshot.taken;
  trouble_.reset();
}

void Model::lost(std::string reason) {
  trouble_ = std::move(reason);
  taken_.reset();
}

}  // namespace tubed::tubectl::top
