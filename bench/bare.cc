#include "bench/bare.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace tubed::bench {
namespace {

// Preallocated or filled with zeros; when the file is full, the next write is at its beginning.
constexpr std::size_t kAheadBytes = 32 * 1024 * 1024;

Error failure(const char* what, const std::string& file) {
  return {fmt::format("{} of {}: {}", what, file, std::strerror(errno))};
}

class File {
 public:
  explicit File(const std::string& name)
      : name_(name),
        descriptor_(::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600)) {}
  ~File() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    ::unlink(name_.c_str());
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  std::string name_;
  int descriptor_;
};

Result<void> prepare(int descriptor, const BarePlan& plan) {
  if (plan.space == Space::reserved &&
      ::fallocate(descriptor, 0, 0, static_cast<off_t>(kAheadBytes)) != 0) {
    return failure("allocation", plan.file);
  }
  if (plan.space == Space::written) {
    const std::string zeros(1024 * 1024, '\0');
    for (std::size_t at = 0; at < kAheadBytes; at += zeros.size()) {
      const ssize_t done = ::pwrite(descriptor, zeros.data(), zeros.size(), static_cast<off_t>(at));
      if (done != static_cast<ssize_t>(zeros.size())) return failure("write", plan.file);
    }
  }
  if (::fsync(descriptor) != 0) return failure("sync", plan.file);
  return {};
}

}  // namespace

Result<Figures> run_bare(const BarePlan& plan) {
  const File file(plan.file);
  if (file.descriptor() < 0) return failure("creation", plan.file);
  TRY(prepare(file.descriptor(), plan));

  const std::string record(plan.bytes, 'x');
  Figures figures;
  figures.latencies = tubectl::bench::Latencies(plan.each_latency);
  std::size_t at = 0;
  const Clock::time_point start = Clock::now();
  Clock::time_point now = start;
  while (now - start < plan.time) {
    if (::pwrite(file.descriptor(), record.data(), record.size(), static_cast<off_t>(at)) !=
        static_cast<ssize_t>(record.size())) {
      return failure("write", plan.file);
    }
    if (::fdatasync(file.descriptor()) != 0) return failure("sync", plan.file);
    const Clock::time_point done = Clock::now();
    figures.latencies.add(done - now);
    ++figures.all;
    now = done;
    at += record.size();
    if (plan.space != Space::growing && at + record.size() > kAheadBytes) at = 0;
  }
  figures.time = now - start;
  figures.measured = figures.all;
  return figures;
}

}  // namespace tubed::bench
