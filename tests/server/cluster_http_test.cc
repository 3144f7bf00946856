// HTTP on a node of a cluster: the paths for load balancers, and the operations of the API that
// every node answers.
#include <memory>
#include <string>

#include <doctest/doctest.h>

#include "server/status.h"
#include "serving/not_serving.h"
#include "tests/server/http_rig.h"
#include "tests/stats/cluster.h"

namespace tubed::server_test {

using loop_test::body_of;
using loop_test::status_in;
using serving::not_serving_reason;
using stats::ClusterRole;
using stats::ClusterState;

namespace {

// HTTP of a server, whose part in a cluster the test chooses.
struct Node final : HttpRig {
  const ClusterState* cluster() override { return state.get(); }
  bool serves() override { return state == nullptr || state->serves; }
  std::string_view not_leader() const override {
    return state == nullptr || state->serves ? "" : not_serving_reason(*state);
  }

  std::string get(const std::string& path) {
    return ask("GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  }
  std::string post(const std::string& path, const std::string& body = "") {
    return ask("POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Requested-By: test\r\n" +
               "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }

  std::unique_ptr<ClusterState> state;
};

ClusterState serving() {
  ClusterState state = stats::leader_of_three();
  state.serves = true;
  return state;
}

ClusterState following(std::string leader) {
  ClusterState state = stats::leader_of_three();
  state.role = ClusterRole::follower;
  state.leader = std::move(leader);
  return state;
}

ClusterState fetching() {
  ClusterState state = following("");
  state.role = ClusterRole::fetching;
  return state;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("/leader is 200 where clients are served") {
  Node node;
  const auto leader = [&] {
    const std::string answer = node.get("/leader");
    return status_in(answer).substr(9, 3) + ' ' + body_of(answer);
  };
  CHECK(leader() == "200 leader\n");  // in no cluster
  node.state = std::make_unique<ClusterState>(serving());
  CHECK(leader() == "200 leader\n");
  node.state = std::make_unique<ClusterState>(following("b"));
  CHECK(leader() == "503 not the leader\n");
  node.state->leader.clear();
  CHECK(leader() == "503 no leader\n");
  node.state->role = ClusterRole::waiting;
  CHECK(leader() == "503 waits to be added\n");
  node.state->role = ClusterRole::fetching;
  CHECK(leader() == "503 fetches the state\n");
  node.state->role = ClusterRole::leader;
  CHECK(leader() == "503 was just elected\n");
  CHECK(has(node.ask("HEAD /leader HTTP/1.1\r\nHost: x\r\n\r\n"), "503"));
}

TEST_CASE("the cluster is a problem on a server that is in none") {
  Node node;
  const std::string none = node.get("/api/v1/cluster");
  CHECK(status_in(none) == "HTTP/1.1 404 Not Found");
  CHECK(has(none, "urn:tubed:problem:no-cluster"));
  node.state = std::make_unique<ClusterState>(following("b"));
  const std::string answer = node.get("/api/v1/cluster");
  CHECK(status_in(answer) == "HTTP/1.1 200 OK");
  CHECK(has(answer, R"("role":"follower")"));
  CHECK(status_in(node.get("/api/v1/cluster?a=b")) == "HTTP/1.1 400 Bad Request");
}

TEST_CASE("a node that does not serve runs no command and opens no client") {
  Node node;
  node.state = std::make_unique<ClusterState>(following("b"));
  const auto is_refused = [&](const std::string& answer, std::string_view detail) {
    CHECK(status_in(answer) == "HTTP/1.1 503 Service Unavailable");
    CHECK(has(answer, "urn:tubed:problem:not-the-leader"));
    CHECK(has(answer, "Retry-After: 1"));
    CHECK(has(answer, detail));
    CHECK(node.service.engine().info().sessions == 0);
  };
  is_refused(node.get("/api/v1/tubes"), "The leader is b.");
  is_refused(node.get("/api/v1/capabilities"), "The leader is b.");
  is_refused(node.get("/api/v1/reservations/cafe"), "The leader is b.");
  is_refused(node.post("/api/v1/tubes/mail/jobs", "a job"), "The leader is b.");
  is_refused(node.post("/api/v1/tubes/mail/reserve", R"({"timeout":5})"), "The leader is b.");
  *node.state = following("");
  is_refused(node.post("/api/v1/drain"), "There is no leader.");
  *node.state = fetching();
  is_refused(node.get("/api/v1/jobs/1"), "It fetches the state.");
  *node.state = {};
  is_refused(node.get("/api/v1/jobs/1"), "It waits to be added.");
}

TEST_CASE("each node shows its own state") {
  Node node;
  node.state = std::make_unique<ClusterState>(following("b"));
  const std::string stats = node.get("/api/v1/server");
  CHECK(status_in(stats) == "HTTP/1.1 200 OK");
  CHECK(has(stats, R"("cluster-role":"follower","cluster-leader":"b","cluster-term":7,)"));
  CHECK(status_in(node.get("/api/v1/server?a=b")) == "HTTP/1.1 400 Bad Request");
  for (const char* path : {"access", "settings", "history", "cluster"}) {
    CAPTURE(path);
    CHECK(status_in(node.get(std::string("/api/v1/") + path)) == "HTTP/1.1 200 OK");
  }
  CHECK(has(node.get("/metrics"), "\ntubed_cluster_serves 0\n"));
  CHECK(node.service.engine().info().sessions == 0);
}

TEST_CASE("a role without inspect does not see a node that does not serve") {
  Node node;
  node.state = std::make_unique<ClusterState>(following("b"));
  RoleSettings role;
  role.role.name = "producer";
  role.role.produce = true;
  node.authenticator.apply({role}, {});
  Settings settings;
  settings.http.api = HttpApiLevel::full;
  settings.http.role = "producer";
  node.api.apply(settings);
  CHECK(status_in(node.get("/api/v1/server")) == "HTTP/1.1 403 Forbidden");
  CHECK(status_in(node.get("/api/v1/cluster")) == "HTTP/1.1 403 Forbidden");
}

TEST_CASE("a leadership that is lost while a body arrives") {
  Node node;
  node.state = std::make_unique<ClusterState>(serving());
  const os::Socket client = loop_test::connect_to(node.address);
  loop_test::write_all(client,
                       "POST /api/v1/tubes/mail/kick HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                       "X-Requested-By: test\r\nContent-Length: 2\r\n\r\n{");
  loop_test::run_ticks(node.loop, 20);
  *node.state = following("b");
  loop_test::write_all(client, "}");
  std::string answer;
  CHECK(loop_test::run_until(node.loop, [&] {
    answer += loop_test::read_some(client);
    return has(answer, "The leader is b.");
  }));
  CHECK(node.service.engine().info().sessions == 0);
}

TEST_CASE("the leader serves") {
  Node node;
  node.state = std::make_unique<ClusterState>(serving());
  CHECK(has(node.post("/api/v1/tubes/mail/jobs", "a job"), R"("result":"INSERTED")"));
  CHECK(has(node.get("/api/v1/server"), R"("total-jobs":1,)"));
}

TEST_CASE("the status of a node that does not serve") {
  CHECK(server::node_status({}, 0) == "waiting to be added to a cluster");
  ClusterState state = fetching();
  CHECK(server::node_status(state, 0) == "fetching the state: 0 MiB");
  state.fetched_bytes = 12'900'000;
  state.fetch_bytes = 41'000'000;
  CHECK(server::node_status(state, 0) == "fetching the state: 12 of 40 MiB");
  state = following("b");
  CHECK(server::node_status(state, 5) == "following b: 5 jobs, applied entry 999");
  state.role = ClusterRole::standby;
  CHECK(server::node_status(state, 5) == "catching up with b: 5 jobs, applied entry 999");
  state = following("");
  state.role = ClusterRole::candidate;
  CHECK(server::node_status(state, 5) == "looking for a leader: 5 jobs, applied entry 999");
  state.role = ClusterRole::leader;
  CHECK(server::node_status(state, 5) == "elected: 5 jobs, applied entry 999");
}

}  // namespace tubed::server_test
