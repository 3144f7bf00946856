#include "test_mode/events.h"

#include <algorithm>

#include <fmt/format.h>

namespace tubed::test_mode {

std::string connection_name(SessionId session) {
  return fmt::format("c{}", session);
}

std::optional<Event> event_named(std::string_view word) {
  const auto found = std::ranges::find(kEventWords, word);
  if (found == kEventWords.end()) return std::nullopt;
  return static_cast<Event>(found - kEventWords.begin());
}

void EventLog::add(Event event, std::string_view details) {
  const auto index = static_cast<std::size_t>(event);
  ++counts_[index];
  kept_.push_back(fmt::format("{} {}", kEventWords[index], details));
  if (kept_.size() <= kKept) return;
  kept_.pop_front();
  ++first_;
}

void EventLog::clear() {
  *this = EventLog();
}

}  // namespace tubed::test_mode
