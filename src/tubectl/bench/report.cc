#include "tubectl/bench/report.h"

#include <array>
#include <vector>

#include <fmt/format.h>

namespace tubed::tubectl::bench {
namespace {

struct Column {
  std::string_view key;   // JSON key
  std::string_view head;  // column head of the table
};
constexpr std::array<Column, 5> kLatencyColumns{
    {{"mean", "mean us"}, {"p50", "p50"}, {"p99", "p99"}, {"p999", "p99.9"}, {"max", "max"}}};

// In the order of kLatencyColumns.
std::array<double, kLatencyColumns.size()> microseconds(const Latencies& latencies) {
  std::array nanoseconds{latencies.mean(), static_cast<double>(latencies.at(0.5)),
                         static_cast<double>(latencies.at(0.99)),
                         static_cast<double>(latencies.at(0.999)),
                         static_cast<double>(latencies.max())};
  for (double& one : nanoseconds) one /= 1000;
  return nanoseconds;
}

// Only the operations within the measured time count.
double per_second(const Figures& figures) {
  const double seconds = figures.seconds();
  return seconds > 0 ? static_cast<double>(figures.measured) / seconds : 0;
}

}  // namespace

std::string as_table(const Plan& plan, const Figures& figures) {
  const Latencies& latencies = figures.latencies;
  const auto values = microseconds(latencies);
  std::string head = fmt::format("{:<10}{:>14}", "workload", "operations/s");
  std::string line = fmt::format("{:<10}{:>14.0f}", name_of(plan.work), per_second(figures));
  for (std::size_t i = 0; i < kLatencyColumns.size(); ++i) {
    head += fmt::format("{:>12}", kLatencyColumns[i].head);
    line +=
        latencies.count() > 0 ? fmt::format("{:>12.1f}", values[i]) : fmt::format("{:>12}", "-");
  }
  return head + "\n" + line + "\n";
}

std::string as_json(const Plan& plan, const Figures& figures) {
  const Latencies& latencies = figures.latencies;
  const auto values = microseconds(latencies);
  std::string latency_fields;
  for (std::size_t i = 0; i < kLatencyColumns.size(); ++i) {
    const std::string value = latencies.count() > 0 ? fmt::format("{:.3f}", values[i]) : "null";
    latency_fields += fmt::format("{}\"{}\":{}", i > 0 ? "," : "", kLatencyColumns[i].key, value);
  }
  return fmt::format(
      "{{\"workload\":\"{}\",\"clients\":{},\"in-flight\":{},\"body\":{},\"all\":{},\"measured\":{}"
      ","
      "\"seconds\":{:.6f},\"per-second\":{:.1f},\"latency-us\":{{{}}}}}\n",
      name_of(plan.work), plan.clients, plan.in_flight, plan.body_bytes, figures.all,
      figures.measured, figures.seconds(), per_second(figures), latency_fields);
}

}  // namespace tubed::tubectl::bench
