// ScriptedLoad: clients that send random commands, determined by a seed, to an engine whose facts
// go to a log.
//
// It remembers which jobs should exist and who holds them, and keeps the number of jobs small, so
// every segment eventually becomes dead. The same seed, engine and times give the same commands. It
// does not depend on the journal.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace tubed::journal {

class ScriptedLoad final : public engine::Output {
 public:
  // A reply that acknowledges a change.
  struct Reply {
    JobId id = 0;
    bool removed = false;  // otherwise put
    std::string body = {};
  };
  struct Habits {
    std::uint32_t jobs = 25;          // the approximate number of jobs at a time
    std::uint32_t body_bytes = 3000;  // most bodies are smaller, a few larger
  };

  ScriptedLoad(std::uint64_t seed, const Habits& habits) : random_(seed), habits_(habits) {}

  // Uses this engine as the queue, and sends its facts to `facts`. Opens new sessions.
  void meet(engine::Engine& engine, FactSink& facts, Time now);

  // Runs one command of one client. `may_put`, if given, returns whether the journal has room for a
  // job with a body of this size in this tube.
  using MayPut = std::function<bool(std::string_view tube, std::uint32_t body_bytes)>;
  void step(Time now, const MayPut& may_put);
  // Does the work that is due.
  void advance(Time now);

  // Returns the acknowledgements since the last call.
  std::vector<Reply> take_replies() { return std::exchange(replies_, {}); }

  void fact(const Fact& fact) override;
  void begin_unit() override { facts_->begin_unit(); }
  void end_unit() override { facts_->end_unit(); }
  void notice(const engine::Notice& notice) override;

 private:
  struct Client {
    SessionId session = 0;
    bool waits = false;
    std::vector<JobId> held = {};  // some of them may have been removed
  };
  struct Command;

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  std::string some_tube();
  JobId some_job();
  JobId some_held_job(Client& client);
  Priority some_priority() { return static_cast<Priority>(below(2) * 1000 + below(50)); }
  Seconds some_seconds(std::uint32_t most) { return {static_cast<std::uint32_t>(below(most + 1))}; }
  // Up to 4 s in one of `calls` calls, else 0.
  TimeSpan some_span(std::uint32_t calls) {
    if (!one_in(calls)) return {};
    const Seconds seconds = some_seconds(4);
    const bool is_whole = seconds.count == 0 || one_in(2);
    return {seconds, static_cast<std::uint16_t>(is_whole ? 0 : 500)};
  }
  std::string some_body();

  void put(Client& client);
  void put_with_tags(Client& client);
  void move(Client& client);
  void move_many(Client& client);
  void reprioritize(Client& client);
  void set_policy(Client& client);
  void reserve(Client& client);
  void reserve_job(Client& client);
  void remove(Client& client);
  void release(Client& client);
  void bury(Client& client);
  void touch(Client& client);
  void kick(Client& client);
  void kick_job(Client& client);
  void pause(Client& client);
  void flush(Client& client);
  void flush_state(Client& client);
  void truncate(Client& client);
  void note_removed(const std::vector<JobId>& jobs);
  void choose_tubes(Client& client);
  void reconnect(Client& client);

  std::mt19937_64 random_;
  Habits habits_;
  engine::Engine* engine_ = nullptr;
  FactSink* facts_ = nullptr;
  MayPut may_put_;
  Time now_;
  std::vector<Client> clients_;
  std::vector<JobId> jobs_;
  std::vector<Reply> replies_;
};

}  // namespace tubed::journal
