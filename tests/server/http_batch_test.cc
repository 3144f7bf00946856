// Requests of the API for many jobs, with their clients and the log.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/protocol/take_replies.h"
#include "tests/server/http_rig.h"

namespace tubed::server_test {

using loop_test::status_in;

namespace {

constexpr const char* kPutBatch = "/tubes/t/put-batch";
constexpr const char* kReserveBatch = "/tubes/t/reserve-batch?timeout=50&count=5";

// Counts the commits that have facts.
struct CountingLog final : NullLog {
  void fact(const Fact& fact) override {
    has_facts_ = true;
    NullLog::fact(fact);
  }
  bool flush() override {
    if (std::exchange(has_facts_, false)) ++commits;
    return NullLog::flush();
  }

  int commits = 0;

 private:
  bool has_facts_ = false;
};

// A log whose facts are durable when the test says so.
struct PendingLog final : NullLog {
  void fact(const Fact& /*fact*/) override { ++appended_; }
  bool is_ahead() const { return appended_ > durable_; }
  void make_durable() { durable_ = appended_; }
};

std::string ask_queue_again(HttpRig& rig, std::string_view text) {
  rig.begin_tick();
  commands::Conversation client(rig.service);
  client.receive(text);
  return protocol::take_replies(client.replies());
}

bool is_job(HttpRig& rig, int id, const std::string& line) {
  const std::string stats = ask_queue_again(rig, fmt::format("stats-job {}\r\n", id));
  return stats.find('\n' + line + '\n') != std::string::npos;
}

std::string array_of_jobs(std::size_t count, std::size_t bytes) {
  const std::string job = R"({"body":")" + std::string(bytes, 'x') + "\"}";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text.append(i == 0 ? "[" : ",").append(job);
  return text + ']';
}

std::string put_two(HttpRig& rig) {
  return ask_queue_again(
      rig, "put-in-tube t 7 0 60 1 max:1\r\nx\r\nput-in-tube t 7 0 60 1 max:1\r\ny\r\n");
}

}  // namespace

TEST_CASE("one commit stores the jobs of a batch, and one those that are deleted") {
  CountingLog log;
  HttpRig rig;
  rig.service.set_log(log);
  // More than the client of the queue reads at once, and more than its channel holds.
  const std::string put = rig.call("POST", kPutBatch, array_of_jobs(1000, 900));
  CHECK(put.starts_with(R"(200 {"results":[{"status":201,"result":"INSERTED","id":1},)"));
  CHECK(put.ends_with(R"({"status":201,"result":"INSERTED","id":1000}]})"
                      "\n"));
  CHECK(log.commits == 1);
  std::string ids;
  for (int id = 1; id <= 1000; ++id) ids += fmt::format("{}{}", id == 1 ? "" : ",", id);
  const std::string deleted = rig.call("DELETE", "/jobs", "{\"ids\":[" + ids + "]}");
  CHECK(deleted.ends_with(R"({"id":1000,"status":200,"result":"DELETED"}]})"
                          "\n"));
  CHECK(log.commits == 2);
}

