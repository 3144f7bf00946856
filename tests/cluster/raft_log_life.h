// RaftLogLife: a Raft log on one TestDisk, through crash after crash, with the conditions that must
// hold after each.
//
// A naive model has every change since the last start: append, replacement, reset. Each start
// checks the law: the recovered log is the model's log after some of these changes, perhaps with
// part of the next change, and it has every entry that was reported as stored and not replaced
// since. Entries have unique data, so they cannot be confused.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/raft_log.h"
#include "tests/journal/test_disk.h"

namespace tubed::cluster {

// A log as a list of unique numbers that represent entries. Nothing is ever cut from it.
struct ModelLog {
  Index first = 1;
  std::vector<std::uint64_t> ids;

  Index last() const { return first + ids.size() - 1; }
  std::uint64_t at(Index index) const { return ids[index - first]; }
  void truncate(Index from) { ids.resize(from - first); }
  friend bool operator==(const ModelLog&, const ModelLog&) = default;
};

class RaftLogLife final : public RaftLogHost {
 public:
  struct Nature {
    std::uint64_t seed = 0;
    std::uint64_t file_bytes = 1024;
    std::uint64_t data_bytes = 100;  // of an entry, at most
    bool shuffled = false;
    bool faulty = false;  // a failure of the log is not a problem
  };

  explicit RaftLogLife(const Nature& nature);

  journal::TestDisk& disk() { return disk_; }
  // Starts a new process and checks the law. Returns false if the machine was switched off
  // meanwhile, the disk has failed, or a problem was found.
  bool boot();
  // Runs one tick: some changes of the log; the disk does a random part of its operations.
  void tick();
  // Ends the process properly.
  void stop();
  // Ends the process at once.
  void crash(journal::Fate fate);

  // Returns a violated condition, or nothing.
  const std::optional<std::string>& problem() const { return problem_; }
  std::string story() const;
  std::uint64_t torn_tails() const { return torn_tails_; }

  void entries_stored(Index last, Term term) override;
  void request_flush() override { requested_ = true; }
  void report_failure(const std::string& reason) override;
  void report_full(bool full, const std::string& /*reason*/) override { full_ = full; }
  Time now() const override { return now_; }

 private:
  struct Change {
    Index first = 1;
    std::vector<std::uint64_t> ids;
    bool reset = false;
  };

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  void expect(bool agreed, const std::string& what);
  void remember(const std::string& event);
  Entry make_entry(std::uint64_t id) const;
  void change_something();
  void append(Index first, std::uint64_t count);
  void reset();
  void check_memory();
  std::optional<ModelLog> read_log() const;
  bool is_possible(const ModelLog& found) const;
  void check_found(const ModelLog& found);

  Nature nature_;
  journal::Random random_;
  RaftLogOptions options_;
  journal::TestDisk disk_;
  std::unique_ptr<RaftLog> log_;
  Time now_;

  ModelLog model_;               // as in memory, including entries that were cut
  ModelLog begun_;               // at the last start
  std::vector<Change> changes_;  // since then
  Index cut_ = 1;                // earlier entries are not needed
  Index stored_ = 0;             // as reported, and not replaced since
  std::uint64_t next_id_ = 1;
  Term term_ = 1;
  std::uint64_t torn_tails_ = 0;
  bool requested_ = false;
  bool failed_ = false;
  bool full_ = false;
  bool closing_ = false;
  std::optional<std::string> problem_;
  std::deque<std::string> events_;
};

}  // namespace tubed::cluster
