// InFlight: the commands that one client has sent and that are not answered yet, oldest first.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>

#include "tubectl/bench/latencies.h"

namespace tubed::tubectl::bench {

enum class Command : std::uint8_t { put, reserve, remove };  // remove: delete

std::string_view name_of(Command command);

class InFlight {
 public:
  bool empty() const { return runs_.empty(); }
  std::size_t size() const { return size_; }

  void sent(Command command, std::size_t count, Clock::time_point now);

  struct Oldest {
    Command command;
    Clock::time_point sent;
  };
  // It is answered, and no longer here. Precondition: !empty().
  Oldest take_oldest();

 private:
  // Commands of one kind that were sent together: one entry, however many they are.
  struct Run {
    Command command;
    std::size_t count;
    Clock::time_point sent;
  };

  std::deque<Run> runs_;
  std::size_t size_ = 0;
};

}  // namespace tubed::tubectl::bench
