// Requests for many jobs.
#include "api/batch.h"

#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/api/api.h"

namespace tubed::api {
namespace {

using commands::role_of_families;

Got put_batch(Api& api, std::string_view target, const std::string& jobs,
              std::string_view role = {}) {
  return api.post(target, {.role = role, .batch = jobs});
}

std::uint64_t jobs_in(const Api& api) {
  return api.service.engine().info().total_jobs;
}

TEST_CASE("a batch puts its jobs in their order") {
  Api api;
  const Got put = put_batch(
      api, "/tubes/mail/put-batch?pri=7&ttr=90s",
      R"([{"body":"a"},{"body_base64":"/w0K","pri":1,"delay":"5m","ttr":"9","tags":"grp:g"},{"body":""}])");
  CHECK(put.status == 200);
  CHECK(put.location.empty());
  CHECK(put.text == R"({"results":[{"status":201,"result":"INSERTED","id":1},)"
                    R"({"status":201,"result":"INSERTED","id":2},)"
                    R"({"status":201,"result":"INSERTED","id":3}]})"
                    "\n");
  CHECK(api.get("/jobs/1")["pri"] == "7");
  CHECK(api.get("/jobs/1")["ttr"] == "90");
  CHECK(api.get("/jobs/2")["pri"] == "1");
  CHECK(api.get("/jobs/2")["delay"] == "300");
  CHECK(api.get("/jobs/2")["ttr"] == "9");
  CHECK(api.get("/jobs/2/body").text == "\xff\r\n");
  CHECK(api.get("/jobs/3/body").text.empty());
  const Got again = put_batch(api, "/tubes/mail/put-batch?tags=idp:k",
                              R"([{"body":"a"},{"body":"b"},{"body":"c","tags":"idp:l"}])");
  CHECK(again.text == R"({"results":[{"status":201,"result":"INSERTED","id":4},)"
                      R"({"status":200,"result":"INSERTED","id":4,"state":"ready"},)"
                      R"({"status":201,"result":"INSERTED","id":5}]})"
                      "\n");
}

TEST_CASE("a batch with a malformed job puts no job") {
  Api api;
  const auto is_refused = [&](const std::string& jobs, const std::string& detail,
                              const std::string& parameter = "") {
    CAPTURE(jobs.substr(0, 60));
    const Got got = put_batch(api, "/tubes/mail/put-batch", jobs);
    CHECK(got.status == 400);
    CHECK(got["detail"].find(detail) != std::string::npos);
    CHECK(got["parameter"] == (parameter.empty() ? "" : '"' + parameter + '"'));
    CHECK(jobs_in(api) == 0);
  };
  for (const char* const text : {"", "{}", "[]", "1", "[{\"body\":\"a\"}", "null"})
    is_refused(text, "the body is no JSON array of jobs");
  const std::string good = R"({"body":"a"},)";
  is_refused("[" + good + "5]", "job 2: it is no JSON object");
  is_refused("[" + good + R"({"body":"a","body_base64":"YQ=="}])", "job 2: it has neither or both");
  is_refused("[" + good + R"({"pri":5}])", "job 2: it has neither or both");
  is_refused("[" + good + R"({"body":5}])", "job 2: its body is not text");
  is_refused("[" + good + R"({"body_base64":"Y"}])", "job 2: ");
  is_refused("[" + good + R"({"body":"a","bytes":5}])", "job 2: the parameter bytes is unknown",
             "bytes");
  is_refused("[" + good + R"({"body":"a","pri":[5]}])", "job 2: the parameter pri is neither",
             "pri");
  is_refused("[" + good + R"({"body":"a","pri":"x"}])",
             "job 2: the parameter pri is not of the form: integer < 2^32", "pri");
  is_refused("[" + good + R"({"body":"a","tags":"idp:a\r\nquit"}])", "is not a word", "tags");
  is_refused("[" + good + R"({"body":"a","tags":")" + "idp:" + std::string(3000, 'a') + "\"}]",
             "job 2: the parameter tags is not of the form: words", "tags");
  std::string many = "[";
  for (std::size_t i = 0; i < kMostBatchJobs; ++i) many += good;
  is_refused(many + R"({"body":"a"}])", "the request has more than 1000 jobs");
  many.back() = ']';
  CHECK(put_batch(api, "/tubes/mail/put-batch", many).status == 200);
  CHECK(jobs_in(api) == kMostBatchJobs);
  CHECK(put_batch(api, "/tubes/-/put-batch", "[{\"body\":\"a\"}]").status == 400);
}

TEST_CASE("each job of a batch may be refused by itself") {
  Api api(Limits{.job_bytes = 5});
  const Got put = put_batch(api, "/tubes/mail/put-batch",
                            R"([{"body":"a"},{"body":"\r\ndrain\r\n"},{"body":"c"}])");
  CHECK(put.status == 200);
  CHECK(put.text.starts_with(R"({"results":[{"status":201,"result":"INSERTED","id":1},)"
                             R"({"type":"urn:tubed:problem:job-too-big",)"));
  CHECK(put.text.ends_with(R"(,{"status":201,"result":"INSERTED","id":2}]})"
                           "\n"));
  CHECK(!api.service.draining());
  // The same reason for all.
  CHECK(
      put_batch(api, "/tubes/mail/put-batch", R"([{"body":"123456"},{"body":"123456"}])").status ==
      413);
  api.service.set_draining(true);
  const Got draining = put_batch(api, "/tubes/mail/put-batch", R"([{"body":"a"},{"body":"b"}])");
  CHECK(draining.status == 503);
  CHECK(draining["reply"] == "\"DRAINING\"");
}

TEST_CASE("a batch of a role that may not put is denied") {
  Api api({role_of_families("watcher", "i"), role_of_families("other", "pwia", {"other"})});
  for (const char* const role : {"watcher", "other"}) {
    const Got denied =
        put_batch(api, "/tubes/mail/put-batch", R"([{"body":"a"},{"body":"b"}])", role);
    CHECK(denied.status == 403);
    CHECK(denied["reply"] == "\"DENIED\"");
  }
  CHECK(jobs_in(api) == 0);
  CHECK(put_batch(api, "/tubes/other/put-batch", R"([{"body":"a"}])", "other").status == 200);
}

TEST_CASE("each of several jobs is deleted, or is not for a reason of its own") {
  Api api({role_of_families("watcher", "i"), role_of_families("all", "pwia", {"mail"})});
  for (int i = 0; i < 4; ++i) api.run("put-in-tube mail 0 0 60 1\r\na\r\n");
  api.run("put-in-tube b 0 0 60 1\r\na\r\nreserve-job 2\r\n");
  CHECK(api.ask(Method::remove, "/jobs?ids=1,2", {.role = "watcher"}).status == 403);
  const Got got =
      api.ask(Method::remove, "/jobs", {.json = R"({"ids":[1,2,9,1,5]})", .role = "all"});
  CHECK(got.status == 200);
  const std::string not_found =
      R"("type":"urn:tubed:problem:not-found","title":"Not found","status":404,)"
      R"("detail":"There is no such job, tube or reservation.","reply":"NOT_FOUND"})";
  CHECK(got.text ==
        R"({"results":[{"id":1,"status":200,"result":"DELETED"},)"
        R"({"id":2,"type":"urn:tubed:problem:wrong-state","title":"Wrong state","status":409,)"
        R"("detail":"A client holds the job.","reply":"NOT_FOUND","state":"reserved"},)"
        R"({"id":9,)" +
            not_found + R"(,{"id":1,)" + not_found + R"(,{"id":5,)" + not_found + "]}\n");
  CHECK(api.get("/jobs/5").status == 200);
  CHECK(api.ask(Method::remove, "/jobs?ids=9").text ==
        R"({"results":[{"id":9,)" + not_found + "]}\n");
  CHECK(api.ask(Method::remove, "/jobs?ids=3,4").status == 200);
  CHECK(api.get("/jobs/3").status == 404);
  for (const char* const ids : {"", ",", "1,", "x", "1+2", "-1", "18446744073709551616"}) {
    CAPTURE(ids);
    const Got refused = api.ask(Method::remove, std::string("/jobs?ids=") + ids);
    CHECK(refused.status == 400);
    CHECK(refused["parameter"] == "\"ids\"");
  }
  CHECK(api.ask(Method::remove, "/jobs")["detail"] == "\"the parameter ids is missing\"");
  CHECK(api.ask(Method::remove, "/jobs", {.json = R"({"ids":["1"]})"}).status == 400);
  CHECK(api.ask(Method::remove, "/jobs", {.json = R"({"ids":[]})"}).status == 400);
  std::string many = "1";
  for (std::size_t i = 0; i < kMostBatchJobs; ++i) many += ",1";
  CHECK(api.ask(Method::remove, "/jobs?ids=" + many)["detail"] ==
        "\"the parameter ids has more than 1000 ids\"");
}

TEST_CASE("several jobs are reserved, each with a token") {
  Api api({role_of_families("worker", "w", {"mail"})});
  api.run(
      "put-in-tube mail 9 0 60 1\r\na\r\nput-in-tube mail 1 0 60 1\r\n\xff\r\nput 0 0 60 "
      "1\r\nd\r\n");
  CHECK(api.post("/tubes/none/reserve-batch").status == 204);
  CHECK(api.post("/tubes/mail/reserve-batch?timeout=51").status == 400);
  for (const char* const count : {"0", "1001", "x"}) {
    const Got refused = api.post(std::string("/tubes/mail/reserve-batch?count=") + count);
    CHECK(refused.status == 400);
    CHECK(refused["parameter"] == "\"count\"");
  }
  auto reserve = api.begin(Method::post, "/tubes/mail/reserve-batch", {.role = "worker"});
  REQUIRE(reserve->done());
  const Got reserved = reserve->answer();
  CHECK(reserved.status == 201);
  CHECK(reserved.location == "/api/v1/reservations/cafe/jobs");
  CHECK(reserved.text ==
        R"({"token":"cafe","jobs":[{"token":"cafe.2","id":2,"body_base64":"/w=="},)"
        R"({"token":"cafe.1","id":1,"body":"a"}]})"
        "\n");
  auto all = api.begin(Method::post, "/tubes/default/reserve-batch?count=5");
  REQUIRE(all->done());
  CHECK(all->answer().text.find(R"("tube":"default","state":"reserved")") != std::string::npos);
}

TEST_CASE("a reserve of several jobs waits for the first") {
  Api api;
  auto waiting = api.begin(Method::post, "/tubes/mail/reserve-batch?timeout=50&count=3");
  auto too_short = api.begin(Method::post, "/tubes/mail/reserve-batch?timeout=5&count=3");
  CHECK(!waiting->done());
  api.advance(std::chrono::seconds(6));
  too_short->run();
  REQUIRE(too_short->done());
  CHECK(too_short->answer().status == 204);
  api.run("put-in-tube mail 0 0 60 1\r\na\r\nput-in-tube mail 0 0 60 1\r\na\r\n");
  waiting->run();
  REQUIRE(waiting->done());
  CHECK(waiting->answer().text.find(R"("token":"cafe.2")") != std::string::npos);
}

TEST_CASE("all jobs that a token holds are deleted") {
  Api api;
  api.run("put-in-tube mail 0 0 60 1\r\na\r\nput-in-tube mail 0 0 60 1\r\nb\r\n");
  auto reserve = api.begin(Method::post, "/tubes/mail/reserve-batch");
  REQUIRE(reserve->done());
  auto made = api.script(Method::remove, "/reservations/cafe/jobs", {.held_jobs = {1, 2}});
  Asking asking(reserve->take_conversation(), std::move(std::get<std::unique_ptr<Script>>(made)));
  CHECK(asking.answer().text == R"({"results":[{"id":1,"status":200,"result":"DELETED"},)"
                                R"({"id":2,"status":200,"result":"DELETED"}]})"
                                "\n");
  CHECK(api.get("/jobs/1").status == 404);
}

TEST_CASE("the problem of a value has the allowed form") {
  Api api;
  const auto detail = [&](Method method, std::string_view target) {
    return api.ask(method, target, {.body = "x"})["detail"];
  };
  const std::string units = ", or with a unit as 90s, 5m, 2h, 1d\"";
  const std::string time = "seconds, integer < 2^32, or milliseconds as 500ms" + units;
  CHECK(detail(Method::post, "/tubes/a/jobs?pri=x") ==
        "\"the parameter pri is not of the form: integer < 2^32\"");
  CHECK(detail(Method::post, "/tubes/a/jobs?ttr=90q") ==
        "\"the parameter ttr is not of the form: " + time);
  CHECK(detail(Method::post, "/tubes/a/jobs?delay=x") ==
        "\"the parameter delay is not of the form: " + time);
  CHECK(detail(Method::get, "/tubes/a/jobs?age_over=yesterday") ==
        "\"the parameter age_over is not of the form: integer < 2^32" + units);
  CHECK(detail(Method::get, "/tubes/a/jobs?limit=0") ==
        "\"the parameter limit is not of the form: integer from 1 to 1000\"");
  CHECK(detail(Method::get, "/tubes/a/jobs?state=lost")
            .starts_with("\"the parameter state is not of the form: one of: "));
  // Two parameters are wrong.
  CHECK(detail(Method::post, "/tubes/a/jobs?pri=x&ttr=y") ==
        "\"A parameter has a value that the command does not take.\"");
}

TEST_CASE("a value that the command refuses is named if no other value is to blame") {
  Api api;
  const auto named = [&](Method method, std::string_view target, std::string_view json = {}) {
    const Got got = api.ask(method, target, {.json = json, .body = "x"});
    CHECK(got.status == 400);
    return got["parameter"];
  };
  CHECK(named(Method::post, "/tubes/a/jobs?pri=x") == "\"pri\"");
  CHECK(named(Method::post, "/tubes/-a/jobs?pri=1") == "\"tube\"");
  CHECK(named(Method::post, "/tubes/a/jobs?delay=1x&ttr=5") == "\"delay\"");
  CHECK(named(Method::post, "/tubes/a/jobs?pri=x&ttr=y").empty());
  CHECK(named(Method::post, "/tubes/a/jobs?tags=idp:k+idp:j") == "\"tags\"");
  CHECK(named(Method::get, "/tubes/a/jobs?state=lost") == "\"state\"");
  CHECK(named(Method::get, "/tubes/a/jobs?state=next&from=5").empty());
  CHECK(named(Method::get, "/jobs/x") == "\"id\"");
  CHECK(named(Method::post, "/tubes/-x/reserve") == "\"tube\"");
  CHECK(named(Method::put, "/tubes/a/policy/nothing", R"({"value":5})") == "\"key\"");
  CHECK(named(Method::put, "/tubes/a/policy/backoff", R"({"value":"x"})") == "\"value\"");
}

}  // namespace
}  // namespace tubed::api
