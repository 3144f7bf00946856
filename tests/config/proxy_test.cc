// proxy_protocol of a listener.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "config/print.h"
#include "config/reload.h"
#include "tests/config/loading.h"

namespace tubed::config_test {
namespace {

// A listener with these networks.
std::string listener(std::string_view address, std::string_view networks,
                     std::string_view others = {}) {
  return fmt::format("[[listen]]\naddress = \"{}\"\nproxy_protocol = {}\n{}", address, networks,
                     others);
}

Listen load_listener(const std::string& contents) {
  const auto settings = load(contents);
  REQUIRE_MESSAGE(settings.ok(), load_error(contents));
  return settings.value().listeners.at(0);
}

}  // namespace

TEST_CASE("the networks of the proxies are a list, or one network") {
  const Listen two =
      load_listener(listener("0.0.0.0:11300", "[\"10.0.0.0/8\", \"192.0.2.7\", \"fd00::/8\"]"));
  CHECK(two.proxies == std::vector<std::string>{"10.0.0.0/8", "192.0.2.7", "fd00::/8"});
  REQUIRE(proxy_networks(two).size() == 3);
  CHECK(proxy_networks(two)[0].prefix == 8);
  CHECK(proxy_networks(two)[1].prefix == 32);
  CHECK(to_string(proxy_networks(two)[2].address) == "fd00::");
  CHECK(load_listener(listener("127.0.0.1", "\"::/0\"")).proxies ==
        std::vector<std::string>{"::/0"});
  CHECK(load_listener("[[listen]]\naddress = \"127.0.0.1\"\n").proxies.empty());
}

TEST_CASE("a unix address has proxies by the word unix, and no other address has") {
  const Listen local = load_listener(listener("unix:/a", "[\"unix\"]"));
  CHECK(local.proxies == std::vector<std::string>{"unix"});
  CHECK(proxy_networks(local).empty());
  const std::string of_unix = "tubed.toml:2: listen unix:/a: proxy_protocol: ";
  for (const char* network : {"127.0.0.0/8", "0.0.0.0/0", "Unix"}) {
    CAPTURE(network);
    CHECK(load_error(listener("unix:/a", fmt::format("[\"unix\", \"{}\"]", network))) ==
          fmt::format("{}\"{}\" is for TCP; a unix: address needs \"unix\"", of_unix, network));
  }
  CHECK(load_error(listener("10.0.0.1:1", "[\"10.0.0.0/8\", \"unix\"]")) ==
        "tubed.toml:2: listen 10.0.0.1:1: proxy_protocol: \"unix\" needs a unix: address");
}

TEST_CASE("a network that is none is refused with its reason") {
  const auto reason = [](std::string_view network) {
    const std::string error = load_error(listener("::1", fmt::format("[\"{}\"]", network)));
    const std::string begin =
        fmt::format("tubed.toml:2: listen [::1]:11300: proxy_protocol: \"{}\" ", network);
    CHECK(error.starts_with(begin));
    return error.substr(std::min(begin.size(), error.size()));
  };
  CHECK(reason("balancer.example") == "is not a network such as 10.0.0.0/8 or fd00::/8");
  CHECK(reason("10.0.0.0/33") == "has no prefix from 0 to 32");
  CHECK(reason("10.1.2.3/8") == "has bits after its prefix; the network is 10.0.0.0/8");
  CHECK(load_error(listener("::1", "[]")) ==
        "tubed.toml:3: listen.proxy_protocol: is empty; for the default, leave it out");
}

TEST_CASE("a client behind a proxy has no role by the proxy's user") {
  CHECK(load_error(listener("unix:/a", "\"unix\"", "auth = \"peer\"\n")) ==
        "tubed.toml:2: listen unix:/a: auth = \"peer\" with proxy_protocol: each client would "
        "have the user of the proxy");
  CHECK(load_error("auth.tokens = \"/t\"\n" +
                   listener("unix:/a", "\"unix\"", "auth = \"token\"\n")) == "");
  CHECK(load_error(listener("10.0.0.1", "\"10.0.0.0/8\"",
                            "auth = \"mtls\"\ntls.certificate = \"/c\"\ntls.client_ca = "
                            "\"/d\"\n")) == "");
}

TEST_CASE("only a listener of clients has proxies") {
  constexpr std::string_view kReason =
      "only [[listen]] has this key: HTTP and the nodes of a cluster take no header of the PROXY "
      "protocol";
  CHECK(load_error("[http]\nproxy_protocol = [\"10.0.0.0/8\"]\n") ==
        fmt::format("tubed.toml:2: http.proxy_protocol: {}", kReason));
  CHECK(load_error("[cluster]\nproxy_protocol = [\"10.0.0.0/8\"]\n") ==
        fmt::format("tubed.toml:2: cluster.proxy_protocol: {}", kReason));
  CHECK(load_error("proxy_protocol = [\"10.0.0.0/8\"]\n") ==
        fmt::format("tubed.toml:1: proxy_protocol: {}", kReason));
}

TEST_CASE("a listener with proxies is not plain, and its proxies change at a reload") {
  CHECK_FALSE(is_plain(load_listener(listener("127.0.0.1", "\"10.0.0.0/8\""))));
  Settings current;
  Settings fresh = current;
  fresh.listeners[0].proxies = {"10.0.0.0/8"};
  for (const auto& [from, to] : {std::pair(current, fresh), std::pair(fresh, current)}) {
    const auto plan = plan_reload(from, to);
    CHECK(plan.changed == std::vector<std::string>{"listen"});
    CHECK(plan.needs_restart.empty());
    CHECK(plan.next == to);
  }
}

TEST_CASE("printed settings have the networks") {
  const auto settings = load(listener("127.0.0.1", "[\"10.0.0.0/8\", \"fd00::/8\"]")).value();
  const std::string printed = print_settings(settings);
  CHECK(printed.find("proxy_protocol = [\"10.0.0.0/8\", \"fd00::/8\"]\n") != std::string::npos);
  CHECK(load(printed).value() == settings);
}

}  // namespace tubed::config_test
