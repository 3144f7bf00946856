#include "config/reload.h"

#include <doctest/doctest.h>

#include "config/table.h"

namespace tubed {
namespace {

// `settings` with another value for `row`.
Settings with_change(Settings settings, const config::Setting& row) {
  const auto is_text = row.type.kind == config::Kind::text;
  const auto is_choice = row.type.kind == config::Kind::choice;
  const auto other = is_choice                                ? std::int64_t{1}
                     : row.default_number != row.type.maximum ? row.type.maximum
                                                              : row.type.minimum;
  if (row.type.kind == config::Kind::list) {
    row.set(settings, std::vector<std::string>{"other"});
    return settings;
  }
  const auto is_address = row.type.kind == config::Kind::address;
  row.set(settings, is_address ? config::Value("127.0.0.1:7")
                    : is_text  ? config::Value("other")
                               : config::Value(other));
  return settings;
}

TEST_CASE("a reload without a change does nothing") {
  const auto plan = plan_reload(Settings(), Settings());
  CHECK(plan.changed.empty());
  CHECK(plan.needs_restart.empty());
  CHECK(plan.next == Settings());
}

TEST_CASE("a reloadable setting changes, any other waits for a restart") {
  for (const auto& row : config::settings_table()) {
    CAPTURE(row.key);
    const auto fresh = with_change(Settings(), row);
    REQUIRE_FALSE(fresh == Settings());
    const auto plan = plan_reload(Settings(), fresh);
    const std::vector<std::string> key{std::string(row.key)};
    CHECK(plan.changed == (row.reloadable ? key : std::vector<std::string>()));
    CHECK(plan.needs_restart == (row.reloadable ? std::vector<std::string>() : key));
    CHECK(plan.next == (row.reloadable ? fresh : Settings()));
  }
}

TEST_CASE(
    "journal.sync and journal.max_bytes change, the directory and the segment size wait for a "
    "restart") {
  Settings fresh;
  fresh.journal_directory = std::string("jobs");
  fresh.journal_sync = kSyncNever;
  fresh.journal_segment_bytes = 4096;
  fresh.journal_max_bytes = 1;
  const auto plan = plan_reload(Settings(), fresh);
  CHECK(plan.changed == std::vector<std::string>{"journal.sync", "journal.max_bytes"});
  CHECK(plan.needs_restart ==
        std::vector<std::string>{"journal.directory", "journal.segment_size"});
  CHECK(plan.next.journal_sync == kSyncNever);
  CHECK(plan.next.journal_directory.empty());
}

TEST_CASE("roles change now") {
  Settings current;
  current.roles.resize(1);
  current.roles[0].role.name = "worker";
  Settings fresh = current;
  fresh.roles[0].role.work = true;
  fresh.roles[0].tokens = {"one"};
  const auto plan = plan_reload(current, fresh);
  CHECK(plan.changed == std::vector<std::string>{"role"});
  CHECK(plan.needs_restart.empty());
  CHECK(plan.next == fresh);
  CHECK(plan_reload(fresh, current).next == current);
  CHECK(plan_reload(fresh, fresh).changed.empty());
}

TEST_CASE("the TLS, the authentication and the role of listeners change now") {
  Settings current;
  current.listeners.push_back(parse_listen("unix:/a").value());
  const auto changes_now = [&](const Settings& fresh) {
    REQUIRE_FALSE(fresh == current);
    const auto plan = plan_reload(current, fresh);
    CHECK(plan.changed == std::vector<std::string>{"listen"});
    CHECK(plan.needs_restart.empty());
    CHECK(plan.next == fresh);
  };
  Settings fresh = current;
  fresh.listeners[0].tls.certificates = {"/a"};
  changes_now(fresh);
  fresh = current;
  fresh.listeners[0].role = "worker";
  changes_now(fresh);
  fresh = current;
  fresh.listeners[1].auth = AuthMode::peer;
  changes_now(fresh);
}

TEST_CASE("if a socket changes, no listener changes before a restart") {
  Settings current;
  current.listeners.push_back(parse_listen("unix:/a").value());
  const auto waits = [&](const Settings& fresh) {
    const auto plan = plan_reload(current, fresh);
    CHECK(plan.changed.empty());
    CHECK(plan.needs_restart == std::vector<std::string>{"listen"});
    CHECK(plan.next == current);
  };
  Settings fresh = current;
  fresh.listeners[0].tls.certificates = {"/a"};
  fresh.listeners[1].mode = 0600;
  waits(fresh);
  fresh = current;
  fresh.listeners[0].tls.certificates = {"/a"};
  fresh.listeners.pop_back();
  waits(fresh);
}

TEST_CASE("a node stays one with its addresses until a restart, and its times and sizes change") {
  Settings current;
  current.cluster.name = "a";
  current.cluster.listen = parse_listen("10.0.0.1:1").value();
  Settings fresh = current;
  fresh.cluster.listen->port = 2;
  fresh.cluster.election_timeout = std::chrono::seconds(1);
  fresh.cluster.hold_grace = Duration::zero();
  fresh.cluster.log_size = 64U << 20;
  fresh.cluster.fetch_rate = 7;
  const auto plan = plan_reload(current, fresh);
  CHECK(plan.needs_restart ==
        std::vector<std::string>{"cluster.listen", "cluster.election_timeout"});
  CHECK(plan.changed ==
        std::vector<std::string>{"cluster.hold_grace", "cluster.log_size", "cluster.fetch_rate"});
  CHECK(plan.next.cluster.listen == current.cluster.listen);
  CHECK(plan.next.cluster.hold_grace == Duration::zero());
  CHECK(plan.next.cluster.log_size == 64U << 20);
  CHECK(plan.next.cluster.fetch_rate == 7);
}

TEST_CASE("the secret of an address that needs one ends only with a restart") {
  Settings current;
  current.cluster.name = "a";
  current.cluster.listen = parse_listen("10.0.0.1:1").value();
  current.cluster.secret_file = "/one";
  Settings fresh = current;
  fresh.cluster.secret_file = "/two";
  CHECK(plan_reload(current, fresh).changed == std::vector<std::string>{"cluster.secret_file"});
  const auto ends = [&](const std::string& with) {
    fresh.cluster.secret_file.clear();
    const auto plan = plan_reload(current, fresh);
    CHECK(plan.changed.empty());
    CHECK(plan.needs_restart == std::vector<std::string>{with, "cluster.secret_file"});
    CHECK(plan.next == current);
  };
  fresh = current;
  fresh.cluster.listen = parse_listen("127.0.0.1:1").value();
  ends("cluster.listen");
  fresh = current;
  fresh.cluster.insecure = ClusterInsecure::yes;
  ends("cluster.insecure");
  current.cluster.listen = parse_listen("127.0.0.1:1").value();
  current.cluster.address = "10.0.0.1:1";
  fresh = current;
  fresh.cluster.address.clear();
  ends("cluster.address");
  // It may end on an address of loopback, and where cluster.insecure already allows it.
  current.cluster.address.clear();
  fresh = current;
  fresh.cluster.secret_file.clear();
  CHECK(plan_reload(current, fresh).changed == std::vector<std::string>{"cluster.secret_file"});
  current.cluster.listen = parse_listen("10.0.0.1:1").value();
  current.cluster.insecure = ClusterInsecure::yes;
  fresh = current;
  fresh.cluster.secret_file.clear();
  CHECK(plan_reload(current, fresh).changed == std::vector<std::string>{"cluster.secret_file"});
}

TEST_CASE("TLS of an address that needs it ends only with a restart") {
  Settings current;
  current.cluster.name = "a";
  current.cluster.secret_file = "/one";
  current.cluster.tls = {.certificate = "/c", .key = "/k", .ca = "/a"};
  const std::vector<std::string> files{"cluster.tls.certificate", "cluster.tls.key",
                                       "cluster.tls.ca"};
  for (const bool is_public : {true, false}) {
    current.cluster.listen = parse_listen(is_public ? "8.8.8.8:1" : "10.0.0.1:1").value();
    Settings fresh = current;
    fresh.cluster.tls = {};
    const auto plan = plan_reload(current, fresh);
    // The secret suffices on a private address.
    CHECK((is_public ? plan.needs_restart : plan.changed) == files);
    CHECK(plan.next == (is_public ? current : fresh));
    CHECK(plan_reload(fresh, current).changed == files);
  }
}

TEST_CASE("jobs that are too large for a cluster wait for the restart that ends its membership") {
  Settings current;
  current.cluster.name = "a";
  Settings fresh;
  fresh.queue.job_bytes = kMaxClusterJobBytes + 1;
  fresh.queue.tubes = 7;
  auto plan = plan_reload(current, fresh);
  CHECK(plan.needs_restart == std::vector<std::string>{"cluster.name", "limits.job_bytes"});
  CHECK(plan.changed == std::vector<std::string>{"limits.tubes"});
  CHECK(plan.next.queue.job_bytes == current.queue.job_bytes);
  CHECK(plan.next.queue.tubes == 7);
  fresh.queue.job_bytes = kMaxClusterJobBytes;
  plan = plan_reload(current, fresh);
  CHECK(plan.needs_restart == std::vector<std::string>{"cluster.name"});
  CHECK(plan.next.queue.job_bytes == kMaxClusterJobBytes);
}

TEST_CASE("listeners wait for a restart") {
  Settings fresh;
  fresh.listeners[0].port = 7;
  fresh.queue.tubes = 7;
  const auto plan = plan_reload(Settings(), fresh);
  CHECK(plan.changed == std::vector<std::string>{"limits.tubes"});
  CHECK(plan.needs_restart == std::vector<std::string>{"listen"});
  CHECK(plan.next.queue.tubes == 7);
  CHECK(plan.next.listeners == Settings().listeners);
}

}  // namespace
}  // namespace tubed
