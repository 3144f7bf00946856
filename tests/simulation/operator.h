// Operator: acts on the server like the administrator of its machine, and judges how the server
// responds.
//
// It begins and ends drain mode by signals, reloads the settings with other values or from an
// unreadable file, steps the wall clock, and deprives the process of the processor for a while. An
// operator that does not act still judges: clients begin drains by commands.
//
// It knows of the server: the calls of Server::on_drain(), the reads of the settings, and the lines
// of the log.
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
  // `file`: the settings that a process reads at its start and at a reload. `roles`: the server's
  // roles, or null.
  Operator(World& world, Knowledge& known, Settings file, bool acts, Roles* roles);

  const Settings& file() const { return file_; }
  Settings& file() { return file_; }

  // --- The process of the server
  // The process has read the file.
  void begin_process();
  // The process serves now. It is destroyed after end_process().
  void begin_serving(const engine::Engine& engine);
  void end_process();
  void on_drain(bool draining);
  // Reads the file for a reload. Fails while the file is unreadable.
  Result<Settings> read_file();
  // Receives a line of the log.
  void take_line(std::string_view line);
  // Sends SIGTERM, sometimes followed by a second one soon after.
  void stop_process();

  // --- Judgements. Each adds a problem to the world.
  // Called in every millisecond in which the process serves.
  void check();
  // The process has ended by itself; `at_once`: by os::exit_now().
  void check_end(int code, bool at_once);

 private:
  // Unchanged between two calls unless drain mode begins, ends or gets other settings.
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
  std::uint64_t acts_done_ = 0;  // in the life, including those that it omits
  Settings file_;
  Settings in_force_;
  const bool acts_;
  Roles* const roles_;
  std::shared_ptr<int> process_;  // lets events check that it still runs
  const engine::Engine* engine_ = nullptr;
  Drain drain_;
  bool has_failed_read_ = false;        // a reload must be refused
  bool has_drained_ = false;            // according to the log
  bool drain_timed_out_ = false;        // according to the log
  std::optional<Time> stop_sent_;       // the first signal
  std::optional<Time> stopping_since_;  // according to the log
  bool may_be_interrupted_ = false;     // the journal may be unfinished at the end
  std::optional<std::uint64_t> held_;   // reserved jobs at the last check of a drain
  Time held_since_;                     // state of the drain for `held_`
};

}  // namespace tubed::simulation
