#include "server/tasks.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "disk/file_storage.h"
#include "journal/backup.h"
#include "journal/dump.h"
#include "journal/live.h"
#include "journal/salvage.h"
#include "journal/segment.h"
#include "node/cluster_tasks.h"
#include "os/clock.h"
#include "os/exit_codes.h"
#include "os/process.h"

namespace tubed::server {

namespace {

using disk::FileStorage;
using OpenStorage = Result<std::unique_ptr<FileStorage>>;

void print_line(std::string_view line) {
  fmt::print("{}\n", line);
}

// Without a server no monotonic time is needed: deadlines remain wall clock time.
constexpr journal::WallClock kWallTimeOnly{};

Result<void> dump(FileStorage& storage) {
  return journal::dump(storage, print_line);
}

Result<void> check(FileStorage& storage, const std::string& directory) {
  auto found = TRY(journal::examine_live(storage, kWallTimeOnly));
  fmt::print("{}", journal::describe(found));
  return node::print_node(directory);
}

Result<void> salvage(FileStorage& from, FileStorage& to, std::uint64_t segment_bytes) {
  journal::LogCopy copy(to, {.directory = os::random_number(),
                             .segment_bytes = segment_bytes,
                             .clock = kWallTimeOnly,
                             .now = os::wall_time().count()});
  TRY(journal::salvage(from, copy, kWallTimeOnly, print_line));
  return {};
}

Result<void> back_up(FileStorage& from, FileStorage& to) {
  auto report = TRY(journal::back_up(from, to, &to));
  print_line(fmt::format("copied {} segments, {} bytes, {} facts", report.segments, report.bytes,
                         report.next_lsn));
  return {};
}

// A server creates the first segment when it starts. A directory without a segment is not the
// journal of any server that has run.
Result<void> expect_segments(FileStorage& storage, const std::string& directory) {
  auto files = TRY(storage.list());
  const auto is_segment = [](const journal::FileInfo& file) {
    return journal::sequence_of(file.name).has_value();
  };
  if (std::ranges::any_of(files, is_segment)) return {};
  return Error{
      fmt::format("journal directory {}: no segment, so there is nothing to copy yet", directory)};
}

// Removes an empty new directory after a failure; the task can then be repeated. A directory with a
// part of the copy stays.
void clear_new_directory(FileStorage& storage, const std::string& directory, bool was_there) {
  auto files = storage.list();
  if (!files || !files->empty()) return;
  std::error_code ignored;
  std::filesystem::remove(directory + "/lock", ignored);
  if (!was_there) std::filesystem::remove(directory, ignored);
}

Result<void> run(const CommandLine& line, const Settings& settings) {
  loop::Loop loop;
  const bool copies = line.task == Task::salvage || line.task == Task::backup;
  const std::string& source = copies ? settings.journal_directory : line.task_directory;
  // Salvage needs the lock, because no server may write to the journal. The other tasks only read.
  auto from = TRY(FileStorage::open(
      loop, source,
      line.task == Task::salvage ? FileStorage::Mode::owner : FileStorage::Mode::read_only));
  if (line.task == Task::dump) return dump(*from);
  if (line.task == Task::check) return check(*from, source);
  if (line.task == Task::backup) TRY(expect_segments(*from, source));
  std::error_code ignored;
  const bool was_there = std::filesystem::exists(line.task_directory, ignored);
  auto to = TRY(FileStorage::open(loop, line.task_directory, FileStorage::Mode::create));
  auto done = line.task == Task::salvage ? salvage(*from, *to, segment_bytes_in_force(settings))
                                         : back_up(*from, *to);
  if (!done) clear_new_directory(*to, line.task_directory, was_there);
  return done;
}

}  // namespace

int run_task(const CommandLine& line, const Settings& settings) {
  const auto done = run(line, settings);
  if (done) return 0;
  std::fflush(stdout);
  fmt::print(stderr, "tubed: {}\n", done.error().message);
  return os::kExitJournal;
}

}  // namespace tubed::server
