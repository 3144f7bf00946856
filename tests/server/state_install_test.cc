// Installing a state that was fetched, interrupted at every step.
#include "node/state_install.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cluster/node_state.h"
#include "tests/disk/storage_place.h"
#include "tests/server/state_transfer_rig.h"
#include "tests/share.h"

namespace tubed::server_test {

using node::finish_install;
using node::install;

namespace {

constexpr cluster::NodeId kNode = 2;

// Lets a number of steps pass, and then fails.
disk::DirectoryTree::Hook failing_at(int step) {
  return [left = step]() mutable {
    return left-- > 0 ? Result<void>() : Result<void>(Error{"interrupted"});
  };
}

cluster::NodeState state_in(const std::string& directory) {
  loop::Loop loop;
  auto storage =
      disk::FileStorage::open(loop, directory + "/cluster", disk::FileStorage::Mode::read_only);
  REQUIRE_MESSAGE(storage.ok(), error_of(storage));
  const auto state = cluster::read_node_state(**storage);
  REQUIRE(state.ok());
  REQUIRE(state->has_value());
  return **state;
}

void set_state(const std::string& directory, const cluster::NodeState& state) {
  loop::Loop loop;
  auto storage =
      disk::FileStorage::open(loop, directory + "/cluster", disk::FileStorage::Mode::owner);
  REQUIRE_MESSAGE(storage.ok(), error_of(storage));
  REQUIRE(cluster::store_node_state(**storage, state).ok());
}

// A node "a", and a directory that has fetched its state: of a new node, or of one that has an
// older state.
struct Place {
  explicit Place(bool is_new) {
    std::filesystem::create_directory(b);
    founded_in(a);
    loop::Loop loop;
    RunningNode node(loop, a, 3);
    node.work(120);
    node.settle();
    if (!is_new) {
      const auto first = fetched(loop, node, a, b);
      REQUIRE(install(b, first, kNode).ok());
      node.work(120);
      node.settle();
    }
    before = files_below(b);
    state = fetched(loop, node, a, b);
    now = node.queue_time();
    lines = node.lines(now);
    copy_directory(b, image);
  }

  // The directory as it was before the installation.
  void reset() const { copy_directory(image, b); }

  const loop_test::Directory directory;
  const std::string a = directory.file("a");
  const std::string b = directory.file("b");
  const std::string image = directory.file("image");
  std::map<std::string, std::string> before;  // the files of the old state
  node::FetchedState state;
  Time now;
  engine::Lines lines;
};

// Interrupts the installation at each step, and the end of each of these at each step.
void interrupt(const Place& place) {
  REQUIRE(install(place.b, place.state, kNode).ok());
  const auto after = files_below(place.b);
  REQUIRE(after != place.before);
  bool complete = false;
  bool was_old = false;
  for (int step = 0; !complete; ++step) {
    place.reset();
    complete = install(place.b, place.state, kNode, failing_at(step)).ok();
    const std::string halfway = place.directory.file("halfway");
    copy_directory(place.b, halfway);
    bool finished = false;
    for (int further = 0; !finished; ++further) {
      copy_directory(halfway, place.b);
      finished = finish_install(place.b, failing_at(further)).ok();
      REQUIRE(finish_install(place.b).ok());
      const auto files = files_below(place.b);
      const bool is_old = files == place.before;
      CHECK_MESSAGE((is_old || files == after), "step ", step, ", and then step ", further);
      CHECK_FALSE(std::filesystem::exists(place.b + "/fetch"));
      if (complete) CHECK_FALSE(is_old);
      was_old = was_old || is_old;
    }
  }
  CHECK(was_old);
}

}  // namespace

TEST_CASE("a fetched state becomes the state of a new node") {
  const Place place(true);
  REQUIRE(install(place.b, place.state, kNode).ok());
  CHECK_FALSE(std::filesystem::exists(place.b + "/fetch"));
  CHECK(difference(lines_in(place.b, place.now), place.lines) == "");
  const cluster::NodeState state = state_in(place.b);
  CHECK(state.node == kNode);
  CHECK(state.cluster == place.state.cluster);
  CHECK(state.term == place.state.position.term);
  CHECK(state.voted_for == 0);
  CHECK(state.configuration == place.state.configuration);
  CHECK(state.configuration_index == place.state.configuration_index);
  CHECK(finish_install(place.b).ok());
  CHECK(difference(lines_in(place.b, place.now), place.lines) == "");
}

TEST_CASE("a node with an older state keeps a later term, and its vote in it") {
  const Place place(false);
  cluster::NodeState own = state_in(place.b);
  SUBCASE("a later term") {
    own.term = place.state.position.term + 5;
    own.voted_for = 1;
    set_state(place.b, own);
    REQUIRE(install(place.b, place.state, kNode).ok());
    CHECK(state_in(place.b).term == own.term);
    CHECK(state_in(place.b).voted_for == 1);
  }
  SUBCASE("the term of the last entry") {
    own.term = place.state.position.term;
    own.voted_for = 1;
    set_state(place.b, own);
    REQUIRE(install(place.b, place.state, kNode).ok());
    CHECK(state_in(place.b).term == own.term);
    CHECK(state_in(place.b).voted_for == 1);
  }
  SUBCASE("an earlier term") {
    own.term = place.state.position.term - 1;
    own.voted_for = 1;
    set_state(place.b, own);
    REQUIRE(install(place.b, place.state, kNode).ok());
    CHECK(state_in(place.b).term == place.state.position.term);
    CHECK(state_in(place.b).voted_for == 0);
  }
  CHECK(difference(lines_in(place.b, place.now), place.lines) == "");
}

TEST_CASE("a node takes no state of another cluster, of another node, or that goes less far") {
  const Place place(false);
  const auto refused = [&](const node::FetchedState& state, cluster::NodeId node) {
    place.reset();
    const std::string reason = error_of(install(place.b, state, node));
    REQUIRE(finish_install(place.b).ok());
    CHECK(files_below(place.b) == place.before);
    return reason;
  };
  node::FetchedState other = place.state;
  other.cluster += 1;
  CHECK(refused(other, kNode) == "this node belongs to another cluster");
  CHECK(refused(place.state, kNode + 1) == "this is another node of the cluster");
  node::FetchedState shorter = place.state;
  shorter.position.index = 10;
  CHECK(refused(shorter, kNode)
            .starts_with("the state goes to entry 10, and this node has entries up to "));
}

TEST_CASE("an installation that is interrupted leaves the old or the new state, whole" *
          doctest::test_suite("slow")) {
  interrupt(Place(false));
}

TEST_CASE("an installation of a new node that is interrupted leaves nothing or the state" *
          doctest::test_suite("slow")) {
  interrupt(Place(true));
}

}  // namespace tubed::server_test
