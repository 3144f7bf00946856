#include "tubectl/bench/in_flight.h"

#include "base/assert.h"

namespace tubed::tubectl::bench {

std::string_view name_of(Command command) {
  switch (command) {
    case Command::put:
      return "put";
    case Command::reserve:
      return "reserve";
    case Command::remove:
      return "delete";
  }
  return "";
}

void InFlight::sent(Command command, std::size_t count, Clock::time_point now) {
  if (count == 0) return;
  runs_.push_back(Run{command, count, now});
  size_ += count;
}

InFlight::Oldest InFlight::take_oldest() {
  TUBED_ASSERT(!empty());
  Run& run = runs_.front();
  const Oldest oldest{run.command, run.sent};
  if (--run.count == 0) runs_.pop_front();
  --size_;
  return oldest;
}

}  // namespace tubed::tubectl::bench
