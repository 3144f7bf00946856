#include "api/answer_json.h"

#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "tests/api/api.h"

namespace tubed::api {
namespace {

using protocol::Answer;

Response answer(std::string_view id, const Answer& answer) {
  Response response = response_of(operation_of(id), answer);
  CAPTURE(response.text);
  CHECK(is_json(response.text));
  CHECK(response.text.ends_with('\n'));
  return response;
}

TEST_CASE("words and numbers are objects with a result") {
  CHECK(answer("deleteJob", protocol::Status{"DELETED"}).text == "{\"result\":\"DELETED\"}\n");
  CHECK(answer("kickTube", protocol::Number{"KICKED", 7}).text ==
        "{\"result\":\"KICKED\",\"count\":7}\n");
  CHECK(answer("waitForJob", protocol::Number{"BURIED", 7}).text ==
        "{\"result\":\"BURIED\",\"id\":7}\n");
  const Response name = answer("getServer", protocol::Name{"USING", "mail"});
  CHECK(name.text == "{\"result\":\"USING\",\"name\":\"mail\"}\n");
  const Response wait = answer("waitForJob", protocol::Status{"TIMED_OUT"});
  CHECK(wait.head.status == 200);
  CHECK(wait.text == "{\"result\":\"TIMED_OUT\"}\n");
}

TEST_CASE("a put has the place of the new job, or the state of the job with its key") {
  const Response created = answer("putJob", protocol::Number{"INSERTED", 12});
  CHECK(created.head.status == 201);
  CHECK(created.head.location == "/api/v1/jobs/12");
  CHECK(created.text == "{\"result\":\"INSERTED\",\"id\":12}\n");
  const Response taken =
      answer("putJob", protocol::Numbers{.word = "INSERTED", .first = 12, .state = "READY"});
  CHECK(taken.head.status == 200);
  CHECK(taken.head.location.empty());
  CHECK(taken.text == "{\"result\":\"INSERTED\",\"id\":12,\"state\":\"ready\"}\n");
  CHECK(answer("putJob",
               protocol::Numbers{.word = "INSERTED", .first = 12, .second = 5, .state = "DELAYED"})
            .text == "{\"result\":\"INSERTED\",\"id\":12,\"state\":\"delayed\",\"pri\":5}\n");
}

TEST_CASE("a refusal is a problem, and the reply to drain is not") {
  const Response missing = answer("deleteJob", protocol::Status{"NOT_FOUND"});
  CHECK(missing.head.status == 404);
  CHECK(missing.head.content == Content::problem);
  CHECK(member(missing.text, "reply") == "\"NOT_FOUND\"");
  CHECK(answer("putJob", protocol::Status{"DRAINING"}).head.status == 503);
  const Response drain = answer("drain", protocol::Status{"DRAINING"});
  CHECK(drain.head.status == 200);
  CHECK(drain.text == "{\"result\":\"DRAINING\"}\n");
  CHECK(answer("drain", protocol::Status{"DENIED"}).head.status == 403);
  CHECK(answer("undrain", protocol::Status{"NOT_DRAINING"}).head.status == 200);
}

TEST_CASE("a reload answers with lists, or with a problem that has the reason") {
  const std::vector<std::string> changed{"auth.tokens", "role"};
  const protocol::Block block{[&](protocol::BlockSink& sink) {
    sink.member("changed", protocol::List{changed});
    sink.member("needs-restart", protocol::List{});
  }};
  CHECK(answer("reload", block).text ==
        "{\"changed\":[\"auth.tokens\",\"role\"],\"needs-restart\":[]}\n");
  const Response refused = answer("reload", protocol::Name{"NOT_RELOADED", "no such \"file\""});
  CHECK(refused.head.status == 409);
  CHECK(refused.head.content == Content::problem);
  CHECK(member(refused.text, "detail") == "\"no such \\\"file\\\"\"");
  CHECK(member(refused.text, "reply") == "\"NOT_RELOADED\"");
}

TEST_CASE("a block has the rows of its operation, and a line end") {
  const protocol::Block empty{[](protocol::BlockSink& block) {
    block.begin_table({});
    block.end_table(0);
  }};
  CHECK(answer("listJobs", empty).text == "{\"next\":0,\"jobs\":[]}\n");
  CHECK(answer("getServer", protocol::Block{[](protocol::BlockSink&) {}}).text == "{}\n");
}

TEST_CASE("an answer that no operation has is a fault of the server") {
  CHECK(answer("getServer", protocol::JobBatch{}).head.status == 500);
}

TEST_CASE("a body is text if it is UTF-8, else base64") {
  const auto with_body = [](std::string_view body) {
    return answer("getJobBody", protocol::JobAnswer{"FOUND", 7, Bytes::copy_of(body)}).text;
  };
  CHECK(with_body("x") == "{\"id\":7,\"body\":\"x\"}\n");
  CHECK(with_body("") == "{\"id\":7,\"body\":\"\"}\n");
  CHECK(with_body("a\"\n\xc3\xa9") == "{\"id\":7,\"body\":\"a\\\"\\n\xc3\xa9\"}\n");
  CHECK(with_body("\xff") == "{\"id\":7,\"body_base64\":\"/w==\"}\n");
}

TEST_CASE("the blocks of commands are JSON") {
  Api api;
  api.run("put-in-tube 5 0 0 60 1 idp:7:60 con:k:2 grp:true max:3:1 ttl:99\r\na\r\n");
  api.run(
      "put-in-tube mail 0 0 60 1 aft:true\r\na\r\ntube-policy 5 dead 8\r\n"
      "tube-policy 5 max-timeouts 007\r\n");
  const Got server = api.get("/server");
  CHECK(server["current-jobs-ready"] == "1");
  CHECK(server["draining"] == "false");
  CHECK(server["id"] == "\"0123456789abcdef\"");
  CHECK(server["rusage-utime"] == "1.5");
  CHECK(server["pid"] == "7");
  const Got job = api.get("/jobs/1");
  CHECK(job["id"] == "1");
  CHECK(job["tube"] == "\"5\"");
  CHECK(job["state"] == "\"ready\"");
  CHECK(job["idempotency-key"] == "\"7\"");
  CHECK(job["group"] == "\"true\"");
  CHECK(job["dead"] == "\"1\"");
  CHECK(job["max-attempts"] == "3");
  CHECK(api.get("/tubes/5")["name"] == "\"5\"");
  CHECK(api.get("/tubes/5/policy")["dead"] == "\"8\"");
  CHECK(api.get("/tubes/5/policy")["dead-from"] == "\"wire\"");
  CHECK(api.get("/tubes/5/policy")["max-attempts"] == "0");
  CHECK(api.get("/tubes/5/policy")["max-timeouts"] == "\"007\"");
  CHECK(api.get("/groups/true")["name"] == "\"true\"");
  CHECK(api.get("/groups/true")["waiting-jobs"] == "1");
  CHECK(api.get("/tubes/5/jobs")
            .text.find("\"tags\":\"idp:7:60 max:3:1 ttl:99 con:k:2 grp:true\"}") !=
        std::string::npos);
  CHECK(api.get("/tubes").text.find("{\"name\":\"5\",\"urgent\":1") != std::string::npos);
  CHECK(api.get("/clients").text.find("\"watched\":\"default\"") != std::string::npos);
  CHECK(api.get("/capabilities").text.starts_with("[\""));
  CHECK(api.get("/tubes/5/times").status == 200);
}

}  // namespace
}  // namespace tubed::api
