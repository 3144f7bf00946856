#include "api/answer_json.h"

#include <algorithm>
#include <string>

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

TEST_CASE("a refusal is a problem, and the reply to drain is none") {
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

TEST_CASE("an answer that no operation has is a fault of the server") {
  CHECK(answer("getServer", protocol::JobBatch{}).head.status == 500);
}

TEST_CASE("a body is text if it is UTF-8, else base64") {
  CHECK(members_of_body("") == "\"body\":\"\"");
  CHECK(members_of_body("a\"\n\xc3\xa9") == "\"body\":\"a\\\"\\n\xc3\xa9\"");
  CHECK(members_of_body("\xff") == "\"body_base64\":\"/w==\"");
  CHECK(answer("getJobBody", protocol::JobAnswer{"FOUND", 7, Bytes::copy_of("x")}).text ==
        "{\"id\":7,\"body\":\"x\"}\n");
}

std::string members(std::string_view line) {
  return members_of_block("---\n" + std::string(line) + "\n");
}

TEST_CASE("the values of a block keep their types") {
  CHECK(members("age: 5") == "\"age\":5");
  CHECK(members("age: 0") == "\"age\":0");
  CHECK(members("age: 18446744073709551615") == "\"age\":18446744073709551615");
  CHECK(members("rusage-utime: 0.000020") == "\"rusage-utime\":0.000020");
  CHECK(members("draining: true") == "\"draining\":true");
  CHECK(members("draining: false") == "\"draining\":false");
  CHECK(members("max-attempts-from: wire") == "\"max-attempts-from\":\"wire\"");
  CHECK(members("version: \"2\"") == "\"version\":\"2\"");
  CHECK(members("os: \"\"") == "\"os\":\"\"");
  CHECK(members("os: #1 SMP \"x\\y\"") == "\"os\":\"#1 SMP \\\"x\\\\y\\\"\"");
  CHECK(members("idempotency-key: \"12\"") == "\"idempotency-key\":\"12\"");
  CHECK(members("x: a: b") == "\"x\":\"a: b\"");
  CHECK(members("x: ") == "\"x\":\"\"");
  CHECK(members("x") == "\"x\":\"\"");
  for (const std::string_view no_number : {"007", "00", "1.", ".5", "-1", "+1", "1e5", "1.2.3",
                                           "0x1", "Infinity", "1 2", "10/60", "\""}) {
    CAPTURE(no_number);
    const std::string text = members("x: " + std::string(no_number));
    CHECK(text.starts_with("\"x\":\""));
    CHECK(is_json("{" + text + "}"));
  }
}

TEST_CASE("names that look like numbers are texts") {
  CHECK(members("name: \"5\"") == "\"name\":\"5\"");
  CHECK(members("dead: 5") == "\"dead\":\"5\"");
  CHECK(members("expired: true") == "\"expired\":\"true\"");
  // The id of the server, which may have no letter, comes after other lines.
  CHECK(members_of_block("---\npid: 5\nid: 1234567890123456\n") ==
        "\"pid\":5,\"id\":\"1234567890123456\"");
  CHECK(members_of_block("---\nid: 5\ntube: \"6\"\n") == "\"id\":5,\"tube\":\"6\"");
  CHECK(json_of_block("---\n- next 0\n- name ready\n- 5 6\n- true 7\n", "tubes") ==
        R"({"next":0,"tubes":[{"name":"5","ready":6},{"name":"true","ready":7}]})");
  CHECK(json_of_block("---\n- next 0\n- id address role used waiting held idle watched\n"
                      "- 5 - 7 8 1 0 3 9\n",
                      "clients") ==
        R"({"next":0,"clients":[{"id":5,"address":"-","role":"7","used":"8","waiting":1,)"
        R"("held":0,"idle":3,"watched":"9"}]})");
}

TEST_CASE("lists are arrays") {
  CHECK(json_of_block("---\n- a\n- 5\n", {}) == R"(["a","5"])");
  CHECK(json_of_block("---\n- next 7\n- id state\n", "jobs") == R"({"next":7,"jobs":[]})");
  CHECK(json_of_block("---\n- next 0\n- id state\n- 1 ready idp:a con:b\n- 2 held\n", "jobs") ==
        R"({"next":0,"jobs":[{"id":1,"state":"ready","tags":"idp:a con:b"},)"
        R"({"id":2,"state":"held"}]})");
  CHECK(json_of_block("---\n- next 0\n- seconds queue\n- 0.001 4\n- more 5\n", "times") ==
        R"({"next":0,"times":[{"seconds":0.001,"queue":4},{"seconds":"more","queue":5}]})");
  CHECK(json_of_block("---\n", {}) == "{}");
}

TEST_CASE("the blocks of commands are JSON") {
  Api api;
  api.run("put-in-tube 5 0 0 60 1 idp:7:60 con:k:2 grp:true max:3:1 ttl:99\r\na\r\n");
  api.run("put-in-tube mail 0 0 60 1 aft:true\r\na\r\ntube-policy 5 dead 8\r\n");
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
