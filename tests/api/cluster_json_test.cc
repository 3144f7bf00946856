#include "api/cluster_json.h"

#include <doctest/doctest.h>

#include "tests/stats/cluster.h"

namespace tubed::api {

TEST_CASE("the leader knows its lease and the members") {
  CHECK(cluster_json(stats::leader_of_three()) ==
        R"({"name":"a","id":"0000000000000001","cluster":"00000000deadbeef","role":"leader",)"
        R"("serves":false,"leader":"a","term":7,"committed":1000,"applied":999,"stored":1001,)"
        R"("lease_ms":270,"raft_log_bytes":12345,"raft_log_limit":67890,"held_over":3,)"
        R"("feature_level":1,"fetched_bytes":null,"fetch_bytes":null,"members_index":900,)"
        R"("members":[)"
        R"({"name":"a","id":"0000000000000001","address":"127.0.0.1:11301","votes":true,)"
        R"("leads":true,"self":true,"match":1001,"silent_ms":0,"level":2,"failure":null,)"
        R"("lag_ms":0,"stays":false,"clock_difference_ms":null,)"
        R"("reached_at":null},)"
        R"({"name":"b","id":"0000000000000002","address":"127.0.0.1:11302","votes":true,)"
        R"("leads":false,"self":false,"match":990,"silent_ms":12,"level":1,"failure":null,)"
        R"("lag_ms":2250,"stays":false,"clock_difference_ms":1500,)"
        R"("reached_at":"127.0.0.9:11302"},)"
        R"({"name":"c","id":"0000000000000003","address":"[::1]:11303","votes":false,)"
        R"("leads":false,"self":false,"match":null,"silent_ms":null,"level":null,"failure":null,)"
        R"("lag_ms":null,"stays":false,"clock_difference_ms":null,)"
        R"("reached_at":null}],)"
        R"("settings_differ":[{"name":"limits.job_bytes","nodes":[["a","c"],["b"]]}]})"
        "\n");
}

TEST_CASE("a node that waits knows little") {
  stats::ClusterState state;
  state.name = "d";
  CHECK(cluster_json(state) ==
        R"({"name":"d","id":"0000000000000000","cluster":"0000000000000000","role":"waiting",)"
        R"("serves":false,"leader":null,"term":0,"committed":0,"applied":0,"stored":0,)"
        R"("lease_ms":null,"raft_log_bytes":0,"raft_log_limit":0,"held_over":0,)"
        R"("feature_level":1,"fetched_bytes":null,"fetch_bytes":null,"members_index":0,)"
        R"("members":[],"settings_differ":[]})"
        "\n");
  state.role = stats::ClusterRole::fetching;
  state.fetched_bytes = 5;
  state.fetch_bytes = 9;
  CHECK(cluster_json(state).find(R"("fetched_bytes":5,"fetch_bytes":9,)") != std::string::npos);
}

}  // namespace tubed::api
