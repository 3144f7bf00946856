// Machine: the disk of a simulated machine, and the lives of the process on it.
//
// machine.cc replaces the functions of os/ (clock.h, process.h, secret_file.h, socket.h),
// storage.cc disk/file_storage.h and disk/directory_tree.h. They act on the current machine.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/journal/test_disk.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/world.h"

namespace tubed::simulation {

// Steps at which a process may end.
enum class DiskEvent : std::uint8_t {
  write,        // a write is requested
  other_file,   // a write to another file than the last is requested
  written,      // an operation is done but not yet reported
  sync,         // a sync is requested
  change_name,  // a file is created, reused or removed
};
inline constexpr std::size_t kDiskEvents = 5;

// The process has called os::exit_now(). Thrown through the loop.
struct EndedAtOnce {
  int code;
};

class Machine {
 public:
  explicit Machine(World& world);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  static Machine& current();

  journal::TestDisk& disk() { return disk_; }

  // Schedules the next operation of the disk, if any. Operations run one by one, at random times.
  void schedule();
  // Does an operation of the disk now, if any is pending.
  void run_one();
  // Calls `event` at each step, within the call of the process.
  void on_event(std::function<void(DiskEvent)> event) { event_ = std::move(event); }
  void report(DiskEvent event);
  void report_write(journal::FileId file);
  // Makes all operations fast.
  void calm_down() { is_calm_ = true; }

  // Ends the process: its pending operations are lost or torn according to `fate`. The process may
  // still run its destructors, which use the old disk until begin_process().
  void end_process(journal::Fate fate);
  void begin_process();

  // Steps the wall clock, and makes the process's timers for that readable
  // (TFD_TIMER_CANCEL_ON_SET).
  void step_wall_clock(Duration by);
  void add_clock_watch(int descriptor) { clock_watches_.push_back(descriptor); }

  // Sets the contents of a file with secrets (os/secret_file.h).
  void set_secret(const std::string& file, std::string text) { secrets_[file] = std::move(text); }
  const std::map<std::string, std::string>& secrets() const { return secrets_; }

  std::uint64_t boot() const { return boot_; }
  bool first_of_boot() const { return recorded_boot_ != boot_; }
  void record_boot() { recorded_boot_ = boot_; }
  std::uint64_t random_number() { return process_chance_.number(); }

 private:
  World& world_;
  Chance chance_;
  Chance process_chance_;
  journal::Random random_;
  journal::TestDisk disk_;
  std::unique_ptr<journal::TestDisk> next_disk_;
  std::function<void(DiskEvent)> event_;
  journal::FileId last_file_ = 0;
  std::vector<int> clock_watches_;  // of this process
  std::map<std::string, std::string> secrets_;
  std::uint64_t life_ = 0;
  std::uint64_t boot_ = 1;
  std::uint64_t recorded_boot_ = 0;
  bool scheduled_ = false;
  bool is_calm_ = false;
};

}  // namespace tubed::simulation
