// Clients of the API that leave before they have the job that they reserve.
#include <memory>
#include <string>
#include <utility>

#include <doctest/doctest.h>

#include "tests/protocol/take_replies.h"
#include "tests/server/http_rig.h"

namespace tubed::server_test {

using loop_test::status_in;

namespace {

constexpr const char* kReserve = "/tubes/t/reserve?timeout=50";

// The replies to what a client of the queue sends.
std::string ask_queue(HttpRig& rig, std::string_view text) {
  rig.begin_tick();
  commands::Conversation client(rig.service);
  client.receive(text);
  return protocol::take_replies(client.replies());
}

bool has_job(HttpRig& rig, const std::string& line) {
  return ask_queue(rig, "stats-job 1\r\n").find('\n' + line + '\n') != std::string::npos;
}

// A client that waits for a job.
os::Socket begin_reserve(HttpRig& rig) {
  const std::uint64_t before = rig.waiting();
  os::Socket client = rig.send(HttpRig::request("POST", kReserve));
  REQUIRE(rig.run_until([&] { return rig.waiting() == before + 1; }));
  return client;
}

// A log whose facts are durable when the test says so.
struct HeldLog final : NullLog {
  void fact(const Fact& /*fact*/) override { ++appended_; }
  void make_durable() { durable_ = appended_; }
};

}  // namespace

TEST_CASE("a client that has left gets no job, and no attempt is counted") {
  for (const std::string end : {"close", "half", "reset"}) {
    CAPTURE(end);
    HttpRig rig;
    os::Socket client = begin_reserve(rig);
    if (end == "close") client = os::Socket();
    if (end == "half") loop_test::half_close(client);
    if (end == "reset") loop_test::reset(std::move(client));
    // The server has not noticed it, and may try the job once.
    REQUIRE(ask_queue(rig, "put-in-tube t 7 0 60 1 max:1\r\nx\r\n") == "INSERTED 1\r\n");
    CHECK(has_job(rig, "state: reserved"));
    for (int i = 0; i < 3; ++i) CHECK(rig.call("GET", "/jobs/1").starts_with("200 "));
    REQUIRE(has_job(rig, "state: ready"));
    CHECK(has_job(rig, "pri: 7"));
    CHECK(has_job(rig, "reserves: 1"));
    CHECK(has_job(rig, "timeouts: 0"));
    CHECK(has_job(rig, "releases: 0"));
    // The next client has the only attempt.
    const std::string reserved = rig.call("POST", "/tubes/t/reserve");
    CHECK(reserved.starts_with("201 "));
    const std::string path = "/reservations/" + text_member(reserved, "token");
    CHECK(rig.call("POST", path + "/release").starts_with("200 "));
    CHECK(has_job(rig, "state: buried"));
    CHECK(rig.run_until([&] { return rig.service.engine().info().sessions == 0; }));
  }
}

// The server ends the exchange, and closes the client of the queue in a later iteration of the
// loop.
TEST_CASE("a client whose exchange has ended gets no job before it is closed") {
  HttpRig rig;
  const os::Socket client = begin_reserve(rig);
  rig.http.close();
  REQUIRE(rig.service.engine().info().sessions == 1);
  REQUIRE(ask_queue(rig, "put-in-tube t 7 0 60 1 max:1\r\nx\r\n") == "INSERTED 1\r\n");
  CHECK(has_job(rig, "state: ready"));
  CHECK(rig.run_until([&] { return rig.service.engine().info().sessions == 0; }));
  CHECK(has_job(rig, "state: ready"));
  CHECK(has_job(rig, "reserves: 0"));
}

TEST_CASE("a job goes to the next client that waits if the first has left") {
  HttpRig rig;
  os::Socket first = begin_reserve(rig);
  const os::Socket second = begin_reserve(rig);
  first = os::Socket();
  REQUIRE(ask_queue(rig, "put-in-tube t 0 0 60 1\r\nx\r\n") == "INSERTED 1\r\n");
  CHECK(status_in(rig.take_all(second)) == "HTTP/1.1 201 Created");
  CHECK(has_job(rig, "reserves: 2"));
}

TEST_CASE("a job whose response cannot be sent is given back") {
  HttpRig rig;
  Limits limits;
  limits.job_bytes = 32'000'000;
  rig.service.set_limits(limits, {});
  os::Socket client = begin_reserve(rig);
  const std::string body(limits.job_bytes, 'x');
  REQUIRE(ask_queue(rig, "put-in-tube t 0 0 60 32000000 max:1\r\n" + body + "\r\n") ==
          "INSERTED 1\r\n");
  std::string answer;
  REQUIRE(rig.run_until([&] {
    answer += loop_test::read_some(client);
    return answer.size() > 1000;
  }));
  CHECK(has_job(rig, "state: reserved"));
  const std::string path = "/reservations/" + text_member(answer, "token");
  loop_test::reset(std::move(client));
  CHECK(rig.run_until([&] { return has_job(rig, "state: ready"); }));
  CHECK(rig.call("GET", path).starts_with("404 "));
  CHECK(rig.run_until([&] { return rig.service.engine().info().sessions == 0; }));
}

TEST_CASE("a reservation whose response was sent stays when the connection ends") {
  HttpRig rig;
  const os::Socket client = begin_reserve(rig);
  REQUIRE(ask_queue(rig, "put-in-tube t 0 0 60 1\r\nx\r\n") == "INSERTED 1\r\n");
  const std::string answer = rig.take_all(client);
  CHECK(status_in(answer) == "HTTP/1.1 201 Created");
  for (int i = 0; i < 3; ++i) CHECK(rig.call("GET", "/jobs/1").starts_with("200 "));
  CHECK(has_job(rig, "state: reserved"));
  const std::string path = "/reservations/" + text_member(answer, "token");
  CHECK(rig.call("DELETE", path).starts_with("200 "));
}

TEST_CASE("a client that leaves while its response waits for the log gets no job") {
  HeldLog log;
  HttpRig rig;
  rig.service.set_log(log);
  os::Socket client = begin_reserve(rig);
  REQUIRE(ask_queue(rig, "put-in-tube t 0 0 60 1 max:1\r\nx\r\n") == "INSERTED 1\r\n");
  loop_test::run_ticks(rig.loop, 20);
  CHECK(has_job(rig, "state: reserved"));
  client = os::Socket();
  CHECK(rig.run_until([&] { return has_job(rig, "state: ready"); }));
  CHECK(has_job(rig, "reserves: 1"));
  CHECK(rig.run_until([&] { return rig.service.engine().info().sessions == 0; }));
  log.make_durable();
}

TEST_CASE("a change that may have run is not said to be one to repeat") {
  HeldLog log;
  HttpRig rig;
  rig.service.set_log(log);
  const os::Socket client = rig.send(HttpRig::request("POST", "/tubes/t/jobs", "x"));
  REQUIRE(rig.run_until([&] { return rig.service.engine().info().total_jobs == 1; }));
  // The job is in the queue, and its reply waits for the log.
  rig.clients.close_all("test");
  const std::string answer = rig.take_all(client);
  CHECK(status_in(answer) == "HTTP/1.1 503 Service Unavailable");
  CHECK(answer.find("urn:tubed:problem:closed") != std::string::npos);
  CHECK(answer.find("Retry-After") == std::string::npos);
  CHECK(rig.service.engine().info().total_jobs == 1);
  log.make_durable();
}

}  // namespace tubed::server_test
