// Nodes compare the settings that should be the same on all of them.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "config/same_settings.h"
#include "tests/server/peer_node.h"

namespace tubed::server_test {

using loop_test::run_ticks;
using loop_test::run_until;
using stats::DifferingSetting;

namespace {

using Differing = std::vector<DifferingSetting>;

Settings with_job_bytes(std::uint32_t bytes) {
  Settings settings;
  settings.queue.job_bytes = bytes;
  return settings;
}

void set_settings(PeerNode& node, const Settings& settings,
                  cluster::Level level = cluster::kFeatureLevel) {
  node.facts.level = level;
  node.facts.settings = node::digests_of(settings, kCluster);
  node.links->set_facts(node.facts);
}

bool sees(const PeerNode& node, const Differing& expected) {
  return run_until(node.loop, [&] { return node.links->differing() == expected; });
}

std::size_t logged_lines(const PeerNode& node, std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(node.lines.begin(), node.lines.end(),
                    [&](const std::string& line) { return line.find(text) != std::string::npos; }));
}

}  // namespace

TEST_CASE("digests are of a setting, its value and the cluster, and fit into a hello") {
  Settings settings = with_job_bytes(100);
  settings.queue.tubes = 7;
  settings.queue.policies = 7;
  const auto digests = node::digests_of(settings, kCluster);
  CHECK(digests.size() == config::same_settings(settings).size());
  CHECK(digests == node::digests_of(settings, kCluster));
  const auto of = [](const node::SettingDigests& all, std::string_view name) {
    return std::ranges::find(all, name, &cluster::SettingDigest::name)->digest;
  };
  CHECK(of(digests, "limits.tubes") != of(digests, "limits.policies"));
  const auto in_another = node::digests_of(settings, kCluster + 1);
  const auto later = node::digests_of(with_job_bytes(101), kCluster);
  for (std::size_t i = 0; i < digests.size(); ++i) CHECK(digests[i].digest != in_another[i].digest);
  CHECK(of(digests, "limits.job_bytes") != of(later, "limits.job_bytes"));
  CHECK(of(digests, "limits.job_memory") == of(later, "limits.job_memory"));
  const cluster::Hello hello{.address = std::string(300, 'a'),
                             .name = std::string(300, 'b'),
                             .nonce = std::string(cluster::kNonceBytes, 'n'),
                             .settings = digests};
  CHECK(encode(hello).size() < node::kMostHelloBytes);
}

TEST_CASE("each node knows which settings differ, and between which nodes") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  PeerNode b(loop, 2);
  PeerNode c(loop, 3);
  set_settings(a, with_job_bytes(100));
  set_settings(b, with_job_bytes(200));
  set_settings(c, with_job_bytes(100));
  join({&a, &b, &c});
  REQUIRE(all_connected({&a, &b, &c}));
  const Differing expected = {{.name = "limits.job_bytes", .nodes = {{"a", "c"}, {"b"}}}};
  for (const PeerNode* node : {&a, &b, &c}) {
    CHECK(sees(*node, expected));
    CHECK(node->has_logged("settings differ between nodes"));
    CHECK(node->has_logged("limits.job_bytes (a, c / b)"));
  }
  // A member that is not connected counts with what it has sent; one that was removed does not.
  a.links->set_members({a.member(), c.member()});
  CHECK(sees(a, {}));
}

TEST_CASE("settings that change are known to the others, over links that stay") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  PeerNode b(loop, 2);
  PeerNode c(loop, 3);
  for (PeerNode* node : {&a, &b, &c}) set_settings(*node, with_job_bytes(100));
  join({&a, &b, &c});
  REQUIRE(all_connected({&a, &b, &c}));
  run_ticks(loop, 20);
  for (const PeerNode* node : {&a, &b, &c}) {
    CHECK(node->links->differing().empty());
    CHECK_FALSE(node->has_logged("settings"));
    CHECK(node->requests.empty());
  }
  set_settings(b, with_job_bytes(300));
  for (const PeerNode* node : {&a, &b, &c})
    CHECK(sees(*node, {{.name = "limits.job_bytes", .nodes = {{"a", "c"}, {"b"}}}}));
  set_settings(c, with_job_bytes(400));
  for (const PeerNode* node : {&a, &b, &c})
    CHECK(sees(*node, {{.name = "limits.job_bytes", .nodes = {{"a"}, {"b"}, {"c"}}}}));
  for (PeerNode* node : {&b, &c}) set_settings(*node, with_job_bytes(100));
  for (const PeerNode* node : {&a, &b, &c}) {
    CHECK(sees(*node, {}));
    CHECK(node->has_logged("the nodes have the same settings again"));
    CHECK(logged_lines(*node, "connected to another node") == 2);
    CHECK(logged_lines(*node, "not connected") == 0);
    CHECK(node->requests.empty());  // they need no host
    CHECK(logged_lines(*node, "(a / b / c)") == 1);
  }
}

