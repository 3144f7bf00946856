// EventLog: what has happened to jobs since the last reset, in order, for test-events and
// test-await.
//
// An event is a word and its details: "put 7 mails", "reserve 7 c3", "timeout 7". The log keeps the
// last kKept events and the number of all events of each word.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "facts/types.h"

namespace tubed::test_mode {

enum class Event : std::uint8_t {
  put,
  reserve,
  erase,  // "delete"
  release,
  bury,
  touch,
  kick,
  timeout,
  disconnect,
  pause,
  flush,
  move,
  reprioritize,
  timed_out,
  deadline_soon,
  hold,
  unhold,
  dead,
  expire,
};

struct EventText {
  std::string_view word;
  std::string_view details;
  std::string_view meaning;
};
// By Event, for the reference page.
inline constexpr std::array<EventText, 19> kEventTexts = {{
    {"put", "<id> <tube>", "A client put the job, or test-load added it."},
    {"reserve", "<id> <connection>", "The client got the job."},
    {"delete", "<id>", "A client deleted the job, or flushed it by its state."},
    {"release", "<id>", "Its client released the job, which is ready or delayed."},
    {"bury", "<id>", "Its client buried the job."},
    {"touch", "<id> <connection>", "Its client touched the job."},
    {"kick", "<id>", "A client kicked the job, which may have been held."},
    {"timeout", "<id>", "The TTR of the job ended."},
    {"disconnect", "<id>", "The connection that held the job ended."},
    {"pause", "<tube> <seconds>", "A client paused the tube; 0: it ended the pause."},
    {"flush", "<tube>", "A client removed all jobs of the tube."},
    {"move", "<id> <tube>", "The job was moved to the tube."},
    {"reprioritize", "<id>",
     "The job has another priority, by reprioritize or by a put with its unique key."},
    {"timed-out", "<connection>", "The reserve of the client ended without a job."},
    {"deadline-soon", "<connection>", "The reserve of the client was answered DEADLINE_SOON."},
    {"hold", "<id>", "The job would be ready, but waits for its group (aft)."},
    {"unhold", "<id>", "The group that held the job has ended, and the job is ready."},
    {"dead", "<id> <place>",
     "The job was tried as often as it may be, and goes to the place: `bury`, `delete` or a tube."},
    {"expire", "<id> <place>", "The time to live of the job has ended, and it goes to the place."},
}};

constexpr std::string_view word_of(Event event) {
  return kEventTexts[static_cast<std::size_t>(event)].word;
}

// "c3": the name of a connection, made from its session.
std::string connection_name(SessionId session);

// No value: the word names no event.
std::optional<Event> event_named(std::string_view word);

class EventLog {
 public:
  static constexpr std::size_t kKept = 10'000;

  void add(Event event, std::string_view details);
  void clear();

  // How many events of this word have happened. O(1).
  std::uint64_t count(Event event) const { return counts_[static_cast<std::size_t>(event)]; }
  // Calls visit(number, text) for up to `limit` events that are kept, from number `from` on. The
  // first event has the number 1. O(events visited).
  template <class Visit>
  void visit(std::uint64_t from, std::uint64_t limit, const Visit& visit) const {
    std::uint64_t number = from < first_ ? first_ : from;
    for (; limit > 0 && number - first_ < kept_.size(); ++number, --limit) {
      visit(number, kept_[number - first_]);
    }
  }

 private:
  std::deque<std::string> kept_;
  std::uint64_t first_ = 1;  // the number of the first event that is kept
  std::array<std::uint64_t, kEventTexts.size()> counts_{};
};

}  // namespace tubed::test_mode
