#include "tests/journal/test_disk.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace tubed::journal {

namespace {

constexpr std::uint64_t kStepBytes = 512;
constexpr const char* kOffReason = "the machine is off";

std::string_view word_of(Operation operation) {
  constexpr std::array<std::string_view, kOperations> kWords = {
      "list",   "open",     "read",  "truncate", "sync", "store",  "remove", "move",
      "create", "allocate", "write", "sync",     "trim", "remove", "reuse"};
  return kWords[static_cast<std::size_t>(operation)];
}

std::string reason(Operation operation, const std::string& name, std::string_view why) {
  return "cannot " + std::string(word_of(operation)) + " " + name + ": " + std::string(why);
}

Outcome refused(Operation operation, const std::string& name, std::string_view why,
                Outcome::Kind kind = Outcome::Kind::failed) {
  return {.kind = kind, .reason = reason(operation, name, why)};
}

}  // namespace

struct TestDisk::Task {
  Operation operation = Operation::sync;
  std::string name = {};
  std::string to = {};  // move, reuse: the new name
  FilePointer file = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;                    // the new size
  std::string data = {};                      // write: all pieces, as at the call
  std::vector<std::string_view> pieces = {};  // write: the offsets of the pieces
  std::vector<std::size_t> ends = {};         // write: the end of each step in `data`
  Sync sync = Sync::no;
  Done done = nullptr;
  Created created = nullptr;
  std::uint64_t asked = 0;   // smaller change numbers were complete at the request
  std::uint64_t change = 0;  // the operation's own change
  std::size_t step = 0;

  std::size_t steps() const {
    switch (operation) {
      case Operation::create:
      case Operation::store:
      case Operation::reuse:
        return 6;
      case Operation::write:
        return ends.size() + (sync == Sync::yes ? 1 : 0);
      case Operation::allocate:
      case Operation::sync:
      case Operation::sync_now:
        return 1;
      default:
        return 2;
    }
  }
};

TestDisk::TestDisk() = default;
TestDisk::TestDisk(TestDisk&& other) noexcept = default;
TestDisk& TestDisk::operator=(TestDisk&& other) noexcept = default;
TestDisk::~TestDisk() = default;

TestDisk::TestDisk(const Contents& files) {
  for (const auto& [name, contents] : files) place(name, contents);
}

// --- Doing requested operations

std::size_t TestDisk::pending() const {
  return queue_.size();
}

std::size_t TestDisk::next_to_run() {
  if (!shuffle_) return 0;
  std::vector<std::size_t> first_of_their_file;
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const bool waits =
        std::any_of(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const Task& earlier) { return earlier.name == queue_[i].name; });
    if (!waits) first_of_their_file.push_back(i);
  }
  return first_of_their_file[(*shuffle_)() % first_of_their_file.size()];
}

bool TestDisk::run_one() {
  if (off_ || queue_.empty()) return false;
  const auto place = queue_.begin() + static_cast<std::ptrdiff_t>(next_to_run());
  Task task = std::move(*place);
  queue_.erase(place);
  const std::optional<Outcome> outcome = perform(task);
  if (!outcome) return false;
  complete(task, *outcome);
  return true;
}

void TestDisk::run_all() {
  while (run_one()) {
  }
}

void TestDisk::submit(Task task) {
  if (!off_) queue_.push_back(std::move(task));
}

Result<void> TestDisk::run_now(Task task) {
  if (off_) return Error{reason(task.operation, task.name, kOffReason)};
  const std::optional<Outcome> outcome = perform(task);
  if (!outcome) return Error{reason(task.operation, task.name, kOffReason)};
  return as_result(*outcome);
}

// Returns nothing if the machine was switched off during the operation.
std::optional<Outcome> TestDisk::perform(Task& task) {
  const Outcome begun = begin(task);
  if (!begun.ok()) {
    fail_partly(task, begun.kind);
    if (off_) return std::nullopt;
    return begun;
  }
  for (; task.step < task.steps(); ++task.step) {
    if (!tick()) return std::nullopt;
    Outcome outcome = do_step(task);
    if (!outcome.ok()) return outcome;
  }
  std::string_view data = task.data;
  for (const std::string_view piece : task.pieces) {
    TUBED_ASSERT(data.starts_with(piece));  // the pieces must not change until `done`
    data.remove_prefix(piece.size());
  }
  return Outcome{};
}

bool TestDisk::tick() {
  if (steps_ >= crash_at_) off_ = true;
  if (!off_) ++steps_;
  return !off_;
}