TEST_CASE("settings that change are known to a member that is reached at a learned address") {
  loop::Loop loop;
  PeerNode a(loop, 1, kQuick);
  PeerNode b(loop, 2);
  for (PeerNode* node : {&a, &b}) set_settings(*node, with_job_bytes(100));
  b.links->set_members({a.member(), b.member()});
  a.links->set_members({a.member(), {.id = 2, .address = "b@127.0.0.1:1"}});
  a.links->set_learned({{2, cluster::parse_member_address(b.member().address).value()}});
  REQUIRE(run_until(loop, [&] { return a.links->is_connected(2) && b.links->is_connected(1); }));
  set_settings(a, with_job_bytes(300));
  CHECK(sees(b, {{.name = "limits.job_bytes", .nodes = {{"a"}, {"b"}}}}));
}

TEST_CASE("a node that is accepted before it is known as a member counts once it is one") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  PeerNode b(loop, 2);
  set_settings(a, with_job_bytes(100));
  b.facts.configuration_index = a.facts.configuration_index + 1;
  set_settings(b, with_job_bytes(200));
  a.links->set_members({a.member()});
  b.links->set_members({a.member(), b.member()});
  REQUIRE(run_until(loop, [&] { return b.links->is_connected(1); }));
  CHECK(a.links->differing().empty());
  CHECK(a.links->last_level(2) == 0);
  // The same connection stays.
  a.links->set_members({a.member(), b.member()});
  CHECK(a.links->differing() == Differing{{.name = "limits.job_bytes", .nodes = {{"a"}, {"b"}}}});
  CHECK(a.links->last_level(2) == cluster::kFeatureLevel);
  // The settings of its hello do not replace later ones when the members change again.
  set_settings(b, with_job_bytes(300));
  REQUIRE(run_until(loop, [&] { return a.links->is_connected(2); }));
  set_settings(b, with_job_bytes(100));
  CHECK(sees(a, {}));
  a.links->set_members({a.member(), b.member(), {.id = 3, .address = "c@127.0.0.1:1"}});
  CHECK(a.links->differing().empty());
  CHECK(logged_lines(b, "connected to another node") == 1);
}

TEST_CASE("a cluster of the first level hears nothing of settings until the level rises") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  PeerNode b(loop, 2);
  set_settings(a, with_job_bytes(100), cluster::kFirstLevel);
  set_settings(b, with_job_bytes(200), cluster::kFirstLevel);
  join({&a, &b});
  REQUIRE(all_connected({&a, &b}));
  CHECK(a.hellos.front().settings.empty());
  CHECK(a.links->differing().empty());
  set_settings(b, with_job_bytes(200));
  CHECK(sees(a, {{.name = "limits.job_bytes", .nodes = {{"a"}, {"b"}}}}));
  CHECK(b.links->differing().empty());
  set_settings(a, with_job_bytes(100));
  CHECK(sees(b, {{.name = "limits.job_bytes", .nodes = {{"a"}, {"b"}}}}));
}

TEST_CASE("settings are sent until the member has answered, whatever it answers") {
  loop::Loop loop;
  PeerNode a(loop, 1, kQuick);
  RawNode b(loop);
  b.level = cluster::kFeatureLevel;
  set_settings(a, with_job_bytes(100));
  a.links->set_members({a.member(), b.member()});
  const RawPeer link = b.accept_and_welcome();
  CHECK(b.hello->settings == a.facts.settings);
  REQUIRE(run_until(loop, [&] { return a.links->is_connected(2); }));
  set_settings(a, with_job_bytes(200));
  for (int i = 0; i < 3; ++i) {
    const RawPeer lost = b.accept();
    static_cast<void>(lost);
  }
  RawPeer answered = b.accept_and_welcome();
  CHECK(b.hello->purpose == cluster::Purpose::request);
  CHECK(b.hello->settings == a.facts.settings);
  const auto request = cluster::decode_request(answered.take_frame());
  REQUIRE(request);
  CHECK(request->path == "/cluster/settings");
  answered.send(encode(cluster::Response{.status = 404, .body = "{}"}));
  CHECK(answered.is_closed());
  // The next request has later settings, so none was made in between.
  run_ticks(loop, 20);
  set_settings(a, with_job_bytes(300));
  b.accept_and_welcome();
  CHECK(b.hello->settings == a.facts.settings);
}

TEST_CASE("neither a client nor a node that is no member brings settings") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  set_settings(a, with_job_bytes(100));
  a.links->set_members({a.member(), {.id = 2, .address = "b@127.0.0.1:1"}});
  CHECK(a.links->begin_client({.id = 2, .address = "b@127.0.0.1:1"}, {}).hello().size() < 200);
  cluster::Hello hello = a.hello(3);
  hello.level = cluster::kFeatureLevel;
  hello.configuration_index = 9;  // it may be a member
  hello.settings = node::digests_of(with_job_bytes(200), kCluster);
  CHECK(answer_to(a, hello) == cluster::WelcomeStatus::ok);
  CHECK(a.links->differing().empty());
  hello.from = 2;
  CHECK(answer_to(a, hello) == cluster::WelcomeStatus::ok);
  CHECK(a.links->differing().size() == 1);
}

}  // namespace tubed::server_test
