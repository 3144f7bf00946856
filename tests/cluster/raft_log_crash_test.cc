// The law of the Raft log: after a crash at any moment every entry that was reported as stored is
// present, and nothing that was not appended.
//
// TUBED_CRASHES sets the number of crashes of the first case; each other case does a quarter as
// many. TUBED_CRASH_SEED sets the first seed, to repeat a life.
#include <array>

#include <doctest/doctest.h>

#include "tests/cluster/raft_log_life.h"
#include "tests/journal/crashes.h"

namespace tubed::cluster {

namespace {

using journal::crashes_wanted;
using journal::Fate;
using journal::number_from;
using journal::one_of;
using journal::Operation;
using journal::Outcome;
using journal::Random;
using journal::set_crash;
using journal::TestDisk;

constexpr std::uint64_t kGenerations = 12;
constexpr std::uint64_t kMostTicks = 80;

// Counts in all lives of a case.
std::uint64_t reused = 0;
std::uint64_t torn = 0;

RaftLogLife::Nature some_nature(std::uint64_t seed) {
  Random random(seed * 1'000'003);
  RaftLogLife::Nature nature;
  nature.seed = seed;
  nature.file_bytes = one_of(random, std::array<std::uint64_t, 3>{512, 2048, 8192});
  nature.data_bytes = one_of(random, std::array<std::uint64_t, 4>{0, 100, 600, 6000});
  nature.shuffled = random() % 2 == 0;
  return nature;
}

void set_fault(RaftLogLife& life, Random& random) {
  using enum Operation;
  const auto operation = one_of(random, std::array{write, sync, create, remove, reuse, store});
  const auto kind = random() % 2 == 0 ? Outcome::Kind::no_space : Outcome::Kind::failed;
  const auto passes = operation == reuse || operation == store ? random() % 3 : random() % 40;
  life.disk().fail_after(operation, passes, operation == sync ? Outcome::Kind::failed : kind,
                         "of a fault", 1 + random() % 3);
}

enum class Trouble : std::uint8_t { none, faults, small_disk, eaten_disk };

// Runs one crash after another with one seed. Returns their number.
std::uint64_t live(std::uint64_t seed, Trouble trouble) {
  RaftLogLife::Nature nature = some_nature(seed);
  nature.faulty = trouble == Trouble::faults || trouble == Trouble::eaten_disk;
  Random random(seed);
  RaftLogLife life(nature);
  if (trouble == Trouble::small_disk || trouble == Trouble::eaten_disk) {
    life.disk().set_capacity(nature.file_bytes * (3 + random() % 6));
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
  torn += life.torn_tails();
  return kGenerations;
}

void live_through(std::uint64_t crashes, Trouble trouble) {
  std::uint64_t lived = 0;
  reused = torn = 0;
  for (std::uint64_t seed = number_from("TUBED_CRASH_SEED", 1); lived < crashes; ++seed) {
    lived += live(seed, trouble);
  }
}

}  // namespace

TEST_CASE("a crash loses no stored entry, and recovery invents none") {
  live_through(crashes_wanted(1), Trouble::none);
  CHECK(torn > crashes_wanted(1) / 50);
}

TEST_CASE("a crash at each step of a life loses no stored entry") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    for (const Fate fate : {Fate::kill, Fate::power_loss}) {
      for (std::uint64_t step = 0; step < crashes_wanted(40); ++step) {
        RaftLogLife life(some_nature(seed));
        life.disk().crash_at(step);
        if (life.boot()) {
          while (!life.disk().off() && !life.problem()) life.tick();
        }
        life.crash(fate);
        CHECK(life.boot());
        if (life.problem()) FAIL(life.story());
      }
    }
  }
}

TEST_CASE("a crash after a failed operation loses no stored entry") {
  live_through(crashes_wanted(4), Trouble::faults);
}

TEST_CASE("a crash on a full disk loses no stored entry") {
  live_through(crashes_wanted(4), Trouble::small_disk);
  CHECK(reused > crashes_wanted(4) / 10);
}

TEST_CASE("a crash loses no stored entry if another process takes all space") {
  live_through(crashes_wanted(4), Trouble::eaten_disk);
  CHECK(reused > crashes_wanted(4) / 10);
}

}  // namespace tubed::cluster
