// Requests of the API that wait, the places that they leave to others, and what HTTP refuses.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "api/answer_json.h"
#include "api/problem.h"
#include "http/api_answers.h"
#include "http/wait_slots.h"
#include "protocol/reply.h"
#include "tests/server/http_rig.h"

namespace tubed::server_test {

using http::http_head;
using http::WaitSlots;
using loop_test::has_line;
using loop_test::status_in;
using Taken = http::WaitSlots::Taken;

TEST_CASE("requests that wait take no place from puts, deletes and a drain") {
  HttpRig rig;
  constexpr std::size_t kWaits = 70;
  std::vector<os::Socket> waiting;
  for (std::size_t i = 0; i < kWaits; ++i) {
    // The timeout is in the query or in the body.
    const bool in_query = i % 2 == 0;
    waiting.push_back(
        rig.send(in_query ? HttpRig::request("POST", "/tubes/t/reserve?timeout=50s")
                          : HttpRig::request("POST", "/tubes/t/reserve", R"({"timeout":50})")));
    std::string refusal;
    REQUIRE(rig.run_until([&] {
      refusal += loop_test::read_some(waiting.back());
      return rig.waiting() == i + 1 || !refusal.empty();
    }));
    REQUIRE(refusal == "");
  }
  for (int i = 0; i < 100; ++i) {
    REQUIRE(rig.call("POST", "/tubes/done/jobs", "x").starts_with("201 "));
    const std::string reserved = rig.call("POST", "/tubes/done/reserve");
    REQUIRE(reserved.starts_with("201 "));
    const std::string path = "/reservations/" + text_member(reserved, "token");
    REQUIRE(rig.call("DELETE", path) == "200 {\"result\":\"DELETED\"}\n");
  }
  CHECK(rig.call("POST", "/drain") == "200 {\"result\":\"DRAINING\"}\n");
  CHECK(rig.call("DELETE", "/drain") == "200 {\"result\":\"NOT_DRAINING\"}\n");
  CHECK(rig.waiting() == kWaits);
  // Those that wait are served.
  CHECK(rig.call("POST", "/tubes/t/jobs", "at last").starts_with("201 "));
  CHECK(status_in(rig.take_all(waiting.front())) == "HTTP/1.1 201 Created");
}

TEST_CASE("the end of a reservation and a drain have places of their own") {
  HttpRig rig;
  REQUIRE(rig.call("POST", "/tubes/t/jobs", "x").starts_with("201 "));
  const std::string token = text_member(rig.call("POST", "/tubes/t/reserve"), "token");
  std::vector<os::Socket> halves;
  const std::string half = HttpRig::request("POST", "/tubes/t/jobs", "x");
  for (std::size_t i = 0; i < loop::HttpServer::kMaxExchanges; ++i)
    halves.push_back(rig.send(half.substr(0, half.size() - 1)));
  REQUIRE(rig.run_until([&] { return rig.service.engine().info().sessions == halves.size() + 1; }));
  const std::string busy = rig.ask(HttpRig::request("GET", "/server"));
  CHECK(status_in(busy) == "HTTP/1.1 503 Service Unavailable");
  CHECK(has_line(busy, "Retry-After: 1"));
  CHECK(rig.call("GET", "/reservations/" + token).starts_with("503 "));
  CHECK(rig.call("POST", "/reservations/" + token + "/touch") == "200 {\"result\":\"TOUCHED\"}\n");
  CHECK(rig.call("DELETE", "/reservations/" + token) == "200 {\"result\":\"DELETED\"}\n");
  CHECK(rig.call("POST", "/drain") == "200 {\"result\":\"DRAINING\"}\n");
}

TEST_CASE("a refusal that will not last says when to try again") {
  HttpRig rig;
  CHECK(rig.call("POST", "/drain").starts_with("200 "));
  const std::string refused = rig.ask(HttpRig::request("POST", "/tubes/t/jobs", "x"));
  CHECK(status_in(refused) == "HTTP/1.1 503 Service Unavailable");
  CHECK(has_line(refused, "Retry-After: 1"));
  CHECK_FALSE(has_line(rig.ask(HttpRig::request("GET", "/jobs/1")), "Retry-After: 1"));
}

TEST_CASE("of the problems that do not last, those that ran nothing say when to try again") {
  const auto says_when = [](const api::Problem& problem) {
    const auto of_head = http_head(api::response_of(problem).head, problem.may_have_run);
    const auto has = [](const loop::HttpHeaders& headers) {
      return std::ranges::any_of(headers,
                                 [](const auto& one) { return one.first == "Retry-After"; });
    };
    const bool says = has(http::http_response(problem).headers);
    CHECK(says == has(of_head.headers));
    return says;
  };
  CHECK(says_when(api::problem_of(protocol::word::kDraining)));
  CHECK(says_when(api::stopping()));
  CHECK(says_when(api::not_the_leader("The leader is b.", "b")));
  CHECK_FALSE(says_when(api::closed()));
  CHECK_FALSE(says_when(api::problem_of(protocol::word::kOutOfMemory)));
}

TEST_CASE("metrics are shown under the names of the API, and the probes under each name") {
  HttpRig rig;
  rig.settings.http.hosts = {"queue.example"};
  rig.api.apply(rig.settings);
  const auto status = [&](const std::string& path, const std::string& headers) {
    const std::string answer = rig.ask("GET " + path + " HTTP/1.0\r\n" + headers + "\r\n");
    return status_in(answer).substr(9, 3);
  };
  for (const char* host : {"127.0.0.1:11380", "[::1]", "localhost", "queue.example:1"})
    CHECK(status("/metrics", std::string("Host: ") + host + "\r\n") == "200");
  CHECK(status("/metrics", "") == "200");
  CHECK(status("/metrics", "Host: evil.example\r\n") == "421");
  CHECK(status("/metrics", "Host: localhost\r\nOrigin: http://evil.example\r\n") == "403");
  CHECK(status("/metrics", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n") == "403");
  for (const char* path : {"/healthz", "/readyz", "/leader"})
    CHECK(status(path, "Host: balancer.example\r\n") == "200");
  CHECK(status("/api/v1/events", "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n") == "403");
}

TEST_CASE("a put has a length") {
  HttpRig rig;
  const auto status = [&](const std::string& headers) {
    return status_in(rig.ask("POST /api/v1/tubes/t/jobs HTTP/1.1\r\nHost: localhost\r\n"
                             "X-Requested-By: t\r\n" +
                             headers + "\r\n"))
        .substr(9, 3);
  };
  CHECK(status("") == "411");
  CHECK(status("Transfer-Encoding: chunked\r\n") == "411");
  CHECK(status("Content-Length: 0\r\n") == "201");
}

TEST_CASE("slots for waits: all clients without a role") {
  WaitSlots slots;
  for (std::size_t i = 0; i < WaitSlots::kMost; ++i) CHECK(slots.take("") == Taken::taken);
  CHECK(slots.take("") == Taken::all_are_used);
  CHECK(slots.take("ops") == Taken::all_are_used);
  slots.give_back("");
  CHECK(slots.take("ops") == Taken::taken);
}

TEST_CASE("slots for waits: a role takes no more than it leaves") {
  WaitSlots slots;
  const auto take_all = [&](std::string_view role) {
    std::size_t count = 0;
    while (slots.take(role) == Taken::taken) ++count;
    return count;
  };
  CHECK(take_all("a") == WaitSlots::kMost / 2);
  CHECK(slots.take("a") == Taken::share_is_used);
  CHECK(take_all("b") == WaitSlots::kMost / 4);
  CHECK(slots.take("c") == Taken::taken);
  for (std::size_t i = 0; i < WaitSlots::kMost / 2; ++i) slots.give_back("a");
  CHECK(take_all("a") > 0);
  CHECK(slots.take("d") == Taken::taken);
}

}  // namespace tubed::server_test