Outcome TestDisk::begin(const Task& task) {
  note(task);
  const bool only_syncs =
      task.operation == Operation::sync || task.operation == Operation::sync_now;
  if (!only_syncs) {  // sync_file() checks for faults itself
    if (auto fault = fault_of(task.operation, task.name)) return *fault;
  }
  switch (task.operation) {
    case Operation::create:
    case Operation::store:
      if (has(task.name)) return refused(task.operation, task.name, "File exists");
      break;
    case Operation::remove:
    case Operation::remove_now:
      if (!has(task.name) && !half_removed_.contains(task.name)) {
        return refused(task.operation, task.name, "No such file or directory");
      }
      break;
    case Operation::reuse:
      TUBED_ASSERT(file_called(task.name)->contents().size() >= task.bytes);
      [[fallthrough]];
    case Operation::move:
      if (!has(task.name)) return refused(task.operation, task.name, "No such file or directory");
      if (has(task.to)) return refused(task.operation, task.to, "File exists");
      break;
    default:
      break;
  }
  const std::uint64_t growth = growth_of(task);
  if (eaten_) capacity_ = total_bytes() + left_;
  if (growth == 0 || growth + total_bytes() <= capacity_) {
    left_ -= std::min(left_, growth);
    return {};
  }
  return refused(task.operation, task.name, "No space left on device", Outcome::Kind::no_space);
}

std::uint64_t TestDisk::growth_of(const Task& task) const {
  if (task.operation == Operation::reuse) return 0;
  const std::uint64_t before = task.file == nullptr ? 0 : task.file->contents().size();
  std::uint64_t after = task.bytes;
  if (task.operation == Operation::write) after = task.offset + task.data.size();
  return after > before ? after - before : 0;
}

void TestDisk::fail_partly(Task& task, Outcome::Kind kind) {
  std::size_t reach = 0;
  if (kind == Outcome::Kind::no_space) {
    if (task.operation == Operation::trim && tick()) sync_file(task);
    if (task.operation == Operation::reuse && has(task.name)) fail_reuse(task);
    if (task.operation == Operation::remove && has(task.name) && tick()) {
      change_name({.from = task.name, .to = {}, .file = file_called(task.name)});
      half_removed_.insert(task.name);
    }
    return;
  }
  if (task.operation == Operation::write) reach = task.ends.size() / 2;
  if (task.operation == Operation::trim || task.operation == Operation::truncate) reach = 1;
  for (; task.step < reach && tick(); ++task.step) do_step(task);
}

// The first attempt stops at its first step, each further attempt one step later: any step may find
// no space.
void TestDisk::fail_reuse(Task& task) {
  const std::size_t reach = reuses_without_space_++ % (task.steps() - 1) + 1;
  for (; task.step < reach; ++task.step) {
    if (!tick()) return;
    do_step(task);
  }
  if (!tick()) return;
  const std::string name = has(task.to) ? task.to : task.to + ".new";
  change_name({.from = name, .to = {}, .file = task.file});
  half_removed_.insert(task.name);
}

Outcome TestDisk::do_step(Task& task) {
  switch (task.operation) {
    case Operation::create:
    case Operation::store:
      return step_of_create(task);
    case Operation::write:
      return step_of_write(task);
    case Operation::sync:
      return sync_file(task);
    case Operation::sync_now: {
      Outcome outcome = sync_file(task);
      if (outcome.ok()) sync_names();
      return outcome;
    }
    case Operation::reuse:
      return step_of_reuse(task);
    case Operation::truncate:
    case Operation::trim:
    case Operation::allocate:
      if (task.step == 1) return sync_file(task);
      task.change = next_change_++;
      task.file->resize(task.change, task.bytes);
      return {};
    default:
      if (task.step == 1) {
        sync_names();
      } else if (half_removed_.erase(task.name) == 0) {
        change_name({.from = task.name, .to = task.to, .file = file_called(task.name)});
      }
      return {};
  }
}

Outcome TestDisk::step_of_create(Task& task) {
  const std::string unfinished = task.name + ".new";
  switch (task.step) {
    case 0:
      task.file = std::make_shared<TestFile>();
      change_name({.from = {}, .to = unfinished, .file = task.file});
      return {};
    case 1:
      task.file->resize(next_change_++, task.bytes);
      return {};
    case 2:
      task.file->write(next_change_++, 0, task.data);
      return {};
    case 3:
      task.file->sync(next_change_, 0);
      return {};
    case 4:
      change_name({.from = unfinished, .to = task.name, .file = task.file});
      return {};
    default:
      sync_names();
      return {};
  }
}

Outcome TestDisk::step_of_reuse(Task& task) {
  const std::string unfinished = task.to + ".new";
  switch (task.step) {
    case 0:
      task.file = file_called(task.name);
      change_name({.from = task.name, .to = unfinished, .file = task.file});
      return {};
    case 1:
      sync_names();
      return {};
    case 2: {
      std::string image = task.data;
      image.resize(task.bytes);
      task.file->write(next_change_++, 0, image);
      task.file->resize(next_change_++, task.bytes);
      return {};
    }
    case 3:
      task.file->sync(next_change_, 0);
      return {};
    case 4:
      change_name({.from = unfinished, .to = task.to, .file = task.file});
      return {};
    default:
      sync_names();
      return {};
  }
}

