#include "test_mode/events.h"

#include <algorithm>

#include <fmt/format.h>

namespace tubed::test_mode {

std::string connection_name(SessionId session) {
  return fmt::format("c{}", session);
}

std::optional<Event> event_named(std::string_view word) {
  const auto found = std::ranges::find(kEventTexts, word, &EventText::word);
  if (found == kEventTexts.end()) return std::nullopt;
  return static_cast<Event>(found - kEventTexts.begin());
}

void EventLog::add(Event event, std::string_view details) {
  ++counts_[static_cast<std::size_t>(event)];
  kept_.push_back(fmt::format("{} {}", word_of(event), details));
  if (kept_.size() <= kKept) return;
  kept_.pop_front();
  ++first_;
}

void EventLog::clear() {
  *this = EventLog();
}

}  // namespace tubed::test_mode