TEST_CASE("the body of a batch is bounded") {
  HttpRig rig;
  const std::string answer = rig.call("POST", kPutBatch, array_of_jobs(2, 600'000));
  CHECK(answer.starts_with("413 "));
  CHECK(answer.find("the body is longer than 1024 KiB") != std::string::npos);
  const std::string text = array_of_jobs(2, 600'000);
  const std::string chunked = rig.ask(
      "POST /api/v1/tubes/t/put-batch HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Requested-By: test\r\n"
      "Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" +
      fmt::format("{:x}\r\n", text.size()) + text + "\r\n0\r\n\r\n");
  CHECK(status_in(chunked) == "HTTP/1.1 413 Content Too Large");
  CHECK(rig.service.engine().info().total_jobs == 0);
}

TEST_CASE("a client that leaves a reserve of several jobs gets none") {
  for (const std::string end : {"close", "half", "reset"}) {
    for (const bool has_notice : {false, true}) {
      CAPTURE(end);
      CAPTURE(has_notice);
      HttpRig rig;
      os::Socket client = rig.send(HttpRig::request("POST", kReserveBatch));
      REQUIRE(rig.run_until([&] { return rig.waiting() == 1; }));
      // The jobs come before the server notices that the client has left, or after.
      if (has_notice) REQUIRE(put_two(rig) == "INSERTED 1\r\nINSERTED 2\r\n");
      if (end == "close") client = os::Socket();
      if (end == "half") loop_test::half_close(client);
      if (end == "reset") loop_test::reset(std::move(client));
      if (!has_notice) REQUIRE(put_two(rig) == "INSERTED 1\r\nINSERTED 2\r\n");
      CHECK(rig.run_until([&] { return rig.service.engine().info().sessions == 0; }));
      // The only attempt of each is left.
      for (const int id : {1, 2}) {
        CHECK(is_job(rig, id, "state: ready"));
        CHECK(is_job(rig, id, "timeouts: 0"));
        CHECK(is_job(rig, id, "releases: 0"));
      }
      CHECK(rig.call("POST", kReserveBatch).starts_with("201 "));
      CHECK(is_job(rig, 2, "state: reserved"));
    }
  }
}

TEST_CASE("each job of a batch ends by its own token, and the others by that of all") {
  HttpRig rig;
  put_two(rig);
  put_two(rig);
  const std::string reserved = rig.call("POST", "/tubes/t/reserve-batch?count=4");
  const std::string all = "/reservations/" + text_member(reserved, "token");
  CHECK(rig.call("GET", all + ".3").starts_with("200 "));
  CHECK(rig.call("GET", all + ".9").starts_with("404 "));
  CHECK(rig.call("GET", all + ".x").starts_with("404 "));
  const std::string which = rig.call("DELETE", all);
  CHECK(which.starts_with("400 "));
  CHECK(text_member(which, "parameter") == "token");
  CHECK(rig.call("POST", all + ".1/bury").starts_with("200 "));
  const std::string again = rig.call("DELETE", all + ".1");
  CHECK(again.starts_with("409 "));
  CHECK(text_member(again, "state") == "buried");
  CHECK(rig.call("DELETE", all + ".2") == "200 {\"result\":\"DELETED\"}\n");
  CHECK(rig.call("DELETE", all + ".2").starts_with("404 "));
  CHECK(rig.call("POST", all + "/touch-all") == "200 {\"result\":\"TOUCHED_ALL\",\"count\":2}\n");
  const std::string deleted = rig.call("DELETE", all + "/jobs");
  CHECK(deleted.find(R"({"id":3,"status":200,"result":"DELETED"})") != std::string::npos);
  CHECK(deleted.find(R"({"id":4,"status":200,"result":"DELETED"})") != std::string::npos);
  CHECK(rig.call("DELETE", all + "/jobs").starts_with("404 "));
  CHECK(is_job(rig, 1, "state: buried"));
  CHECK(rig.run_until([&] { return rig.service.engine().info().sessions == 0; }));
}

TEST_CASE("requests for the jobs of one token run one after the other") {
  PendingLog log;
  HttpRig rig;
  put_two(rig);
  put_two(rig);
  const std::string reserved = rig.call("POST", "/tubes/t/reserve-batch");
  const std::string all = "/reservations/" + text_member(reserved, "token");
  rig.service.set_log(log);
  std::vector<os::Socket> clients;
  const auto send = [&](int id) {
    clients.push_back(rig.send(HttpRig::request("DELETE", fmt::format("{}.{}", all, id))));
  };
  // The reply of the first waits for the log, and the others for the first.
  send(1);
  REQUIRE(rig.run_until([&] { return log.is_ahead(); }));
  for (const int id : {2, 3, 3}) send(id);
  loop_test::run_ticks(rig.loop, 20);
  int reserved_jobs = 0;
  for (const int id : {1, 2, 3}) reserved_jobs += is_job(rig, id, "state: reserved") ? 1 : 0;
  CHECK(reserved_jobs == 2);
  // One of those that wait leaves.
  clients.erase(clients.begin() + 1);
  std::vector<std::string> answers(clients.size());
  const auto all_are_answered = [&] {
    log.make_durable();
    rig.scheduler.log_advanced();
    for (std::size_t i = 0; i < clients.size(); ++i) answers[i] += loop_test::read_some(clients[i]);
    return std::ranges::all_of(answers,
                               [](const std::string& answer) { return answer.ends_with("}\n"); });
  };
  CHECK(rig.run_until(all_are_answered));
  CHECK(status_in(answers[0]) == "HTTP/1.1 200 OK");
  // The last two delete the same job.
  const bool first = status_in(answers[1]) == "HTTP/1.1 200 OK";
  CHECK(status_in(answers[first ? 1 : 2]) == "HTTP/1.1 200 OK");
  CHECK(status_in(answers[first ? 2 : 1]) == "HTTP/1.1 404 Not Found");
  CHECK(is_job(rig, 2, "state: reserved"));
}

TEST_CASE("a job that a token does not hold is not deleted with those that it holds") {
  HttpRig rig;
  put_two(rig);
  const std::string reserved = rig.call("POST", "/tubes/t/reserve-batch");
  const std::string all = "/reservations/" + text_member(reserved, "token");
  CHECK(rig.call("POST", all + ".1/release").starts_with("200 "));
  CHECK(rig.call("DELETE", all + "/jobs") ==
        "200 {\"results\":[{\"id\":2,\"status\":200,\"result\":\"DELETED\"}]}\n");
  CHECK(is_job(rig, 1, "state: buried"));  // max:1
}

}  // namespace tubed::server_test