Outcome TestDisk::step_of_write(Task& task) {
  if (task.step == task.ends.size()) return sync_file(task);
  if (task.step == 0) task.change = next_change_++;
  const std::size_t from = task.step == 0 ? 0 : task.ends[task.step - 1];
  const std::size_t bytes = task.ends[task.step] - from;
  task.file->write(task.change, task.offset + from, task.data.substr(from, bytes));
  return {};
}

Outcome TestDisk::sync_file(const Task& task) {
  std::optional<Outcome> fault;
  if (task.operation == Operation::sync_now) fault = fault_of(Operation::sync_now, task.name);
  const bool counted = task.operation == Operation::sync || task.operation == Operation::write;
  if (counted) fault = fault_of(Operation::sync, task.name);
  if (fault) {
    task.file->give_up(task.asked, task.change);
    return *fault;
  }
  task.file->sync(task.asked, task.change);
  return {};
}

void TestDisk::complete(const Task& task, const Outcome& outcome) {
  if (task.done) return task.done(outcome);
  FileId id = 0;
  if (outcome.ok()) {
    id = next_file_++;
    open_files_[id] = {task.to.empty() ? task.name : task.to, task.file};
  }
  task.created(outcome, id);
}

// --- Crashes

TestDisk TestDisk::after_crash(Random& random, Fate fate) {
  off_ = true;
  for (Task& task : std::exchange(queue_, {})) {
    std::size_t reach = random() % (task.steps() + 1);
    if (random() % 4 == 0) reach = task.steps();
    if (reach == 0 || !begin(task).ok()) continue;
    for (; task.step < reach; ++task.step) {
      if (!do_step(task).ok()) break;
    }
  }
  TestDisk next;
  next.next_file_ = next_file_ + 1000;  // ids of this disk are invalid on the next
  next.next_change_ = next_change_;
  next.capacity_ = capacity_;
  next.eaten_ = eaten_;
  next.left_ = left_;
  std::map<TestFile*, FilePointer> copies;
  const auto copy_of = [&](const FilePointer& file) {
    FilePointer& copy = copies[file.get()];
    if (copy != nullptr) return copy;
    copy = std::make_shared<TestFile>(*file);
    if (fate == Fate::power_loss) {
      copy->settle(file->after_power_loss(random));
    } else {
      copy->begin_anew();
    }
    return copy;
  };
  next.durable_names_ = durable_names_;
  for (auto& [name, file] : next.durable_names_) file = copy_of(file);
  next.names_ = next.durable_names_;
  for (const NameChange& change : name_changes_) {
    if (fate == Fate::power_loss && coin(random)) continue;
    next.change_name({change.from, change.to, copy_of(change.file)});
  }
  if (fate == Fate::power_loss) next.sync_names();
  return next;
}

// --- Faults

void TestDisk::fail_after(Operation operation, std::uint64_t passes, Outcome::Kind kind,
                          std::string why, std::uint64_t times) {
  faults_[index_of(operation)] = {
      .passes = passes, .times = times, .kind = kind, .why = std::move(why)};
}

std::optional<Outcome> TestDisk::fault_of(Operation operation, const std::string& name) {
  ++counts_[index_of(operation)];
  std::optional<Fault>& fault = faults_[index_of(operation)];
  if (!fault) return std::nullopt;
  if (fault->passes > 0) {
    --fault->passes;
    return std::nullopt;
  }
  const Outcome outcome = refused(operation, name, fault->why, fault->kind);
  if (--fault->times == 0) fault.reset();
  return outcome;
}

Result<void> TestDisk::look_at(Operation operation, const std::string& name) {
  if (off_) return Error{reason(operation, name, kOffReason)};
  if (const auto fault = fault_of(operation, name)) return Error{fault->reason};
  return {};
}

// --- The list of operations

void TestDisk::note(const Task& task) {
  std::string line = std::string(word_of(task.operation)) + " " + task.name;
  if (task.operation == Operation::write) {
    line += " " + std::to_string(task.offset) + "+" + std::to_string(task.data.size());
    if (task.sync == Sync::yes) line += " sync";
  } else if (task.operation == Operation::move || task.operation == Operation::reuse) {
    line += " to " + task.to;
  } else if (task.steps() != 1 || task.operation == Operation::allocate) {
    if (task.bytes > 0 || task.file != nullptr) line += " to " + std::to_string(task.bytes);
  }
  log_.push_back(std::move(line));
}

std::vector<std::string> TestDisk::take_log() {
  return std::exchange(log_, {});
}

