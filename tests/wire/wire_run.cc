// wire_run: plays transcripts on real servers, each transcript on its own process.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/wire/cutting_driver.h"
#include "tests/wire/run.h"
#include "tests/wire/socket_driver.h"
#include "tests/wire/transcript.h"
#include "text/numbers.h"

namespace {

using tubed::wire::CuttingDriver;
using tubed::wire::PlayResult;
using tubed::wire::ServerKind;
using tubed::wire::ServerProgram;
using tubed::wire::SocketDriver;
using tubed::wire::Transcript;

constexpr const char* kUsage =
    "usage: wire_run --server tubed|test-mode|beanstalkd --binary PATH [--clock LIBRARY] "
    "[--late] [--jobs N] [--bytewise] [--tls] FILE...\n"
    "       wire_run --list-differs FILE...\n"
    "A FILE may be a directory: its *.wire files. LIBRARY: libstopped_clock.so; without it, tubed "
    "and\n"
    "beanstalkd play only the transcripts that do not depend on time. --late plays these while two "
    "seconds\n"
    "pass after each statement, as on a slow machine.\n";

// For a transcript that must differ, one wrong reply is enough, so a missing reply is awaited only
// briefly.
constexpr std::chrono::milliseconds kLimitOfDiffering{1000};

struct Request {
  ServerProgram program;
  std::size_t jobs = 8;
  bool has_server = false;
  bool bytewise = false;
  bool tls = false;
  bool list_differs = false;
  std::vector<std::string> files;
};

enum class Status { passed, failed, differed, skipped };

struct Played {
  Status status = Status::skipped;
  PlayResult result;
};

bool parse_count(std::string_view text, std::size_t& count) {
  count = tubed::parse_number<std::size_t>(text).value_or(0);
  return count > 0;
}

bool parse_server(std::string_view name, Request& request) {
  request.has_server = name == "tubed" || name == "test-mode" || name == "beanstalkd";
  request.program.kind = name == "tubed"       ? ServerKind::tubed
                         : name == "test-mode" ? ServerKind::test_mode
                                               : ServerKind::beanstalkd;
  return request.has_server;
}

void add_file(const std::string& path, std::vector<std::string>& files) {
  if (!std::filesystem::is_directory(path)) {
    files.push_back(path);
    return;
  }
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".wire") found.push_back(entry.path().string());
  }
  std::ranges::sort(found);
  files.insert(files.end(), found.begin(), found.end());
}

bool parse_arguments(int argc, char** argv, Request& request) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const std::string_view next = i + 1 < argc ? argv[i + 1] : "";
    if (argument == "--server") {
      if (!parse_server(next, request)) return false;
      ++i;
    } else if (argument == "--binary") {
      request.program.binary = next;
      ++i;
    } else if (argument == "--clock") {
      request.program.clock = std::filesystem::absolute(next).string();
      ++i;
    } else if (argument == "--late") {
      request.program.step = std::chrono::seconds(2);
    } else if (argument == "--jobs") {
      if (!parse_count(next, request.jobs)) return false;
      ++i;
    } else if (argument == "--bytewise") {
      request.bytewise = true;
    } else if (argument == "--tls") {
      request.tls = true;
    } else if (argument == "--list-differs") {
      request.list_differs = true;
    } else if (argument.starts_with("--")) {
      return false;
    } else {
      add_file(argv[i], request.files);
    }
  }
  const bool can_tls = !request.tls || request.program.kind == ServerKind::tubed;
  const bool can_be_late =
      request.program.step == tubed::Duration::zero() ||
      (!request.program.clock.empty() && request.program.kind != ServerKind::test_mode);
  const bool can_run =
      can_be_late && request.has_server && !request.program.binary.empty() && can_tls;
  return !request.files.empty() && (request.list_differs || can_run);
}

bool load_all(const std::vector<std::string>& files, std::vector<Transcript>& transcripts) {
  bool all_good = true;
  for (const std::string& file : files) {
    auto loaded = tubed::wire::load(file);
    if (loaded) {
      transcripts.push_back(std::move(*loaded));
    } else {
      std::fprintf(stderr, "%s\n", loaded.error().message.c_str());
      all_good = false;
    }
  }
  return all_good;
}

