// The law of the journal: every acknowledged change is present after a crash at any moment.
//
// TUBED_CRASHES sets the number of crashes of the first case; each other case does a quarter as
// many. TUBED_CRASH_SEED sets the first seed, to repeat a life.
#include <array>
#include <csignal>
#include <cstdio>

#include <doctest/doctest.h>

#include "tests/journal/crashes.h"
#include "tests/journal/journal_life.h"

namespace tubed::journal {

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kGenerations = 12;
constexpr std::uint64_t kMostTicks = 80;

// Counts the reused segments in all runs.
std::uint64_t reused = 0;

// Printed when an assertion aborts the process.
std::uint64_t seed_alive = 0;

void tell_seed_of_abort(int) {
  std::fprintf(stderr, "in the life of seed %llu\n", static_cast<unsigned long long>(seed_alive));
  std::signal(SIGABRT, SIG_DFL);
  std::raise(SIGABRT);
}

JournalLife::Nature some_nature(std::uint64_t seed) {
  Random random(seed * 1'000'003);
  JournalLife::Nature nature;
  nature.seed = seed;
  nature.sync = one_of(random, std::array<Duration, 6>{0s, 0s, 0s, 0s, 200ms, Duration::max()});
  nature.segment_bytes = one_of(random, std::array<std::uint64_t, 3>{4096, 8192, 16384});
  nature.habits.jobs = one_of(random, std::array<std::uint32_t, 3>{4, 20, 50});
  nature.habits.body_bytes = one_of(random, std::array<std::uint32_t, 3>{100, 1000, 3000});
  nature.shuffled = random() % 2 == 0;
  nature.entries = random() % 2 == 0;
  return nature;
}

void set_fault(JournalLife& life, Random& random) {
  using enum Operation;
  const auto operation =
      one_of(random, std::array{write, sync, create, allocate, trim, remove, reuse});
  const auto kind = random() % 2 == 0 ? Outcome::Kind::no_space : Outcome::Kind::failed;
  const auto passes = operation == reuse ? random() % 3 : random() % 40;
  life.disk().fail_after(operation, passes, operation == sync ? Outcome::Kind::failed : kind,
                         "of a fault", 1 + random() % 3);
}

enum class Trouble : std::uint8_t { none, faults, small_disk, eaten_disk };

// Runs one crash after another with one seed. Returns their number.
std::uint64_t live(std::uint64_t seed, Trouble trouble) {
  JournalLife::Nature nature = some_nature(seed);
  nature.faulty = trouble == Trouble::faults || trouble == Trouble::eaten_disk;
  Random random(seed);
  if (trouble == Trouble::small_disk && random() % 2 == 0) {
    nature.max_bytes = nature.segment_bytes * (3 + random() % 6);
  }
  JournalLife life(nature);
  const bool small = trouble == Trouble::small_disk && nature.max_bytes == 0;
  if (small || trouble == Trouble::eaten_disk) {
    life.disk().set_capacity(nature.segment_bytes * (3 + random() % 6));
  }
  for (std::uint64_t generation = 0; generation < kGenerations; ++generation) {
    if (random() % 4 == 0) set_crash(life.disk(), random);  // possibly during recovery
    if (life.boot()) {
      if (trouble == Trouble::faults) set_fault(life, random);
      if (trouble == Trouble::eaten_disk && generation == 1) life.disk().eat_space();
      if (trouble == Trouble::eaten_disk && random() % 2 == 0) set_fault(life, random);
      if (random() % 8 > 0) set_crash(life.disk(), random);
      for (std::uint64_t tick = 0; tick < kMostTicks && !life.disk().off(); ++tick) life.tick();
      if (random() % 8 == 0) life.stop();
    }
    if (life.problem()) FAIL(life.story());
    reused += life.disk().count(Operation::reuse);
    life.crash(random() % 3 == 0 ? Fate::kill : Fate::power_loss);
  }
  return kGenerations;
}

void live_through(std::uint64_t crashes, Trouble trouble) {
  auto* const before = std::signal(SIGABRT, tell_seed_of_abort);
  std::uint64_t lived = 0;
  seed_alive = number_from("TUBED_CRASH_SEED", 1);
  for (; lived < crashes; ++seed_alive) lived += live(seed_alive, trouble);
  std::signal(SIGABRT, before);
}

}  // namespace

TEST_CASE("a crash loses nothing that was acknowledged, and recovery invents nothing") {
  live_through(crashes_wanted(1), Trouble::none);
}

TEST_CASE("a crash after a failed operation loses nothing that was acknowledged") {
  live_through(crashes_wanted(4), Trouble::faults);
}

TEST_CASE(
    "a crash on a full disk, or of a journal that may not grow, loses nothing that was "
    "acknowledged") {
  live_through(crashes_wanted(4), Trouble::small_disk);
}

TEST_CASE("a crash while dead segments are reused loses nothing that was acknowledged") {
  reused = 0;
  live_through(crashes_wanted(4), Trouble::eaten_disk);
  CHECK(reused > crashes_wanted(4) / 10);
}

}  // namespace tubed::journal