// --- storage.h

TestDisk::Task TestDisk::on_file(Operation operation, FileId id) {
  const auto found = open_files_.find(id);
  TUBED_ASSERT(off_ || found != open_files_.end());
  Task task{.operation = operation, .asked = next_change_};
  if (found == open_files_.end()) return task;
  task.name = found->second.name;
  task.file = found->second.file;
  return task;
}

TestDisk::Task TestDisk::on_name(Operation operation, const std::string& name) {
  return {.operation = operation, .name = name};
}

Result<std::vector<FileInfo>> TestDisk::list() {
  if (const auto looked = look_at(Operation::list, "the directory"); !looked) return looked.error();
  std::vector<FileInfo> found;
  for (const auto& [name, file] : names_) {
    if (name.find('/') == std::string::npos) found.push_back({name, file->contents().size()});
  }
  return found;
}

Result<FileId> TestDisk::open(const std::string& name) {
  if (const auto looked = look_at(Operation::open, name); !looked) return looked.error();
  if (!has(name)) return Error{reason(Operation::open, name, "No such file or directory")};
  open_files_[next_file_] = {name, file_called(name)};
  return next_file_++;
}

void TestDisk::close(FileId file) {
  const Task closed = on_file(Operation::open, file);
  const bool busy = std::any_of(queue_.begin(), queue_.end(),
                                [&](const Task& task) { return task.file == closed.file; });
  TUBED_ASSERT(off_ || closed.file == nullptr || !busy);
  open_files_.erase(file);
}

Result<std::string> TestDisk::read(FileId file) {
  const Task task = on_file(Operation::read, file);
  if (const auto looked = look_at(Operation::read, task.name); !looked) return looked.error();
  return task.file->contents();
}

Result<void> TestDisk::truncate(FileId file, std::uint64_t bytes) {
  Task task = on_file(Operation::truncate, file);
  task.bytes = bytes;
  return run_now(std::move(task));
}

Result<void> TestDisk::sync_now(FileId file) {
  return run_now(on_file(Operation::sync_now, file));
}

Result<void> TestDisk::store(const std::string& name, std::string_view contents) {
  Task task = on_name(Operation::store, name);
  task.data = contents;
  task.bytes = contents.size();
  return run_now(std::move(task));
}

Result<void> TestDisk::remove_now(const std::string& name) {
  return run_now(on_name(Operation::remove_now, name));
}

Result<void> TestDisk::move(const std::string& from, const std::string& to) {
  Task task = on_name(Operation::move, from);
  task.to = to;
  return run_now(std::move(task));
}

void TestDisk::create(const std::string& name, std::string head, std::uint64_t bytes,
                      Created done) {
  TUBED_ASSERT(head.size() <= bytes);
  Task task = on_name(Operation::create, name);
  task.data = std::move(head);
  task.bytes = bytes;
  task.created = std::move(done);
  submit(std::move(task));
}

void TestDisk::allocate(FileId file, std::uint64_t from, std::uint64_t to, Done done) {
  Task task = on_file(Operation::allocate, file);
  TUBED_ASSERT(off_ || (task.file->contents().size() == from && from <= to));
  task.bytes = to;
  task.done = std::move(done);
  submit(std::move(task));
}

void TestDisk::write(FileId file, std::uint64_t offset, std::vector<std::string_view> pieces,
                     Sync sync, Done done) {
  Task task = on_file(Operation::write, file);
  task.offset = offset;
  task.sync = sync;
  task.done = std::move(done);
  for (const std::string_view piece : pieces) {
    task.data += piece;
    std::size_t end = task.data.size() - piece.size();
    while (end < task.data.size()) {
      end = std::min(end + kStepBytes, task.data.size());
      task.ends.push_back(end);
    }
  }
  task.pieces = std::move(pieces);
  submit(std::move(task));
}

void TestDisk::sync(FileId file, Done done) {
  Task task = on_file(Operation::sync, file);
  task.done = std::move(done);
  submit(std::move(task));
}

void TestDisk::trim(FileId file, std::uint64_t bytes, Done done) {
  Task task = on_file(Operation::trim, file);
  task.bytes = bytes;
  task.done = std::move(done);
  submit(std::move(task));
}

void TestDisk::remove(const std::string& name, Done done) {
  Task task = on_name(Operation::remove, name);
  task.done = std::move(done);
  submit(std::move(task));
}

void TestDisk::reuse(const std::string& from, const std::string& to, std::string head,
                     std::uint64_t bytes, Created done) {
  TUBED_ASSERT(head.size() <= bytes);
  Task task = on_name(Operation::reuse, from);
  task.to = to;
  task.data = std::move(head);
  task.bytes = bytes;
  task.created = std::move(done);
  submit(std::move(task));
}

}  // namespace tubed::journal
