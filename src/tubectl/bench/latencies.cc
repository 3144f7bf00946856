#include "tubectl/bench/latencies.h"

#include <algorithm>
#include <cstdio>

#include "client/system_error.h"

namespace tubed::tubectl::bench {

// A negative duration counts as 0.
void Latencies::add(Clock::duration taken) {
  const auto nanoseconds = std::max<std::int64_t>(0, std::chrono::nanoseconds(taken).count());
  histogram_.add(nanoseconds);
  ++count_;
  max_ = std::max(max_, nanoseconds);
  if (!keep_each_) return;
  each_.push_back(static_cast<std::uint32_t>(std::min<std::int64_t>(nanoseconds, UINT32_MAX)));
}

double Latencies::mean() const {
  return count_ == 0 ? 0 : histogram_.sum() / static_cast<double>(count_);
}

Result<void> Latencies::write(const std::string& file) const {
  TUBED_ASSERT(keep_each_);
  std::string bytes;
  bytes.reserve(each_.size() * 4);
  for (const std::uint32_t one : each_) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<char>((one >> shift) & 0xFF));
    }
  }
  std::FILE* const stream = std::fopen(file.c_str(), "wb");
  if (stream == nullptr) return client::system_error("cannot open " + file);
  const bool whole = std::fwrite(bytes.data(), 1, bytes.size(), stream) == bytes.size();
  if (std::fclose(stream) != 0 || !whole) return client::system_error("cannot write " + file);
  return {};
}

}  // namespace tubed::tubectl::bench
