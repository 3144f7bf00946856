// Members whose host is a name, and standbys that stay: the level that they need; a state that is
// fetched from a source with a name.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cluster/node_state.h"
#include "node/leadership.h"
#include "os/log.h"
#include "tests/loop/fake_names.h"
#include "tests/server/state_transfer_rig.h"

namespace tubed::server_test {

namespace {

cluster::Request add_request(const std::string& address) {
  return {.path = "/cluster/add", .body = fmt::format(R"({{"name":"b","address":"{}"}})", address)};
}

// Makes the node in the directory one of a cluster that uses an earlier level.
void lower_level(const std::string& directory, cluster::Level level) {
  loop::Loop loop;
  auto storage = disk::FileStorage::open(loop, directory + "/" + node::kClusterFolder,
                                         disk::FileStorage::Mode::owner);
  REQUIRE(storage.ok());
  auto state = cluster::read_node_state(**storage);
  REQUIRE(state.ok());
  REQUIRE(state->has_value());
  (*state)->level = level;
  REQUIRE(cluster::store_node_state(**storage, **state).ok());
}

}  // namespace

TEST_CASE("a member with a name needs a cluster whose nodes all know names") {
  os::Log log([](std::string_view) { return true; }, [] { return Duration(); });
  for (const cluster::Level level :
       {static_cast<cluster::Level>(cluster::kLevelOfNames - 1), cluster::kLevelOfNames}) {
    const loop_test::Directory place;
    const std::string directory = place.file("");
    const auto founded = node::bootstrap(directory, "a", "a.tubed:11302", kSegmentBytes);
    REQUIRE_MESSAGE(founded.ok(), error_of(founded));
    lower_level(directory, level);
    loop::Loop loop;
    RunningNode::Options options;
    options.level = level;
    RunningNode node(loop, directory, 1, options);
    REQUIRE(node.node().level() == level);
    node::Leadership leadership(log, node.node(), node.replica().log());
    const cluster::Response answer = leadership.run(add_request("B.tubed.:11302"));
    if (level == cluster::kLevelOfNames) {
      CHECK(answer.status == 200);
      REQUIRE(node.run_until([&] { return node.node().members().size() == 2; }));
      CHECK(node.node().members().back().address == "b@b.tubed:11302");
    } else {
      CHECK(answer.status == 409);
      CHECK(answer.body.find("b.tubed:11302 has the name of a host, which needs feature level 5, "
                             "and the cluster uses 4: upgrade all nodes") != std::string::npos);
      CHECK(leadership.run(add_request("10.0.0.2:11302")).status == 200);
    }
    CHECK(leadership.run(add_request("10.0.0.300:11302")).status == 400);
  }
}

TEST_CASE("a standby stays one over a restart of the leader until it is promoted") {
  os::Log log([](std::string_view) { return true; }, [] { return Duration(); });
  const loop_test::Directory place;
  const std::string directory = place.file("");
  const auto founded = node::bootstrap(directory, "a", "10.0.0.1:11302", kSegmentBytes);
  REQUIRE_MESSAGE(founded.ok(), error_of(founded));
  const cluster::Request add{.path = "/cluster/add-standby",
                             .body = R"({"name":"b","address":"10.0.0.2:11302"})"};
  const cluster::Request promote{.path = "/cluster/promote", .body = R"({"name":"b"})"};
  {
    lower_level(directory, cluster::kLevelOfStandbys - 1);
    loop::Loop loop;
    RunningNode::Options options;
    options.level = cluster::kLevelOfStandbys - 1;
    RunningNode node(loop, directory, 1, options);
    node::Leadership leadership(log, node.node(), node.replica().log());
    const cluster::Response refused = leadership.run(add);
    CHECK(refused.status == 409);
    CHECK(refused.body.find("a standby that stays needs feature level 6, and the cluster uses 5: "
                            "upgrade all nodes") != std::string::npos);
  }
  lower_level(directory, cluster::kLevelOfStandbys);
  {
    loop::Loop loop;
    RunningNode node(loop, directory, 1, {});
    node::Leadership leadership(log, node.node(), node.replica().log());
    CHECK(leadership.run(promote).status == 404);
    CHECK(leadership.run(add).status == 200);
    CHECK(leadership.run(add).status == 409);
    const cluster::Index change = node.node().configurations().newest();
    REQUIRE(node.run_until([&] { return node.node().log().stored() >= change; }));
  }
  loop::Loop loop;
  RunningNode node(loop, directory, 1, {});
  const std::vector<cluster::Member> members = node.node().members();
  REQUIRE(members.size() == 2);
  CHECK(members[1].stays);
  CHECK(members[1].address == "b@10.0.0.2:11302");
  node::Leadership leadership(log, node.node(), node.replica().log());
  CHECK(leadership.run(promote).status == 200);
  CHECK(leadership.run(promote).status == 200);
  CHECK_FALSE(node.node().members()[1].stays);
  CHECK(node.node().members()[1].role == cluster::MemberRole::standby);
}

TEST_CASE("a member gets another address, and keeps its id and its role") {
  std::vector<std::string> lines;
  os::Log log(
      [&](std::string_view line) {
        lines.emplace_back(line);
        return true;
      },
      [] { return Duration(); });
  const loop_test::Directory place;
  const std::string directory = place.file("");
  const auto founded = node::bootstrap(directory, "a", "10.0.0.1:11302", kSegmentBytes);
  REQUIRE_MESSAGE(founded.ok(), error_of(founded));
  // Every version takes such a change.
  lower_level(directory, cluster::kFirstLevel);
  const auto set = [](const std::string& name, const std::string& address) {
    return cluster::Request{
        .path = "/cluster/set-address",
        .body = fmt::format(R"({{"name":"{}","address":"{}"}})", name, address)};
  };
  {
    loop::Loop loop;
    RunningNode::Options options;
    options.level = cluster::kFirstLevel;
    RunningNode node(loop, directory, 1, options);
    node::Leadership leadership(log, node.node(), node.replica().log());
    const auto answer = [&](const std::string& name, const std::string& address) {
      const cluster::Response response = leadership.run(set(name, address));
      return fmt::format("{} {}", response.status, response.body);
    };
    CHECK(answer("b", "10.0.0.2:11302") == R"(404 {"error":"no member is named b"})");
    CHECK(answer("a", "10.0.0.300:11302").starts_with("400 "));
    CHECK(answer("a", "10.0.0.2").starts_with("400 "));
    CHECK(answer("a", "10.0.0.2:0").starts_with("400 "));
    CHECK(answer("a", "a.tubed:11302").find("needs feature level 5") != std::string::npos);
    CHECK(answer("a", "10.0.0.1:11302") == "200 {}");  // it has that already
    CHECK(node.node().configurations().newest() == 1);
    CHECK(leadership.run(add_request("10.0.0.2:11302")).status == 200);
    CHECK(answer("b", "10.0.0.3:11302") ==
          R"(503 {"error":"another change of the members is under way"})");
    const cluster::Index added = node.node().configurations().newest();
    REQUIRE(node.run_until([&] { return node.node().committed() >= added; }));
    CHECK(answer("b", "10.0.0.1:11302") == R"(409 {"error":"10.0.0.1:11302 is the address of a"})");
    CHECK(answer("a", "10.0.0.2:11302") == R"(409 {"error":"10.0.0.2:11302 is the address of b"})");
    CHECK(answer("b", "[fd00::2]:11302") == "200 {}");
    const cluster::Index changed = node.node().configurations().newest();
    REQUIRE(node.run_until([&] { return node.node().committed() >= changed; }));
    CHECK(answer("a", "10.0.0.9:11302") == "200 {}");
    const cluster::Index last = node.node().configurations().newest();
    REQUIRE(node.run_until([&] { return node.node().log().stored() >= last; }));
    CHECK(std::ranges::count_if(lines, [](const std::string& line) {
            return line.find("changing the address of a node") != line.npos;
          }) == 2);
  }
  loop::Loop loop;
  RunningNode node(loop, directory, 1, {});
  const std::vector<cluster::Member> members = node.node().members();
  REQUIRE(members.size() == 2);
  CHECK(members[0] == cluster::Member{.id = founded->node,
                                      .role = cluster::MemberRole::voter,
                                      .address = "a@10.0.0.9:11302"});
  CHECK(members[1].address == "b@[fd00::2]:11302");
  CHECK(members[1].role == cluster::MemberRole::standby);
}

TEST_CASE("a state is fetched from a source with a name") {
  const loop_test::FakeNames names;
  const loop_test::Directory place;
  loop::Loop loop;
  Door door(loop);
  cluster::MemberAddress source = door.address();
  source.host = "a.test";
  {
    Fetch fetch(loop, place.file(""), source, 7);
    REQUIRE(loop_test::run_until(loop, [&] { return fetch.ended(); }));
    CHECK(fetch.error() ==
          fmt::format("the state of a@a.test:{} cannot be fetched: cannot resolve a.test: Name or "
                      "service not known",
                      source.port));
    CHECK(fetch.bytes() == 0);
  }
  names.set("a.test", {"127.0.0.2", "127.0.0.1"});
  Fetch fetch(loop, place.file(""), source, 7);
  os::Socket socket = door.accept();
  socket = os::Socket();
  REQUIRE(loop_test::run_until(loop, [&] { return fetch.ended(); }));
  CHECK(fetch.error().find("the connection was closed") != std::string::npos);
}

TEST_CASE("a fetch that is stopped while its source is resolved does not wait") {
  const loop_test::FakeNames names;
  names.set("a.test", {"127.0.0.1"});
  names.hold();
  const loop_test::Directory place;
  loop::Loop loop;
  const Door door(loop);
  cluster::MemberAddress source = door.address();
  source.host = "a.test";
  const std::size_t before = names.begun();
  Fetch fetch(loop, place.file(""), source, 7);
  REQUIRE(loop_test::run_until(loop, [&] { return names.begun() > before; }));
  fetch.stop();
  loop_test::run_ticks(loop, 2);
  CHECK_FALSE(fetch.ended());
}

}  // namespace tubed::server_test
