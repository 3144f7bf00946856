// The checks of the settings of a node of a cluster, and the flags of its tasks.
#include <array>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config/print.h"
#include "tests/config/loading.h"

namespace tubed::config_test {
namespace {

// A node, and `more` lines of its section.
std::string node(std::string_view more = "", std::string_view listen = "127.0.0.1:7001") {
  return fmt::format(
      "[journal]\ndirectory = \"/j\"\n[cluster]\nname = \"a\"\nlisten = \"{}\"\n{}\n", listen,
      more);
}

TEST_CASE("a node has a name and an address, and the rest has defaults") {
  const auto cluster = load(node()).value().cluster;
  CHECK(cluster.enabled());
  CHECK(cluster.name == "a");
  CHECK(to_string(cluster.listen.value()) == "127.0.0.1:7001");
  CHECK(cluster.address.empty());
  CHECK_FALSE(cluster.admin);
  CHECK(cluster.clients == ClusterClients::forward);
  CHECK(cluster.election_timeout == std::chrono::milliseconds(300));
  CHECK(cluster.hold_grace == std::chrono::seconds(10));
  CHECK(cluster.log_size == 1U << 30);
  CHECK(cluster.fetch_rate == 0);
  CHECK(cluster.insecure == ClusterInsecure::no);
  CHECK(cluster.secret_file.empty());
  CHECK_FALSE(Settings().cluster.enabled());
}

TEST_CASE("all settings of a node, as they are written and as flags") {
  const auto from_file =
      load(node("address = \"10.1.2.3\"\nadmin = \"unix:/run/admin\"\nclients = \"refuse\"\n"
                "election_timeout = \"1s\"\nhold_grace = 0\nlog_size = \"64MiB\"\n"
                "fetch_rate = \"10MiB\"\ninsecure = \"yes\"\n",
                "0.0.0.0"))
          .value();
  CHECK(to_string(from_file.cluster.listen.value()) == "0.0.0.0:11302");
  CHECK(from_file.cluster.address == "10.1.2.3:11302");
  CHECK(from_file.cluster.admin->path == "/run/admin");
  CHECK(from_file.cluster.election_timeout == std::chrono::seconds(1));
  CHECK(from_file.cluster.hold_grace == Duration::zero());
  CHECK(from_file.cluster.log_size == 64U << 20);
  CHECK(from_file.cluster.fetch_rate == 10U << 20);
  CHECK(from_file.cluster.insecure == ClusterInsecure::yes);
  const auto from_flags = load(
      "",
      accept({"-b", "/j", "--cluster-name=a", "--cluster-listen=0.0.0.0",
              "--cluster-address=10.1.2.3", "--cluster-admin=unix:/run/admin",
              "--cluster-clients=refuse", "--cluster-election-timeout=1s", "--cluster-hold-grace=0",
              "--cluster-log-size=64MiB", "--cluster-fetch-rate=10MiB", "--cluster-insecure=yes"}));
  REQUIRE(from_flags.ok());
  CHECK(from_flags.value() == from_file);
  CHECK(load(print_settings(from_file)).value() == from_file);
}

TEST_CASE("only the user of the server and root may connect to the socket for operators") {
  CHECK(load(node("admin = \"unix:/a\"")).value().cluster.admin->mode == 0600);
}

TEST_CASE("bounds") {
  CHECK(load_error(node("election_timeout = \"99ms\"")) ==
        "tubed.toml:6: cluster.election_timeout: 99ms is below the minimum of 100ms");
  CHECK(load_error(node("election_timeout = \"10001ms\"")) ==
        "tubed.toml:6: cluster.election_timeout: 10001ms is above the maximum of 10s");
  CHECK(load_error(node("hold_grace = 3601")) ==
        "tubed.toml:6: cluster.hold_grace: 3601 is above the maximum of 1h");
  CHECK(load_error(node("log_size = 67108863")) ==
        "tubed.toml:6: cluster.log_size: 67108863 is below the minimum of 64MiB");
  CHECK(load_error(node("clients = \"redirect\"")) ==
        "tubed.toml:6: cluster.clients: \"redirect\" is not one of forward, refuse");
  CHECK(load_error(node("leader_wait = 61")) ==
        "tubed.toml:6: cluster.leader_wait: 61 is above the maximum of 1m");
  CHECK(load_error(node("insecure = true")) ==
        "tubed.toml:6: cluster.insecure: expected one of no, yes, not a boolean");
}

TEST_CASE("without a name, each other setting is refused unless it is the default") {
  for (const auto* key : {"listen = \"127.0.0.1:7001\"", "address = \"10.0.0.1:1\"",
                          "admin = \"unix:/a\"", "election_timeout = \"1s\"", "hold_grace = 0",
                          "log_size = \"64MiB\"", "fetch_rate = 1", "insecure = \"yes\""}) {
    CAPTURE(key);
    const std::string name(key, std::string_view(key).find(' '));
    CHECK(load_error(fmt::format("[cluster]\n{}\n", key)) ==
          fmt::format("tubed.toml:2: cluster.{}: cluster.name is not set, so the server is in no "
                      "cluster",
                      name));
  }
  CHECK(load_error("", accept({"--cluster-listen", "127.0.0.1"})) ==
        "--cluster-listen: cluster.name is not set, so the server is in no cluster");
  CHECK(load("[cluster]\n").value() == Settings());
  CHECK(load("[cluster]\nname = \"\"\nhold_grace = 10\ninsecure = \"no\"\n").value() == Settings());
}

TEST_CASE("a build without cluster mode refuses the section, and nothing else") {
  CHECK(load_error(node(), {}, false) ==
        "tubed.toml:4: cluster.name: this tubed is built without cluster mode; see tubed "
        "--version");
  CHECK(load_error("[cluster]\nhold_grace = 0\n", {}, false) ==
        "tubed.toml:2: cluster.hold_grace: this tubed is built without cluster mode; see tubed "
        "--version");
  CHECK(load_error("", accept({"--cluster-name", "a"}), false) ==
        "--cluster-name: this tubed is built without cluster mode; see tubed --version");
  CHECK(load_error("journal.directory = \"/j\"", accept({"--cluster-leave", "-b/j"}), false) ==
        "--cluster-leave: this tubed is built without cluster mode; see tubed --version");
  CHECK(load(print_settings(Settings()), {}, false).value() == Settings());
  CHECK(load("limits.job_bytes = \"1GiB\"", {}, false).ok());
}

TEST_CASE("whether cluster mode is built in is what --version prints") {
  CHECK(cluster_is_built_in() == (version_text().find("not built in") == std::string::npos));
  CommandLine line;
  line.settings.emplace_back("cluster.name", config::Value(std::string("a")));
  const auto message = load_settings(line).error().message;
  CHECK((message.find("built without") == std::string::npos) == cluster_is_built_in());
}

TEST_CASE("a name has 1 to 32 letters, digits, dots, underscores and hyphens") {
  const auto error_of = [](std::string_view name) {
    return load_error(
        fmt::format("journal.directory = \"/j\"\ncluster.listen = \"127.0.0.1:1\"\n"
                    "cluster.name = \"{}\"\n",
                    name));
  };
  for (const auto* name : {"a", "A.b_c-9", "-", "..", "01234567890123456789012345678901"}) {
    CAPTURE(name);
    CHECK(error_of(name).empty());
  }
  for (const auto* name :
       {" ", "a b", "a@b", "a:b", "a/b", "a,b", "\xc3\xa4", "012345678901234567890123456789012"}) {
    CAPTURE(name);
    CHECK(error_of(name) == fmt::format("tubed.toml:3: cluster.name: \"{}\" is not 1 to 32 "
                                        "letters, digits, dots, underscores and hyphens",
                                        name));
  }
}

TEST_CASE("a node needs a journal and an address") {
  CHECK(load_error("cluster.name = \"a\"\ncluster.listen = \"127.0.0.1:1\"\n") ==
        "tubed.toml:1: cluster.name: a node needs journal.directory");
  CHECK(load_error("cluster.name = \"a\"\njournal.directory = \"/j\"\n") ==
        "tubed.toml:1: cluster.name: a node needs cluster.listen");
  CHECK(load_error("journal.directory = \"/j\"\n", accept({"--cluster-name", "a"})) ==
        "--cluster-name: a node needs cluster.listen");
}

TEST_CASE("nodes connect by TCP to one address with a port") {
  CHECK(load_error(node("", "unix:/a")) ==
        "tubed.toml:5: cluster.listen: unix:/a: nodes connect by TCP");
  CHECK(load_error(node("", "localhost:1"))
            .ends_with("\"localhost\" is not a numeric address; names are not resolved: write "
                       "127.0.0.1 or [::1]"));
  CHECK(load_error(node("address = \"unix:/a\"")) ==
        "tubed.toml:6: cluster.address: unix:/a: nodes connect by TCP");
  CHECK(
      load_error(node("address = \"10.0.0.300:1\"")) ==
      "tubed.toml:6: cluster.address: \"10.0.0.300\" is neither a numeric address nor the name of "
      "a host");
  CHECK(load_error(node("address = \"0.0.0.0:1\"")) ==
        "tubed.toml:6: cluster.address: 0.0.0.0:1 is the address of no node");
  CHECK(load_error(node("address = \"[::]:1\"")) ==
        "tubed.toml:6: cluster.address: [::]:1 is the address of no node");
  CHECK(load_error(node("address = \"10.0.0.1:0\"\ninsecure = \"yes\"")) ==
        "tubed.toml:6: cluster.address: 10.0.0.1:0 has no port");
  for (const auto* wildcard : {"0.0.0.0:1", "[::]:1", "[::ffff:0.0.0.0]:1"}) {
    CAPTURE(wildcard);
    CHECK(load_error(node("insecure = \"yes\"", wildcard)) ==
          fmt::format("tubed.toml:5: cluster.listen: {} is the address of no node; set "
                      "cluster.address to what the other nodes connect to",
                      wildcard));
    CHECK(load_error(node("address = \"10.0.0.1:1\"\ninsecure = \"yes\"", wildcard)).empty());
  }
  CHECK(load_error(node("", "127.0.0.1:0")) ==
        "tubed.toml:5: cluster.listen: 127.0.0.1:0 has no port; set cluster.address to what the "
        "other nodes connect to");
  CHECK(load_error(node("address = \"127.0.0.1:1\"", "127.0.0.1:0")).empty());
  CHECK(load(node("address = \"[0:0::1]:0002\"")).value().cluster.address == "[::1]:2");
}

constexpr auto kPrivate = std::to_array<std::string_view>(
    {"10.0.0.0:1", "10.255.255.255:1", "172.16.0.0:1", "172.31.255.255:1", "192.168.0.1:1",
     "169.254.9.9:1", "100.64.0.0:1", "100.127.255.255:1", "[fc00::]:1", "[fdff:ffff::1]:1",
     "[fe80::1]:1", "[febf::1]:1", "[::ffff:10.0.0.1]:1"});
constexpr auto kPublic = std::to_array<std::string_view>(
    {"9.255.255.255:1", "11.0.0.0:1", "172.15.255.255:1", "172.32.0.0:1", "192.167.255.255:1",
     "192.169.0.0:1", "169.253.0.1:1", "169.255.0.0:1", "100.63.255.255:1", "100.128.0.0:1",
     "126.255.255.255:1", "128.0.0.1:1", "[::2]:1", "[fbff::1]:1", "[fe00::1]:1", "[fec0::1]:1",
     "[2001:db8::1]:1", "[::ffff:9.9.9.9]:1"});
constexpr std::string_view kInsecure = "insecure = \"yes\"\n";
constexpr std::string_view kSecret = "secret_file = \"/s\"\n";

std::string address_line(std::string_view address) {
  return fmt::format("address = \"{}\"\n", address);
}

std::string needs_secret(std::string_view address) {
  return fmt::format(
      "other machines can connect to {}, and without a secret each of them can read and change all "
      "jobs: make a secret with tubectl cluster secret and set cluster.secret_file on all nodes, "
      "or set cluster.tls; to do without, set cluster.insecure = \"yes\"",
      address);
}

TEST_CASE("addresses of loopback need neither cluster.secret_file nor cluster.insecure") {
  for (const auto* loopback : {"127.0.0.1:1", "127.255.255.255:1", "[::1]:1"}) {
    CAPTURE(loopback);
    CHECK(load_error(node("", loopback)).empty());
    CHECK(load_error(node(address_line(loopback))).empty());
  }
}

TEST_CASE("other addresses need cluster.secret_file or cluster.insecure") {
  const auto check = [](std::string_view address) {
    CAPTURE(address);
    CHECK(load_error(node("", address)) ==
          "tubed.toml:5: cluster.listen: " + needs_secret(address));
    CHECK(load_error(node(kInsecure, address)).empty());
    const auto line = address_line(address);
    CHECK(load_error(node(line)) == "tubed.toml:6: cluster.address: " + needs_secret(address));
    CHECK(load_error(node(line + std::string(kInsecure))).empty());
  };
  for (const auto& address : kPrivate) check(address);
  for (const auto& address : kPublic) check(address);
  for (const auto& address : kPrivate) {
    CAPTURE(address);
    CHECK(load_error(node(kSecret, address)).empty());
    CHECK(load_error(node(address_line(address) + std::string(kSecret))).empty());
  }
  CHECK(load_error("", accept({"-b", "/j", "--cluster-name=a", "--cluster-listen=10.0.0.1"})) ==
        "--cluster-listen: " + needs_secret("10.0.0.1:11302"));
  for (const auto* address : {"127.0.0.1:1", "10.0.0.1:1"}) {
    CHECK(load_error(node(address_line(address), "0.0.0.0:1")) ==
          "tubed.toml:5: cluster.listen: " + needs_secret("0.0.0.0:1"));
  }
  CHECK(load_error("", accept({"-b", "/j", "--cluster-name=a", "--cluster-listen=10.0.0.1",
                               "--cluster-bootstrap"})) ==
        "--cluster-listen: " + needs_secret("10.0.0.1:11302"));
}

TEST_CASE("the other nodes may know a node by a name, which counts as not loopback") {
  const auto address = [](const std::string& line) {
    return load(node(line)).value().cluster.address;
  };
  const std::string secret(kSecret);
  CHECK(address("address = \"A.Tubed.:1\"\n" + secret) == "a.tubed:1");
  CHECK(address("address = \"a.tubed\"\n" + secret) == "a.tubed:11302");
  CHECK(address("address = \"localhost\"\n" + std::string(kInsecure)) == "localhost:11302");
  for (const std::string name : {"a.tubed:1", "localhost:1"}) {
    CAPTURE(name);
    CHECK(load_error(node(address_line(name))) ==
          "tubed.toml:6: cluster.address: " + needs_secret(name));
    CHECK(load_error(node(address_line(name) + secret, "10.0.0.1:1")).empty());
    CHECK(load_error(node(address_line(name) + secret + std::string(kInsecure), "0.0.0.0:1"))
              .empty());
    CHECK(load_error(node(address_line(name) + secret, "0.0.0.0:1"))
              .starts_with("tubed.toml:5: cluster.listen: 0.0.0.0:1 is neither"));
  }
  CHECK(load_error(node("address = \"a.tubed:0\"\n" + secret)) ==
        "tubed.toml:6: cluster.address: a.tubed:0 has no port");
  CHECK(load_error(node("address = \"a.tubed:x\"\n" + secret)) ==
        "tubed.toml:6: cluster.address: \"x\" is not a port from 0 to 65535");
  CHECK(
      load_error(node("address = \"a_b\"\n" + secret)) ==
      "tubed.toml:6: cluster.address: \"a_b\" is neither a numeric address nor the name of a host");
  CHECK(load_error(node("", "a.tubed:1"))
            .ends_with("\"a.tubed\" is not a numeric address; names are not resolved"));
}

TEST_CASE("addresses that are not private need cluster.insecure even with a secret") {
  for (const auto& address : kPublic) {
    CAPTURE(address);
    const auto reason = fmt::format(
        "{} is neither loopback nor private, and nodes do not encrypt without cluster.tls; to "
        "allow it, set cluster.insecure = \"yes\"",
        address);
    const std::string secret(kSecret);
    CHECK(load_error(node(secret, address)) == "tubed.toml:5: cluster.listen: " + reason);
    CHECK(load_error(node(secret + std::string(kInsecure), address)).empty());
    CHECK(load_error(node(address_line(address) + secret)) ==
          "tubed.toml:6: cluster.address: " + reason);
  }
  CHECK(load_error(node("address = \"10.0.0.1:1\"\nsecret_file = \"/s\"", "0.0.0.0:1"))
            .starts_with("tubed.toml:5: cluster.listen: 0.0.0.0:1 is neither"));
}

TEST_CASE("with cluster.tls, a node may have any address") {
  constexpr std::string_view kTls = "tls = { certificate = \"/c\", key = \"/k\", ca = \"/a\" }\n";
  for (const auto& address : kPrivate) CHECK(load_error(node(kTls, address)).empty());
  for (const auto& address : kPublic) {
    CAPTURE(address);
    CHECK(load_error(node(kTls, address)).empty());
    CHECK(load_error(node(address_line(address) + std::string(kTls), "0.0.0.0:1")).empty());
  }
  for (const auto& [files, reason] :
       {std::pair("certificate = \"/c\", key = \"/k\"",
                  "cluster.tls.certificate: cluster.tls.certificate is set without cluster.tls.ca"),
        {"ca = \"/a\"", "cluster.tls.ca: cluster.tls.ca is set without cluster.tls.certificate"},
        {"key = \"/k\", ca = \"/a\"",
         "cluster.tls.key: cluster.tls.key is set without cluster.tls.certificate"}}) {
    CHECK(load_error(node(fmt::format("tls = {{ {} }}\n", files))) ==
          fmt::format("tubed.toml:6: {}: all three files of cluster.tls are needed, or none",
                      reason));
  }
}

TEST_CASE("nodes, clients and HTTP do not share an address") {
  const auto with = [](std::string_view more) { return fmt::format("{}\n{}", node(), more); };
  CHECK(load_error(with("[[listen]]\naddress = \"127.0.0.1:7001\"\n")) ==
        "tubed.toml:5: cluster.listen: clients already connect to 127.0.0.1:7001 (tubed.toml:9)");
  CHECK(load_error(with("[[listen]]\naddress = \"0.0.0.0:7001\"\n")) ==
        "tubed.toml:5: cluster.listen: clients already connect to 0.0.0.0:7001 (tubed.toml:9)");
  CHECK(load_error(node("", "127.0.0.1:11300")) ==
        "tubed.toml:5: cluster.listen: clients already connect to 127.0.0.1:11300 (the default)");
  CHECK(load_error(node("address = \"10.0.0.1:1\"\ninsecure = \"yes\"", "0.0.0.0:11300")) ==
        "tubed.toml:5: cluster.listen: clients already connect to 127.0.0.1:11300 (the default)");
  CHECK(load_error(node(), accept({"-l", "0.0.0.0:7001"})) ==
        "tubed.toml:5: cluster.listen: clients already connect to 0.0.0.0:7001 (-l/--listen)");
  CHECK(load_error(with("[http]\nlisten = \"0.0.0.0:7001\"\n")) ==
        "tubed.toml:5: cluster.listen: HTTP is already served at 0.0.0.0:7001 (http.listen, "
        "tubed.toml:9)");
  for (const auto* other : {"127.0.0.2:7001", "[::]:7001", "127.0.0.1:7002", "unix:/a"}) {
    CAPTURE(other);
    CHECK(load_error(with(fmt::format("[[listen]]\naddress = \"{}\"\n", other))).empty());
    CHECK(load_error(with(fmt::format("[http]\nlisten = \"{}\"\n", other))).empty());
  }
}

TEST_CASE("the address for operators is a unix socket of its own") {
  CHECK(load_error(node("admin = \"127.0.0.1:1\"")) ==
        "tubed.toml:6: cluster.admin: 127.0.0.1:1 is not a unix socket; give unix:PATH");
  CHECK(load_error(node("admin = \"unix:/a\"\n[[listen]]\naddress = \"unix:/a\"\n")) ==
        "tubed.toml:6: cluster.admin: clients already connect to unix:/a (tubed.toml:8)");
  CHECK(load_error(node("admin = \"unix:/a\"\n[http]\nlisten = \"unix:/a\"\n")) ==
        "tubed.toml:6: cluster.admin: HTTP is already served at unix:/a (http.listen, "
        "tubed.toml:8)");
  CHECK(load_error(node("admin = \"unix:/a\"\n[http]\nlisten = \"unix:/b\"\n")).empty());
}

TEST_CASE("a job of a cluster has 8 MiB at most") {
  CHECK(load(node("[limits]\njob_bytes = \"8MiB\"")).value().queue.job_bytes ==
        kMaxClusterJobBytes);
  CHECK(load_error(node("[limits]\njob_bytes = 8388609")) ==
        "tubed.toml:7: limits.job_bytes: 8388609 is above 8388608, the maximum in a cluster "
        "(cluster.name, tubed.toml:4)");
  CHECK(load_error(node(), accept({"-z", "8388609"})) ==
        "-z/--limits-job-bytes: 8388609 is above 8388608, the maximum in a cluster "
        "(cluster.name, tubed.toml:4)");
}

TEST_CASE("a server in test mode is in no cluster") {
  const auto line = accept({"--test-mode", "-b/j", "--cluster-name=a", "--cluster-listen=::1"});
  CHECK(load_settings(line, true).error().message ==
        "--cluster-name: a server in test mode is in no cluster");
}

// The packaged file sets it.
TEST_CASE("journal.sync has no effect on a node, and may stay in the file") {
  CHECK(load(node(), accept({"--journal-sync", "always"})).value().journal_sync == kSyncAlways);
}

TEST_CASE("the tasks of a cluster") {
  for (const auto task : {Task::cluster_bootstrap, Task::cluster_leave}) {
    const std::string flag =
        task == Task::cluster_leave ? "--cluster-leave" : "--cluster-bootstrap";
    CAPTURE(flag);
    const auto line = accept({"--config", "x", flag});
    CHECK(line.task == task);
    CHECK(is_cluster_task(line.task));
    CHECK_FALSE(line.accepts_loss);
    CHECK(refuse({"--config", "x", flag, flag}).text ==
          fmt::format("tubed: {}: only one task can be done at a time; try tubed --help\n", flag));
    CHECK(refuse({"--config", "x", flag, "--drain"}).code == kExitUsage);
    CHECK(refuse({"--test-mode", "-b/j", "--cluster-name=a", flag}).text ==
          "tubed: --test-mode is no part of a task; try tubed --help\n");
  }
  CHECK_FALSE(is_cluster_task(Task::serve));
  CHECK_FALSE(is_cluster_task(Task::backup));
}

TEST_CASE("a recovery needs a confirmation") {
  const auto line = accept({"--config", "x", "--i-accept-the-loss", "--cluster-recover"});
  CHECK(line.task == Task::cluster_recover);
  CHECK(is_cluster_task(line.task));
  CHECK(line.accepts_loss);
  const auto exit = refuse({"--config", "x", "--cluster-recover"});
  CHECK(exit.code == kExitUsage);
  CHECK(exit.text ==
        "tubed: --cluster-recover loses each change that only the other nodes have, even if it was "
        "acknowledged; if a majority of the nodes is lost for good, give "
        "--i-accept-the-loss as well; try tubed --help\n");
  CHECK(refuse({"--i-accept-the-loss"}).text ==
        "tubed: --i-accept-the-loss needs --cluster-recover as well; try tubed --help\n");
  CHECK(refuse({"--config", "x", "--cluster-leave", "--i-accept-the-loss"}).code == kExitUsage);
}

TEST_CASE("the tasks of a cluster need a node, or a journal") {
  CHECK(refuse({"--cluster-bootstrap"}).text ==
        "tubed: --cluster-bootstrap needs --cluster-name as well; try tubed --help\n");
  CHECK(refuse({"--cluster-recover", "--i-accept-the-loss"}).text ==
        "tubed: --cluster-recover needs --cluster-name as well; try tubed --help\n");
  CHECK(refuse({"--cluster-leave"}).text ==
        "tubed: --cluster-leave needs -b/--journal-directory as well; try tubed --help\n");
  const auto error_of = [](std::string_view contents, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--config", "x"});
    return load_error(contents, accept(flags));
  };
  const std::vector<std::string> recover{"--cluster-recover", "--i-accept-the-loss"};
  CHECK(error_of("", {"--cluster-bootstrap"}) ==
        "tubed.toml: cluster.name is not set; give --cluster-name as well");
  CHECK(error_of("", recover) ==
        "tubed.toml: cluster.name is not set; give --cluster-name as well");
  CHECK(error_of("cluster.name = \"a\"", {"--cluster-bootstrap"}) ==
        "tubed.toml:1: cluster.name: a node needs journal.directory");
  CHECK(error_of("", {"--cluster-leave"}) ==
        "tubed.toml: journal.directory is not set; give -b as well");
  CHECK(error_of(node(), {"--cluster-bootstrap"}).empty());
  CHECK(error_of(node(), recover).empty());
  CHECK(error_of(node(), {"--cluster-leave"}).empty());
  CHECK(error_of("journal.directory = \"/j\"", {"--cluster-leave"}).empty());
}

}  // namespace
}  // namespace tubed::config_test
