// Machine: the disk of a simulated machine, and the lives of the process on it.
//
// machine.cc has the functions of os/ (clock.h, process.h, secret_file.h, socket.h), and storage.cc
// those of loop/file_storage.h and loop/directory_tree.h, which the simulation has in the place of
// those of src/. They act on the current machine.
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
  other_file,   // a write is requested into another file than the last
  written,      // an operation has been done, and was not reported before
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

  // Plans the next operation of the disk, if it has any. Operations run one by one, at random
  // times.
  void schedule();
  // Does an operation of the disk now, if it has any.
  void run_one();
  // `event` is called at each step, from within the call of the process.
  void on_event(std::function<void(DiskEvent)> event) { event_ = std::move(event); }
  void report(DiskEvent event);
  void report_write(journal::FileId file);
  // No operation takes long.
  void calm_down() { is_calm_ = true; }

  // Ends the process: its pending operations are lost or torn as `fate` says. The process may still
  // run its destructors, which use the old disk until begin_process().
  void end_process(journal::Fate fate);
  void begin_process();

  // Steps the wall clock, and makes the timers readable that the process has for that
  // (TFD_TIMER_CANCEL_ON_SET).
  void step_wall_clock(Duration by);
  void add_clock_watch(int descriptor) { clock_watches_.push_back(descriptor); }

  // A file with secrets (os/secret_file.h).
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
