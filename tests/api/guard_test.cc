#include "api/guard.h"

#include <doctest/doctest.h>

namespace tubed::api {
namespace {

const std::vector<std::string> kHosts = {"queue.example.org", "Other"};

// The status, or 0 if the request is accepted.
unsigned check(std::optional<std::string_view> host, std::optional<std::string_view> origin = {},
               bool may_change = false, std::optional<std::string_view> requested_by = {}) {
  const auto problem =
      check_origin({.host = host, .origin = origin, .fetch_site = {}, .requested_by = requested_by},
                   may_change, kHosts);
  return problem ? problem->status : 0;
}

TEST_CASE("the Host is a numeric address, localhost or a name of the settings") {
  for (const std::string_view host :
       {"127.0.0.1", "127.0.0.1:11380", "10.1.2.3", "127.0.0.1.", "localhost", "LocalHost:80",
        "localhost.", "[::1]", "[::1]:80", "[2001:DB8::7f.1]", "[::ffff:127.0.0.1]:1",
        "queue.example.org", "QUEUE.example.ORG:443", "queue.example.org.", "other", "OTHER.:1"}) {
    CAPTURE(host);
    CHECK(check(host) == 0);
  }
  CHECK(check(std::nullopt) == 421);
  for (const std::string_view host : {"",
                                      ":80",
                                      ".",
                                      "evil.example.org",
                                      "example.org",
                                      "queue.example.org.evil.example",
                                      "localhost.evil.example",
                                      "127.0.0.1.evil.example",
                                      "127.0.0.1.nip.io",
                                      "a127.0.0.1",
                                      "127.0.0.1x",
                                      "[::1",
                                      "[]",
                                      "[::1]evil.example",
                                      "[::1].evil.example",
                                      "[evil]",
                                      "::1",
                                      "localhost:80@evil.example",
                                      "localhost:80:80",
                                      "localhost:",
                                      "user@localhost",
                                      "localhost/",
                                      "evil.example#localhost",
                                      "queue.example.org..",
                                      " localhost",
                                      "0x7f000001",
                                      "[::1]:x",
                                      "[::1]x:80"}) {
    CAPTURE(host);
    CHECK(check(host) == 421);
  }
}

TEST_CASE("an Origin is the Host") {
  CHECK(check("localhost:80", "http://localhost:80") == 0);
  CHECK(check("localhost:80", "https://LOCALHOST:80") == 0);
  CHECK(check("[::1]:80", "http://[::1]:80") == 0);
  CHECK(check("queue.example.org", "https://queue.example.org") == 0);
  for (const std::string_view origin :
       {"null", "", "http://", "http://localhost", "http://localhost:81", "http://127.0.0.1:80",
        "http://evil.example", "http://localhost:80.evil.example", "localhost:80",
        "http://localhost:80/", "file://localhost:80", "chrome-extension://localhost:80",
        "http://evil.example http://localhost:80"}) {
    CAPTURE(origin);
    CHECK(check("localhost:80", origin) == 403);
    CHECK(check("localhost:80", origin, true, "console") == 403);
  }
}

TEST_CASE("a browser says that the request is of no page of another site") {
  const auto check_site = [](std::string_view site) {
    const auto problem =
        check_origin({.host = "localhost:80", .origin = {}, .fetch_site = site, .requested_by = {}},
                     false, kHosts);
    return problem ? problem->status : 0;
  };
  CHECK(check_site("same-origin") == 0);
  CHECK(check_site("none") == 0);
  for (const std::string_view site :
       {"cross-site", "same-site", "", "Same-Origin", "same-origin, cross-site", "other"}) {
    CAPTURE(site);
    CHECK(check_site(site) == 403);
  }
}

TEST_CASE("a request that may change something has a header that pages of other sites cannot add") {
  CHECK(check("localhost", {}, true) == 403);
  CHECK(check("localhost", {}, true, "") == 403);
  CHECK(check("localhost", {}, true, "curl") == 0);
  CHECK(check("localhost", "http://localhost", true, "console") == 0);
  CHECK(check("localhost", "http://localhost", true) == 403);
  CHECK(check("evil.example", "http://evil.example", true, "console") == 421);
}

}  // namespace
}  // namespace tubed::api
