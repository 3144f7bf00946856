#include "cluster/node_state.h"

#include <doctest/doctest.h>

#include "tests/journal/test_disk.h"

namespace tubed::cluster {

namespace {

using journal::Fate;
using journal::Operation;
using journal::Random;
using journal::TestDisk;

NodeState state_of(Term term) {
  return {.cluster = 0x1234'5678'9abc'def0,
          .node = 3,
          .term = term,
          .voted_for = term % 4,
          .configuration = std::string(term % 200, 'c'),
          .configuration_index = term * 2};
}

// Returns nothing if no state was stored or loading fails.
std::optional<NodeState> loaded(TestDisk& disk) {
  auto state = load_node_state(disk);
  return state ? *state : std::nullopt;
}

}  // namespace

TEST_CASE("a directory without a state gives no state") {
  TestDisk disk;
  auto state = load_node_state(disk);
  REQUIRE(state);
  CHECK(!*state);
}

TEST_CASE("a stored state is durable") {
  TestDisk disk;
  for (Term term = 1; term < 300; term += 7) {
    REQUIRE(store_node_state(disk, state_of(term)).ok());
    TestDisk next(disk.durable_files());
    REQUIRE(loaded(next) == state_of(term));
    CHECK(disk.names().size() == 2);
  }
}

TEST_CASE("a state has exactly these bytes") {
  TestDisk disk;
  REQUIRE(store_node_state(disk, {.cluster = 0x0807'0605'0403'0201,
                                  .node = 0x11,
                                  .term = 0x22,
                                  .voted_for = 0x33,
                                  .configuration = "abc",
                                  .configuration_index = 0x44})
              .ok());
  const std::string& image = disk.contents("state.0000000001");
  CHECK(image.substr(0, 67) ==
        std::string("tubednod\1\0\0\0\3\0\0\0"
                    "\1\0\0\0\0\0\0\0\1\2\3\4\5\6\7\x08"
                    "\x11\0\0\0\0\0\0\0\x22\0\0\0\0\0\0\0\x33\0\0\0\0\0\0\0\x44\0\0\0\0\0\0\0abc",
                    67));
  CHECK(image.size() == 71);
}

TEST_CASE("after a crash at any step the old or the new state is there") {
  std::uint64_t crashes = 0;
  for (const Fate fate : {Fate::kill, Fate::power_loss}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Random random(seed);
      TestDisk disk;
      REQUIRE(store_node_state(disk, state_of(1)).ok());
      Term before = 1;
      for (std::uint64_t step = 0; step < 40; ++step) {
        const Term after = before + 1;
        disk.crash_at(disk.steps() + step % 20);
        const bool stored = store_node_state(disk, state_of(after)).ok();
        disk = disk.after_crash(random, fate);
        if (step % 5 == 0) disk.crash_at(disk.steps() + random() % 2);
        auto state = load_node_state(disk);
        if (!state && disk.off()) {
          disk = disk.after_crash(random, fate);
          state = load_node_state(disk);
        }
        REQUIRE(state);
        REQUIRE(*state);
        const bool is_new = **state == state_of(after);
        REQUIRE((is_new || (!stored && **state == state_of(before))));
        if (is_new) before = after;
        // The loaded state must exist after the next crash too.
        disk = disk.after_crash(random, Fate::power_loss);
        REQUIRE(loaded(disk) == state_of(before));
        ++crashes;
      }
    }
  }
  CHECK(crashes == 1600);
}

TEST_CASE("an altered byte or a lost end is damage and never gives an older vote") {
  TestDisk disk;
  REQUIRE(store_node_state(disk, state_of(5)).ok());
  const std::string older = disk.contents("state.0000000001");
  REQUIRE(store_node_state(disk, state_of(6)).ok());
  disk.place("state.0000000001", older);  // possible after a crash
  const auto files = disk.files();
  const std::string name = "state.0000000002";
  const auto expect_damage = [&](TestDisk& damaged) {
    const auto state = load_node_state(damaged);
    REQUIRE(!state);
    CHECK(state.error().kind == Error::Kind::damaged);
    CHECK(state.error().message.starts_with(name));
  };
  for (std::uint64_t at = 0; at < files.at(name).size(); ++at) {
    TestDisk flipped(files);
    flipped.flip(name, at, static_cast<std::uint8_t>(1U << at % 8));
    expect_damage(flipped);
    TestDisk shorter(files);
    shorter.cut(name, at);
    expect_damage(shorter);
  }
  TestDisk longer(files);
  longer.place(name, files.at(name) + "x");
  expect_damage(longer);
  TestDisk other(files);
  other.place("state.0000000003", files.at(name));
  CHECK(!load_node_state(other).ok());
  TestDisk whole(files);
  CHECK(loaded(whole) == state_of(6));
}

TEST_CASE("on a full disk a state uses the space of the spare file") {
  TestDisk disk;
  REQUIRE(store_node_state(disk, state_of(200)).ok());
  for (Term term = 2; term < 20; ++term) {
    disk.set_capacity(disk.total_bytes());
    REQUIRE(store_node_state(disk, state_of(200 * term)).ok());
    CHECK(loaded(disk) == state_of(200 * term));
  }
  REQUIRE(disk.has("state.spare"));
  SUBCASE("without a spare file the old state stays") {
    disk.lose("state.spare");
    disk.set_capacity(disk.total_bytes());
    const auto stored = store_node_state(disk, state_of(4000));
    REQUIRE(!stored);
    CHECK(stored.error().kind == Error::Kind::no_space);
    CHECK(loaded(disk) == state_of(3800));
    disk.set_capacity(1 << 20);
    CHECK(store_node_state(disk, state_of(4000)).ok());
    CHECK(loaded(disk) == state_of(4000));
  }
}

TEST_CASE("a state is stored even if the old state cannot be removed") {
  TestDisk disk;
  REQUIRE(store_node_state(disk, state_of(1)).ok());
  disk.fail_after(Operation::remove_now, 0, journal::Outcome::Kind::no_space);
  CHECK(store_node_state(disk, state_of(2)).ok());
  disk.fail_after(Operation::remove_now, 0);
  CHECK(store_node_state(disk, state_of(3)).ok());
  CHECK(loaded(disk) == state_of(3));
  CHECK(store_node_state(disk, state_of(4)).ok());
  CHECK(loaded(disk) == state_of(4));
}

TEST_CASE("an error of the disk is passed on") {
  for (const Operation operation : {Operation::list, Operation::store}) {
    TestDisk disk;
    REQUIRE(store_node_state(disk, state_of(1)).ok());
    disk.fail_after(operation, 0);
    CHECK(!store_node_state(disk, state_of(2)).ok());
  }
  for (const Operation operation :
       {Operation::list, Operation::open, Operation::read, Operation::sync_now}) {
    TestDisk disk;
    REQUIRE(store_node_state(disk, state_of(1)).ok());
    disk.fail_after(operation, 0);
    CHECK(!load_node_state(disk).ok());
  }
}

}  // namespace tubed::cluster
