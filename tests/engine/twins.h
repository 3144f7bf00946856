// Twins: an engine and a model that get the same random operations. After each operation they must
// agree on everything that can be seen from outside.
//
// A seed determines everything: the limits, the numbers of sessions and tubes, and each operation.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "tests/engine/model.h"
#include "tests/engine/recording.h"

namespace tubed::engine {

class Twins {
 public:
  explicit Twins(std::uint64_t seed);

  // One random operation on both. Throws what doctest throws if they disagree.
  void step();

  // L3: all facts so far, replayed into an empty engine, give the same durable state.
  void check_replay();

  // Seed, step and the newest operations, for the report of a failure.
  std::string story() const;

 private:
  struct Operation;
  // A kick, a flush of one state, or a move to a tube.
  enum class Work : std::uint8_t { kick, flush, move };
  struct OpenSlices {
    Work work;
    Slices engine;
    Model::Slices model;
    std::string to;
  };

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool one_in(std::uint64_t chance) { return below(chance) == 0; }
  Limits some_limits();
  SessionId some_session() { return sessions_[below(sessions_.size())]; }
  std::string some_tube();
  JobId some_job();
  Priority some_priority();
  std::string some_value(PolicyKey key);
  Seconds some_seconds(std::uint32_t bound) { return {static_cast<std::uint32_t>(below(bound))}; }
  // Mostly whole seconds, below time_grain_.
  TimeSpan some_span() {
    const Seconds seconds = some_seconds(time_grain_);
    const bool is_whole = seconds.count == 0 || !one_in(4);
    return {seconds, static_cast<std::uint16_t>(is_whole ? 0 : 250 * (1 + below(3)))};
  }

  void trace(const std::string& operation) { history_.push_back(operation); }
  void expect(bool agreed, const std::string& what) const;
  void expect_same(std::string_view what, const Lines& engine, const Lines& model) const;
  template <class T>
  void expect_equal(std::string_view what, const T& engine, const T& model) const;

  void some_operation();
  void set_policy();
  void set_patterns();
  void open();
  void close();
  void use();
  void watch();
  void ignore();
  void set_mode();
  void pause();
  void put();
  void put_with_tags();
  void claim();
  void return_claim();
  void reserve();
  void wait_for_job();
  void cancel_wait();
  void reserve_job();
  void reserve_ready();
  void remove();
  void release();
  void bury();
  void touch();
  void kick_job();
  void begin_kick();
  void begin_flush();
  void begin_move();
  void begin_slices(Work work, const Slices& engine, const Model::Slices& model);
  void move_job();
  void reprioritize();
  void remove_held();
  void continue_slices();
  void flush();
  void truncate();
  void remove_pending();
  void advance();
  void set_limits();
  void restart();
  void hold_over();

  void compare_sessions() const;
  void compare_tubes() const;
  void compare_ages() const;
  double mean_seconds(std::string_view tube) const;
  void compare_jobs() const;
  void compare_lists();
  void compare_found();
  void compare_whole() const;
  void settle(Engine& engine) const;
  Lines durable(const Engine& engine) const;

  std::uint64_t seed_;
  std::mt19937_64 random_;
  std::uint64_t tube_count_;
  bool crowded_;  // many sessions wait, and many jobs become ready at once
  std::uint64_t session_count_;
  std::uint32_t time_grain_;  // few different durations: deadlines coincide
  std::uint64_t restart_chance_;
  bool compacts_;  // a restart replaces the log by the durable list
  bool records_;   // reservations
  Limits limits_;
  std::unique_ptr<Engine> engine_;
  Model model_;
  Recording engine_output_;
  Recording model_output_;
  std::deque<RecordedFact> log_before_;  // the durable list of the last compaction
  Time now_;
  std::vector<SessionId> sessions_;
  std::vector<OpenSlices> slices_;
  std::vector<std::uint32_t> claims_;
  std::uint64_t steps_ = 0;
  std::deque<std::string> history_;
};

}  // namespace tubed::engine
