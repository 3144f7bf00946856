// bench_synced_writes: write + fdatasync in a loop without a server, the minimal cost of the disk.
// Prints the measurements as one line of JSON. bench/durable_puts compares them with the servers.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/result.h"
#include "bench/command_line.h"
#include "tubectl/bench/latencies.h"

namespace {

using namespace tubed;
using tubectl::bench::Clock;
using tubectl::bench::Figures;
using tubectl::bench::Latencies;

// Preallocated or filled with zeros; when the file is full, the next write is at its beginning.
constexpr std::size_t kAheadBytes = 32 * 1024 * 1024;

// Each write makes the file longer; fallocate() has allocated the space; or zeros fill it.
constexpr std::array<std::string_view, 3> kSpaces{"growing", "reserved", "written"};

struct Options {
  std::string file;
  std::size_t bytes = 0;
  std::string space = "growing";
  double seconds = 3;
  std::string latencies;
};

constexpr std::array kRows{
    options::kHelpOption,
    options::option<&Options::file>({.names = "--file",
                                     .type = options::kFile,
                                     .help = "a new file, removed at the end",
                                     .required = true}),
    options::option<&Options::bytes>({.names = "--bytes",
                                      .type = options::count(1, 1024 * 1024),
                                      .help = "of one write",
                                      .required = true}),
    options::option<&Options::space>({.names = "--space",
                                      .type = options::choice("SPACE", kSpaces),
                                      .help = "the kind of space that is written to",
                                      .shows_default = true}),
    options::option<&Options::seconds>({.names = "--seconds",
                                        .type = options::time(0, 1e6),
                                        .help = "for how long",
                                        .shows_default = true}),
    options::option<&Options::latencies>({.names = "--latencies",
                                          .type = options::kFile,
                                          .help = "file for each one's nanoseconds, 4 bytes each"}),
};

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

bool write_at(int descriptor, const std::string& data, std::size_t at) {
  return ::pwrite(descriptor, data.data(), data.size(), static_cast<off_t>(at)) ==
         static_cast<ssize_t>(data.size());
}

Result<void> prepare(int descriptor, const Options& options) {
  if (options.space == "reserved" &&
      ::fallocate(descriptor, 0, 0, static_cast<off_t>(kAheadBytes)) != 0) {
    return failure("allocation", options.file);
  }
  if (options.space == "written") {
    const std::string zeros(1024 * 1024, '\0');
    for (std::size_t at = 0; at < kAheadBytes; at += zeros.size()) {
      if (!write_at(descriptor, zeros, at)) return failure("write", options.file);
    }
  }
  if (::fsync(descriptor) != 0) return failure("sync", options.file);
  return {};
}

Result<Figures> write_and_sync(const Options& options) {
  const File file(options.file);
  if (file.descriptor() < 0) return failure("creation", options.file);
  TRY(prepare(file.descriptor(), options));

  const std::string record(options.bytes, 'x');
  Figures figures;
  figures.latencies = Latencies(!options.latencies.empty());
  std::size_t at = 0;
  const Clock::time_point start = Clock::now();
  Clock::time_point now = start;
  while (now - start < std::chrono::duration<double>(options.seconds)) {
    if (!write_at(file.descriptor(), record, at)) return failure("write", options.file);
    if (::fdatasync(file.descriptor()) != 0) return failure("sync", options.file);
    const Clock::time_point done = Clock::now();
    figures.latencies.add(done - now);
    ++figures.all;
    now = done;
    at += record.size();
    if (options.space != "growing" && at + record.size() > kAheadBytes) at = 0;
  }
  figures.time = now - start;
  figures.measured = figures.all;
  if (!options.latencies.empty()) TRY(figures.latencies.write(options.latencies));
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const auto exit_code = bench::take_command_line(
      "bench_synced_writes", "write + fdatasync, again and again.", kRows, argc, argv, &options);
  if (exit_code) return *exit_code;
  const auto figures = write_and_sync(options);
  if (!figures) {
    fmt::print(stderr, "bench_synced_writes: {}\n", figures.error().message);
    return 1;
  }
  fmt::print("{{\"all\": {}, \"measured\": {}, \"seconds\": {:.6f}}}\n", figures.value().all,
             figures.value().measured, figures.value().seconds());
  return 0;
}
