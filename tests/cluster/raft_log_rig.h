// RaftLogRig: a Raft log on a TestDisk, with a host that records what the log reports.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "cluster/raft_log.h"
#include "tests/journal/test_disk.h"

namespace tubed::cluster {

inline constexpr std::uint64_t kTestCluster = 0x1234'5678'9abc'def0;

inline Entry entry_of(Term term, std::string_view data, EntryType type = EntryType::facts) {
  return {.term = term, .type = type, .data = Bytes::copy_of(data)};
}

// Returns `count` entries of this term with different data.
inline std::vector<Entry> entries_of(Term term, std::size_t count, std::size_t bytes = 10) {
  static std::uint64_t made = 0;
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < count; ++i) {
    std::string data = std::to_string(++made);
    data.resize(bytes, 'x');
    entries.push_back(entry_of(term, data));
  }
  return entries;
}

class RaftLogRig final : public RaftLogHost {
 public:
  explicit RaftLogRig(std::uint64_t file_bytes = 1024) {
    options.file_bytes = file_bytes;
    options.cluster = kTestCluster;
  }

  journal::TestDisk disk;
  RaftLogOptions options;
  Time time;
  std::unique_ptr<RaftLog> log;
  std::vector<std::pair<Index, Term>> reports;
  std::optional<std::string> failure;
  bool full = false;

  // Returns the error, or nothing.
  std::optional<Error> open() {
    log.reset();
    auto opened = RaftLog::open(disk, *this, options);
    if (!opened) return opened.error();
    log = std::move(opened).value();
    return {};
  }
  // Ends the process and starts another with the durable files.
  std::optional<Error> restart() {
    log.reset();
    disk = journal::TestDisk(disk.durable_files());
    return open();
  }
  void append(Index first, const std::vector<Entry>& entries) { log->append(first, entries); }
  void append(const std::vector<Entry>& entries) { log->append(log->last() + 1, entries); }
  // Runs the log until nothing is left to do at this time.
  void settle() {
    do {
      requested = false;
      log->flush();
      disk.run_all();
    } while (requested);
  }
  void store(const std::vector<Entry>& entries) {
    append(entries);
    settle();
  }
  bool closed() {
    bool is_closed = false;
    log->close([&] { is_closed = true; });
    settle();
    return is_closed;
  }
  // Returns index and term of each entry: "3:1 4:1".
  std::string terms() const {
    std::string text;
    for (Index i = log->first(); i <= log->last(); ++i) {
      if (!text.empty()) text += ' ';
      text += std::to_string(i) + ":" + std::to_string(log->term_of(i));
    }
    return text;
  }

  void entries_stored(Index last, Term term) override { reports.emplace_back(last, term); }
  void request_flush() override { requested = true; }
  void report_failure(const std::string& reason) override { failure = reason; }
  void report_full(bool now_full, const std::string& /*reason*/) override { full = now_full; }
  Time now() const override { return time; }

  bool requested = false;
};

}  // namespace tubed::cluster
