#include "tests/simulation/world.h"

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"

namespace tubed::simulation {

namespace {

constexpr std::size_t kStoryLines = 60;
constexpr std::size_t kLineBytes = 240;

World* current_world = nullptr;

}  // namespace

World::World(std::uint64_t seed) : seed_(seed) {
  TUBED_ASSERT(current_world == nullptr);
  current_world = this;
}

World::~World() {
  // Events refer to objects that the world outlives.
  events_.clear();
  current_world = nullptr;
}

World& World::current() {
  TUBED_ASSERT(current_world != nullptr);
  return *current_world;
}

bool World::exists() {
  return current_world != nullptr;
}

bool World::run_due() {
  bool any = false;
  while (!events_.empty() && events_.begin()->first <= now_ && !failed()) {
    const auto happen = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    *place_ = ++count_;
    any = true;
    if (count_ >= most_) fail("too many events");
    happen();
  }
  return any;
}

// FNV-1a. [https://datatracker.ietf.org/doc/html/draft-eastlake-fnv]
void World::note(std::string_view what) {
  constexpr std::uint64_t kPrime = 0x100000001b3;
  const auto add = [this](std::uint64_t byte) { digest_ = (digest_ ^ byte) * kPrime; };
  for (const char c : what) add(static_cast<unsigned char>(c));
  add(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
  std::string line = fmt::format("{:>12} us  {}", now_.time_since_epoch().count() / 1000,
                                 what.substr(0, kLineBytes));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ') c = c == '\n' ? '/' : ' ';
  }
  if (prints_) std::fprintf(stderr, "%s\n", line.c_str());
  story_.push_back(std::move(line));
  if (story_.size() > kStoryLines) story_.pop_front();
  if (!stop_at_.empty() && !failed() && what.find(stop_at_) != what.npos)
    fail(fmt::format("the story has the line \"{}\"", what));
}

void World::fail(std::string_view what) {
  if (!failed()) problem_ = what;
  note(fmt::format("PROBLEM {}", what));
}

}  // namespace tubed::simulation