PlayResult play_on_fresh_server(const Transcript& transcript, const ServerProgram& program,
                                bool bytewise) {
  auto driver = SocketDriver::start(program, transcript.options);
  if (!driver) return {{transcript.file + ": " + driver.error().message}, 0};
  CuttingDriver cutting = CuttingDriver::byte_by_byte(**driver);
  return bytewise ? tubed::wire::play(transcript, cutting)
                  : tubed::wire::play(transcript, **driver);
}

Played play(const Transcript& transcript, const Request& request) {
  const bool original = request.program.kind == ServerKind::beanstalkd;
  const bool runs = request.program.kind != ServerKind::test_mode && request.program.clock.empty();
  const bool is_late = request.program.step > tubed::Duration::zero();
  if ((runs || is_late) && transcript.is_timed) return {};
  if (original && transcript.needs_tubed) return {};
  const bool must_differ = original && !transcript.differs.empty();
  ServerProgram program = request.program;
  Played played;
  if (!must_differ) {
    // The row timers-at-equality: beanstalkd acts a moment after a deadline.
    if (original && !is_late) program.step = std::chrono::microseconds(1);
    played.result = play_on_fresh_server(transcript, program, request.bytewise);
    played.status = played.result.passed() ? Status::passed : Status::failed;
    return played;
  }
  program.limit = kLimitOfDiffering;
  played.result = play_on_fresh_server(transcript, program, request.bytewise);
  const bool passed = played.result.passed();
  played.status = passed ? Status::failed : Status::differed;
  played.result.failures.clear();
  if (passed) {
    played.result.failures.push_back(transcript.file +
                                     ": no longer differs: " + transcript.differs);
  }
  return played;
}

std::vector<Played> play_all(const std::vector<Transcript>& transcripts, const Request& request) {
  std::vector<Played> results(transcripts.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < transcripts.size(); i = next++) {
      results[i] = play(transcripts[i], request);
    }
  };
  std::vector<std::jthread> workers;
  const std::size_t count = std::min(request.jobs, transcripts.size());
  for (std::size_t i = 0; i < count; ++i) workers.emplace_back(work);
  workers.clear();
  return results;
}

int report(const std::vector<Played>& results) {
  std::size_t counts[4] = {};
  std::size_t exchanges = 0;
  for (const Played& played : results) {
    ++counts[static_cast<std::size_t>(played.status)];
    if (played.status == Status::passed) exchanges += played.result.exchanges;
    for (const std::string& failure : played.result.failures) std::printf("%s\n", failure.c_str());
  }
  const auto count = [&](Status status) { return counts[static_cast<std::size_t>(status)]; };
  std::printf(
      "%zu exchanges compared byte for byte in %zu transcripts; %zu differ as decided; "
      "%zu not for this server\n",
      exchanges, count(Status::passed), count(Status::differed), count(Status::skipped));
  std::printf("%zu passed, %zu failed\n", count(Status::passed) + count(Status::differed),
              count(Status::failed));
  // A run that has played no transcript has not passed.
  return count(Status::failed) == 0 && exchanges > 0 ? 0 : 1;
}

// Plays all transcripts with TLS, with a certificate made for this run.
int play_with_tls(const std::vector<Transcript>& transcripts, Request& request) {
  std::string directory = "/tmp/tubed-wire-tls-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) return 2;
  auto made = tubed::wire::make_certificate(directory);
  int status = 2;
  if (made) {
    request.program.tls = *made;
    status = report(play_all(transcripts, request));
  } else {
    std::fprintf(stderr, "%s\n", made.error().message.c_str());
  }
  std::filesystem::remove_all(directory);
  return status;
}

int list_differs(const std::vector<Transcript>& transcripts) {
  std::set<std::string> rows;
  for (const Transcript& transcript : transcripts) {
    if (!transcript.differs.empty()) rows.insert(transcript.differs);
  }
  for (const std::string& row : rows) std::printf("%s\n", row.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Request request;
  if (!parse_arguments(argc, argv, request)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  std::vector<Transcript> transcripts;
  if (!load_all(request.files, transcripts)) return 2;
  if (request.list_differs) return list_differs(transcripts);
  if (request.tls) return play_with_tls(transcripts, request);
  return report(play_all(transcripts, request));
}
