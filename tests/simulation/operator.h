// Operator: acts on the server as the administrator of its machine does, and judges what the server
// does then.
//
// It begins and ends drain mode by signals, reloads the settings with other values or from a file
// that cannot be read, steps the wall clock, and takes the processor away from the process for a
// while. An operator that does not act still judges: clients begin drains by commands.
//
// Its knowledge of the server: the calls of Server::on_drain(), the reads of the settings, and the
// lines of the log.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/settings.h"
#include "engine/engine.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/commands.h"
#include "tests/simulation/roles.h"
#include "tests/simulation/world.h"

namespace tubed::simulation {

class Operator {
 public:
  // `file`: the settings that a process reads at its start and at a reload.
  // `roles`: that the server has; null: none.
  Operator(World& world, Knowledge& known, Settings file, bool acts, Roles* roles);

  const Settings& file() const { return file_; }
  Settings& file() { return file_; }

  // --- The process of the server
  // It has read the file.
  void begin_process();
  // It serves now. It is destroyed after end_process().
  void begin_serving(const engine::Engine& engine);
  void end_process();
  void on_drain(bool draining);
  // Reads the file for a reload. Fails if the file cannot be read at the moment.
  Result<Settings> read_file();
  // A line of the log.
  void take_line(std::string_view line);
  // Sends SIGTERM; sometimes a second follows soon.
  void stop_process();

  // --- What it judges. Each adds a problem to the world.
  // To be called in every millisecond in which the process serves.
  void check();
  // The process has ended by itself. `at_once`: by os::exit_now().
  void check_end(int code, bool at_once);

 private:
  // Stays as it is between two calls unless drain mode begins, ends or gets other settings.
  struct Drain {
    bool active = false;
    Time since;    // when it began or ended
    Time changed;  // when `since` or its settings changed
  };

  void act_later();
  void act();
  void send_signal(int number, std::string_view name, bool is_left_out);
  void change_file();
  void take_settings();
  void check_drained();
  bool ends_by_drain() const;
  bool refuses_reserves() const;
  void note_giving();
  bool is_explained(std::string_view line) const;

  World& world_;
  Knowledge& known_;
  Chance chance_;
  std::uint64_t acts_done_ = 0;  // of the life, also those that it does without
  Settings file_;
  Settings in_force_;
  const bool acts_;
  Roles* const roles_;
  std::shared_ptr<int> process_;  // events look whether it is the same
  const engine::Engine* engine_ = nullptr;
  Drain drain_;
  bool has_failed_read_ = false;        // a reload is to be refused
  bool has_drained_ = false;            // by the log
  bool drain_timed_out_ = false;        // by the log
  std::optional<Time> stop_sent_;       // the first signal
  std::optional<Time> stopping_since_;  // by the log
  bool may_be_interrupted_ = false;     // the journal may be unfinished at the end
  std::optional<std::uint64_t> held_;   // reserved jobs at the last check of a drain
  Time held_since_;                     // the state of the drain that `held_` belongs to
};

}  // namespace tubed::simulation
