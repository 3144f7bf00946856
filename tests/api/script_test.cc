// Scripts of requests, run against a real conversation and engine.
#include "api/script.h"

#include <algorithm>
#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/api/api.h"

namespace tubed::api {
namespace {

using commands::role_of_families;

// The commands that were run, as lines of stats.
std::vector<std::string> counted(const Api& api) {
  std::vector<std::string> lines;
  for (const stats::CommandCount& command : api.service.server_state().commands) {
    if (command.count > 0)
      lines.push_back(fmt::format("cmd-{}: {}", command.command, command.count));
  }
  std::ranges::sort(lines);
  return lines;
}

TEST_CASE("a put has the body of its request") {
  Api api;
  const Got put = api.post("/tubes/a%2Fb/jobs?pri=5&delay=500ms&ttr=7", {.body = "x\r\nquit\r\n"});
  CHECK(put.status == 201);
  CHECK(put.location == "/api/v1/jobs/1");
  CHECK(put.text == "{\"result\":\"INSERTED\",\"id\":1}\n");
  const Got job = api.get("/jobs/1");
  CHECK(job["tube"] == "\"a/b\"");
  CHECK(job["pri"] == "5");
  CHECK(job["ttr"] == "7");
  CHECK(job["state"] == "\"delayed\"");
  CHECK(api.get("/jobs/1/body").text == "x\r\nquit\r\n");
  CHECK(api.post("/tubes/a/jobs", {.body = ""}).status == 201);
  CHECK(api.get("/jobs/2/body").text.empty());
  const Got again = api.post("/tubes/a/jobs?tags=idp:k+grp:g", {.body = "1"});
  CHECK(again.status == 201);
  const Got taken = api.post("/tubes/a/jobs?tags=idp:k", {.body = "2"});
  CHECK(taken.status == 200);
  CHECK(taken["id"] == "3");
  CHECK(taken["state"] == "\"ready\"");
}

TEST_CASE("the body of a put that is refused runs no command") {
  const std::string body = "\r\ndrain\r\ndelete 1\r\n\r\n";
  const std::string before = "put-in-tube keep 0 0 60 1\r\na\r\n";
  const auto put_refused = [&](Api& api, const std::string& query, const AskOptions& options,
                               unsigned status) {
    CAPTURE(query.substr(0, 40));
    const Got refused = api.post("/tubes/mail/jobs" + query, options);
    CHECK(refused.status == status);
    CHECK(!api.service.draining());
    CHECK(api.get("/jobs/1").status == 200);
    api.service.engine().check_invariants();
  };
  SUBCASE("parameters") {
    Api api;
    api.run(before);
    for (const std::string query :
         {"?pri=x", "?pri=-1", "?delay=1x", "?delay=-1s", "?ttr=99999999d", "?ttr=", "?tags=x",
          "?tags=idp:k+", "?tags=+idp:k", "?pri=4294967296", "?tags=idp:k+idp:j", "?bytes=1",
          "?tube=other", "?pri=1&pri=2"})
      put_refused(api, query, {.body = body}, 400);
    put_refused(api, "?tags=grp:" + std::string(3000, 'a'), {.body = body}, 400);
    put_refused(api, "?pri=" + std::string(3000, '0') + "1", {.body = body}, 400);
    put_refused(api, "?pri=" + std::string(2100, '1'), {.body = body}, 400);
    put_refused(api, "?pri=" + std::string(1000, '1'), {.body = body}, 400);
  }
  SUBCASE("the name of the tube") {
    Api api;
    api.run(before);
    for (const std::string name : {"-a", "a%20b", "a%0D%0Adrain", "%C3%A9", "a%2Cb", "%7F"}) {
      CAPTURE(name);
      CHECK(api.post("/tubes/" + name + "/jobs", {.body = body}).status == 400);
    }
    CHECK(api.post("/tubes/" + std::string(201, 'a') + "/jobs", {.body = body}).status == 400);
    CHECK(api.post("/tubes/" + std::string(4000, 'a') + "/jobs", {.body = body}).status == 400);
    CHECK(!api.service.draining());
    CHECK(api.get("/jobs/1").status == 200);
  }
  SUBCASE("a body that is too big") {
    Api api(Limits{.job_bytes = 5});
    api.run(before);
    put_refused(api, "", {.body = body}, 413);
  }
  SUBCASE("no memory for it") {
    Api api(Limits{.job_memory_bytes = 4096});
    api.run(before);
    const std::string large = body + std::string(8000, 'a');
    put_refused(api, "", {.body = large}, 507);
  }
  SUBCASE("no place for its tube") {
    Api api(Limits{.tubes = 2});
    api.run(before);
    put_refused(api, "", {.body = body}, 507);
  }
  SUBCASE("drain mode") {
    Api api;
    api.run(before);
    api.service.set_draining(true);
    const Got refused = api.post("/tubes/mail/jobs", {.body = "\r\nundrain\r\ndelete 1\r\n"});
    CHECK(refused.status == 503);
    CHECK(refused["reply"] == "\"DRAINING\"");
    CHECK(api.service.draining());
    CHECK(api.get("/jobs/1").status == 200);
  }
  SUBCASE("a role that may not") {
    Api api({role_of_families("watcher", "i"), role_of_families("other", "pwia", {"other"})});
    api.run(before);
    put_refused(api, "", {.body = body, .role = "watcher"}, 403);
    put_refused(api, "", {.body = body, .role = "other"}, 403);
    put_refused(api, "?tags=x", {.body = body, .role = "watcher"}, 400);
  }
}

TEST_CASE("a kick works in slices") {
  Api api(Limits{.work_per_turn = 3});
  std::string text;
  for (int i = 0; i < 10; ++i) text += "put-in-tube mail 0 100 60 1\r\na\r\n";
  api.run(text);
  CHECK(api.post("/tubes/mail/kick", {.json = R"({"bound":8})"}).text ==
        "{\"result\":\"KICKED\",\"count\":8}\n");
  CHECK(api.get("/tubes/mail")["current-jobs-ready"] == "8");
  CHECK(api.post("/tubes/mail/kick", {.json = R"({"state":"buried"})"})["count"] == "0");
  CHECK(api.post("/tubes/mail/kick", {.json = R"({"state":"ready"})"}).status == 400);
  CHECK(api.post("/tubes/mail/move", {.json = R"({"state":"ready","to":"later"})"})["count"] ==
        "8");
  CHECK(api.post("/tubes/later/clear", {.json = R"({"state":"ready","bound":5})"}).text ==
        "{\"result\":\"FLUSHED\",\"count\":5}\n");
  CHECK(api.post("/tubes/later/truncate")["count"] == "3");
  CHECK(api.post("/tubes/nowhere/truncate").status == 404);
  CHECK(api.post("/tubes/mail/pause", {.json = R"({"delay":"5"})"}).text ==
        "{\"result\":\"PAUSED\"}\n");
  CHECK(api.get("/tubes/mail")["pause"] == "5");
  CHECK(api.post("/tubes/mail/pause").status == 400);
}

TEST_CASE("commands on one job") {
  Api api;
  api.run("put-in-tube mail 7 0 60 1\r\na\r\nput-in-tube mail 7 50 60 1\r\na\r\n");
  CHECK(api.post("/jobs/2/kick").text == "{\"result\":\"KICKED\"}\n");
  CHECK(api.post("/jobs/2/kick").status == 409);
  CHECK(api.post("/jobs/1/reprioritize", {.json = R"({"pri":3})"}).text ==
        "{\"result\":\"REPRIORITIZED\"}\n");
  CHECK(api.get("/jobs/1")["pri"] == "3");
  CHECK(api.post("/jobs/1/move", {.json = R"({"tube":"5"})"}).text == "{\"result\":\"MOVED\"}\n");
  CHECK(api.get("/jobs/1")["tube"] == "\"5\"");
  CHECK(api.post("/jobs/1/move", {.json = R"({"tube":"5","pri":1,"delay":9})"}).status == 200);
  CHECK(api.get("/jobs/1")["delay"] == "9");
  CHECK(api.get("/jobs/1/wait").text == "{\"result\":\"TIMED_OUT\"}\n");
  CHECK(api.ask(Method::remove, "/jobs/1").text == "{\"result\":\"DELETED\"}\n");
  CHECK(api.ask(Method::remove, "/jobs/1").status == 404);
  CHECK(api.ask(Method::remove, "/jobs/x").status == 400);
  CHECK(api.get("/jobs/1/wait").status == 404);
  CHECK(api.post("/jobs/2/delete-force")["result"] == "\"DELETED\"");
}

TEST_CASE("a wait ends when its job does") {
  Api api;
  api.run("put-in-tube mail 7 0 60 1\r\na\r\n");
  auto waiting = api.begin(Method::get, "/jobs/1/wait?seconds=50");
  CHECK(!waiting->done());
  api.run("delete 1\r\n");
  waiting->run();
  REQUIRE(waiting->done());
  CHECK(waiting->answer().text == "{\"result\":\"DELETED\",\"id\":1}\n");
}

TEST_CASE("the policy of a tube") {
  Api api;
  CHECK(api.ask(Method::put, "/tubes/mail/policy/max-attempts", {.json = R"({"value":5})"}).text ==
        "{\"result\":\"POLICY_SET\"}\n");
  CHECK(api.get("/tubes/mail/policy")["max-attempts"] == "5");
  CHECK(api.get("/tubes/mail/policy")["max-attempts-from"] == "\"wire\"");
  CHECK(api.ask(Method::put, "/tubes/mail/policy/max-attempts", {.json = R"({"value":"x"})"})
            .status == 400);
  CHECK(api.ask(Method::put, "/tubes/mail/policy/nothing", {.json = R"({"value":1})"}).status ==
        400);
  CHECK(api.ask(Method::put, "/tubes/mail/policy/ttl").status == 400);
  CHECK(api.ask(Method::remove, "/tubes/mail/policy/max-attempts").status == 200);
  CHECK(api.get("/tubes/mail/policy")["max-attempts-from"] == "\"default\"");
}

TEST_CASE("a body as it is, or as JSON") {
  Api api;
  const std::string large(100'000, '\xfe');
  api.run("put 0 0 60 2\r\n\"\n\r\n");
  Limits limits;
  limits.job_bytes = 200'000;
  Api roomy(limits);
  CHECK(roomy.post("/tubes/mail/jobs", {.body = large}).status == 201);
  const Got raw = roomy.get("/jobs/1/body");
  CHECK(raw.content == Content::bytes);
  CHECK(raw.text == large);
  CHECK(roomy.get("/jobs/1/body", {.body_as_json = true})["body_base64"].size() > large.size());
  CHECK(api.get("/jobs/1/body").text == "\"\n");
  const Got json = api.get("/jobs/1/body", {.body_as_json = true});
  CHECK(json.content == Content::json);
  CHECK(json.text == "{\"id\":1,\"body\":\"\\\"\\n\"}\n");
  CHECK(api.get("/jobs/9/body").status == 404);
  CHECK(api.get("/jobs/9/body").content == Content::problem);
}

TEST_CASE("drain mode begins and ends") {
  Api api;
  CHECK(api.post("/drain").text == "{\"result\":\"DRAINING\"}\n");
  CHECK(api.service.draining());
  CHECK(api.get("/server")["draining"] == "true");
  CHECK(api.ask(Method::remove, "/drain").text == "{\"result\":\"NOT_DRAINING\"}\n");
  CHECK(!api.service.draining());
}

TEST_CASE("a role that may not drain is denied") {
  Api api({role_of_families("watcher", "i")});
  CHECK(api.post("/drain", {.role = "watcher"}).status == 403);
  CHECK(!api.service.draining());
}

TEST_CASE("a reserve takes a job of its tube alone") {
  Api api;
  api.run("put 0 0 60 1\r\nd\r\nput-in-tube mail 9 0 60 1\r\nm\r\n");
  auto reserve = api.begin(Method::post, "/tubes/mail/reserve");
  REQUIRE(reserve->done());
  const Got reserved = reserve->answer();
  CHECK(reserved.status == 201);
  CHECK(reserved.location == "/api/v1/reservations/cafe");
  CHECK(reserved["token"] == "\"cafe\"");
  CHECK(reserved["id"] == "2");
  CHECK(reserved["tube"] == "\"mail\"");
  CHECK(reserved["pri"] == "9");
  CHECK(reserved["time-left"] == "60");
  CHECK(reserved["body"] == "\"m\"");
  CHECK(reserved["state"] == "\"reserved\"");
  const Got none = api.post("/tubes/mail/reserve");
  CHECK(none.status == 204);
  CHECK(none.text.empty());
  auto from_default = api.begin(Method::post, "/tubes/default/reserve");
  CHECK(from_default->answer()["id"] == "1");
}

TEST_CASE("a reserve waits, and ends with 204") {
  Api api;
  auto first = api.begin(Method::post, "/tubes/mail/reserve", {.json = R"({"timeout":50})"});
  auto second = api.begin(Method::post, "/tubes/mail/reserve", {.json = R"({"timeout":5})"});
  CHECK(!first->done());
  api.advance(std::chrono::seconds(6));
  second->run();
  REQUIRE(second->done());
  CHECK(second->answer().status == 204);
  api.run("put-in-tube mail 0 0 60 1\r\n\xff\r\n");
  first->run();
  REQUIRE(first->done());
  CHECK(first->answer()["body_base64"] == "\"/w==\"");
  CHECK(api.post("/tubes/mail/reserve", {.json = R"({"timeout":51})"}).status == 400);
}

TEST_CASE("a reserve whose watch is refused reserves from no other tube") {
  Api api({role_of_families("worker", "w", {"default", "mail"}), role_of_families("watcher", "i")},
          Limits{.tubes = 1});
  api.run("put 0 0 60 1\r\nd\r\n");
  const auto still_ready = [&] { return api.get("/jobs/1")["state"] == "\"ready\""; };
  CHECK(api.post("/tubes/other/reserve", {.role = "worker"}).status == 403);
  CHECK(still_ready());
  CHECK(api.post("/tubes/mail/reserve", {.role = "worker"}).status == 507);
  CHECK(still_ready());
  CHECK(api.post("/tubes/-x/reserve", {.role = "worker"}).status == 400);
  CHECK(api.post("/tubes/mail%20default/reserve", {.role = "worker"}).status == 400);
  CHECK(api.post("/tubes/default%0D%0Areserve/reserve").status == 400);
  CHECK(still_ready());
  CHECK(api.post("/tubes/default/reserve", {.role = "watcher"}).status == 403);
  CHECK(api.post("/jobs/1/reserve", {.role = "watcher"}).status == 403);
  CHECK(still_ready());
}

TEST_CASE("a role without inspect reserves, and is not shown the statistics of the job") {
  Api api({role_of_families("worker", "w", {"mail"})});
  api.run("put-in-tube mail 0 0 60 1\r\nm\r\n");
  auto reserve = api.begin(Method::post, "/tubes/mail/reserve", {.role = "worker"});
  REQUIRE(reserve->done());
  CHECK(reserve->answer().status == 201);
  CHECK(reserve->answer().text == "{\"token\":\"cafe\",\"id\":1,\"body\":\"m\"}\n");
  CHECK(api.get("/jobs/1")["state"] == "\"reserved\"");
}

TEST_CASE("a job is reserved by its id") {
  Api api;
  api.run("put-in-tube mail 0 99 60 1\r\nm\r\n");
  auto reserve = api.begin(Method::post, "/jobs/1/reserve");
  CHECK(reserve->answer().status == 201);
  CHECK(reserve->answer()["tube"] == "\"mail\"");
  CHECK(api.post("/jobs/1/reserve").status == 409);
  CHECK(api.post("/jobs/1/reprioritize", {.json = R"({"pri":3})"}).status == 409);
}

TEST_CASE("a job in another state is a conflict, and a job that does not exist is not found") {
  Api api({role_of_families("all", "pwia", {"mail"})});
  api.run("put-in-tube mail 0 0 60 1\r\na\r\nput-in-tube b 0 0 60 1\r\na\r\n");
  api.run("reserve-job 1\r\nreserve-job 2\r\n");
  const auto is_refused = [&](Method method, const std::string& path, std::string_view json) {
    CAPTURE(path);
    const auto of_job = [&](const std::string& id) {
      std::string target = path;
      target.replace(target.find('*'), 1, id);
      return api.ask(method, target, {.json = json, .role = "all"});
    };
    const Got held = of_job("1");
    CHECK(held.text ==
          R"({"type":"urn:tubed:problem:wrong-state","title":"Wrong state","status":409,)"
          R"("detail":"A client holds the job.","reply":"NOT_FOUND","state":"reserved"})"
          "\n");
    CHECK(held.status == 409);
    // The role may not know whether job 2 exists.
    CHECK(of_job("9").status == 404);
    CHECK(of_job("2").text == of_job("9").text);
  };
  is_refused(Method::remove, "/jobs/*", "");
  is_refused(Method::post, "/jobs/*/kick", "");
  is_refused(Method::post, "/jobs/*/reserve", "");
  is_refused(Method::post, "/jobs/*/move", R"({"tube":"mail"})");
  for (const Operation& operation : operations()) {
    CAPTURE(operation.id);
    CHECK((!operation.needs_state || operation.line.find("{id}") != std::string_view::npos));
    CHECK((operation.kind != Kind::held || operation.line == "touch-all" || operation.needs_state));
  }
  api.run("release 1 0 99\r\n");
  CHECK(api.post("/jobs/1/kick").status == 200);
  CHECK(api.post("/jobs/1/kick")["detail"] == "\"The job is ready.\"");
  api.run("flush-tube mail\r\n");
  CHECK(api.ask(Method::remove, "/jobs/1").status == 404);
}

// The next request for the reservation of `reserve`, in the conversation of the request before.
Got ask_held(Api& api, std::unique_ptr<Asking>& reserve, Method method, std::string_view target,
             std::string_view json = {}) {
  auto made = api.script(method, target, {.json = json, .held = HeldJob{.id = 1, .priority = 9}});
  if (const auto* problem = std::get_if<Problem>(&made)) return got(response_of(*problem));
  reserve = std::make_unique<Asking>(reserve->take_conversation(),
                                     std::move(std::get<std::unique_ptr<Script>>(made)));
  REQUIRE(reserve->done());
  return reserve->answer();
}

TEST_CASE("commands on the job that a token holds") {
  Api api;
  api.run("put-in-tube mail 9 0 60 1\r\nm\r\n");
  auto held = api.begin(Method::post, "/tubes/mail/reserve");
  REQUIRE(held->done());
  CHECK(ask_held(api, held, Method::get, "/reservations/cafe")["state"] == "\"reserved\"");
  CHECK(ask_held(api, held, Method::post, "/reservations/cafe/touch").text ==
        "{\"result\":\"TOUCHED\"}\n");
  CHECK(ask_held(api, held, Method::post, "/reservations/cafe/touch", R"({"seconds":5})").status ==
        200);
  CHECK(api.get("/jobs/1")["time-left"] == "5");
  CHECK(ask_held(api, held, Method::post, "/reservations/cafe/touch", R"({"pri":5})").status ==
        400);
  CHECK(ask_held(api, held, Method::post, "/reservations/cafe/touch", R"({"id":5})").status == 400);
  SUBCASE("release keeps the priority") {
    CHECK(ask_held(api, held, Method::post, "/reservations/cafe/release").text ==
          "{\"result\":\"RELEASED\"}\n");
    CHECK(api.get("/jobs/1")["pri"] == "9");
    CHECK(ask_held(api, held, Method::post, "/reservations/cafe/release")["state"] == "\"ready\"");
  }
  SUBCASE("release with a priority and a delay") {
    CHECK(ask_held(api, held, Method::post, "/reservations/cafe/release", R"({"pri":2,"delay":3})")
              .status == 200);
    CHECK(api.get("/jobs/1")["pri"] == "2");
    CHECK(api.get("/jobs/1")["state"] == "\"delayed\"");
  }
  SUBCASE("bury") {
    CHECK(ask_held(api, held, Method::post, "/reservations/cafe/bury").text ==
          "{\"result\":\"BURIED\"}\n");
    CHECK(api.get("/jobs/1")["pri"] == "9");
    CHECK(api.get("/jobs/1")["state"] == "\"buried\"");
  }
  SUBCASE("delete") {
    CHECK(ask_held(api, held, Method::remove, "/reservations/cafe").text ==
          "{\"result\":\"DELETED\"}\n");
    CHECK(api.get("/jobs/1").status == 404);
  }
}

TEST_CASE("tubes are listed over all pages") {
  Api api;
  std::string text;
  for (int i = 0; i < 2500; ++i) text += "put-in-tube t" + std::to_string(i) + " 0 0 60 1\r\na\r\n";
  text += "put-in-tube t1999 0 0 60 1\r\na\r\n";
  api.run(text);
  const Got plain = api.get("/tubes?from=2400&limit=1000");
  CHECK(plain["next"] == "0");
  CHECK(plain["total"].empty());
  const Got sorted = api.get("/tubes?sort=ready&order=desc&limit=2");
  CHECK(sorted["total"] == "2501");
  CHECK(sorted["next"] == "2");
  CHECK(sorted.text.find("\"tubes\":[{\"name\":\"t1999\"") != std::string::npos);
  CHECK(sorted.text.find("{\"name\":\"t0\",\"urgent\":1,\"ready\":1") != std::string::npos);
  CHECK(api.get("/tubes?filter=t24")["total"] == "111");
  CHECK(api.get("/tubes?filter=nothing").text == "{\"total\":0,\"next\":0,\"tubes\":[]}\n");
  const std::vector<std::string> ran = counted(api);
  CHECK(std::ranges::find(ran, "cmd-stats-tubes: 34") != ran.end());
}

TEST_CASE("jobs are sorted over all pages") {
  Api api;
  std::string text;
  for (int i = 1; i <= 2500; ++i)
    text += "put-in-tube a " + std::to_string(i * 7919 % 2503) + " 0 60 1\r\na\r\n";
  text += "put-in-tube b 0 0 60 1\r\nb\r\nput-in-tube a 9000 0 60 2\r\nbb\r\n";
  api.run(text);
  CHECK(api.get("/tubes/a/jobs?limit=2")["total"].empty());
  const Got sorted = api.get("/tubes/a/jobs?sort=pri&order=desc&limit=2");
  CHECK(sorted["total"] == "2501");
  CHECK(sorted["next"] == "2");
  CHECK(sorted["looked"].empty());
  CHECK(sorted.text.find("\"jobs\":[{\"id\":2502,\"state\":\"ready\",\"pri\":9000,") !=
        std::string::npos);
  CHECK(sorted.text.find("\"pri\":2502,") != std::string::npos);
  const Got found = api.get("/tubes/a/jobs?sort=bytes&q=bb&state=all");
  CHECK(found["total"] == "1");
  CHECK(found["looked"] == "2501");
  CHECK(api.get("/tubes/none/jobs?sort=id").text == "{\"total\":0,\"next\":0,\"jobs\":[]}\n");
  const Got wrong = api.get("/tubes/a/jobs?sort=id&state=lost");
  CHECK(wrong.status == 400);
  CHECK(wrong["parameter"] == "\"state\"");
}

TEST_CASE("a sorted list of jobs that is denied is a problem") {
  Api api({role_of_families("worker", "w"), role_of_families("web", "i", {"web.*"})});
  CHECK(api.get("/tubes/a/jobs?sort=id", {.role = "worker"}).status == 403);
  CHECK(api.get("/tubes/a/jobs?sort=id", {.role = "web"}).status == 403);
  CHECK(api.get("/tubes/web.a/jobs?sort=id", {.role = "web"}).status == 200);
}

TEST_CASE("a list of tubes that is denied is a problem") {
  Api api({role_of_families("worker", "w")});
  CHECK(api.get("/tubes", {.role = "worker"}).status == 403);
  CHECK(api.get("/tubes?sort=name", {.role = "worker"}).status == 403);
}

TEST_CASE("a list of tubes has the tubes of the role") {
  Api api({role_of_families("web", "i", {"web.*"})});
  api.run("put-in-tube web.a 0 0 60 1\r\na\r\nput-in-tube b 0 0 60 1\r\na\r\n");
  CHECK(api.get("/tubes?sort=name", {.role = "web"})["total"] == "1");
  CHECK(api.get("/tubes/b", {.role = "web"}).status == 403);
  CHECK(api.get("/jobs/2", {.role = "web"}).status == 404);
}

TEST_CASE("a move to a tube that is not of the role shows of no job whether it exists") {
  Api api({role_of_families("web", "ai", {"web.*"})});
  api.run("put-in-tube web.a 0 0 60 1\r\na\r\nput-in-tube b 0 0 60 1\r\na\r\n");
  const auto move = [&](const std::string& job, std::string_view to) {
    const Got moved = api.post("/jobs/" + job + "/move", {.json = to, .role = "web"});
    return std::to_string(moved.status) + " " + moved.text;
  };
  const std::string denied = move("1", R"({"tube":"b"})");
  CHECK(denied.starts_with("403 "));
  for (const char* const job : {"2", "99"}) CHECK(move(job, R"({"tube":"b"})") == denied);
  const std::string none = move("99", R"({"tube":"web.b"})");
  CHECK(none.starts_with("404 "));
  CHECK(move("2", R"({"tube":"web.b"})") == none);
  CHECK(move("1", R"({"tube":"web.b"})").starts_with("200 "));
}

// --- What other clients do while a request is under way

TEST_CASE("a put whose role loses the tube while the body arrives is a problem") {
  Api api({role_of_families("web", "p", {"a"})});
  auto made = api.script(Method::post, "/tubes/a/jobs", {.body = "body", .role = "web"});
  auto script = std::move(std::get<std::unique_ptr<Script>>(made));
  auto client = api.client("web");
  client->answers().set_writer(script.get());
  client->receive(script->first_input() + "bo");
  CHECK(client->in_body());
  api.service.set_roles({role_of_families("web", "p", {"b"})});
  client->receive("dy\r\n");
  std::string output = protocol::take_replies(client->replies());
  const auto head = take_frame_head(output);
  REQUIRE(head);
  CHECK(head->status == 403);
  CHECK(api.service.engine().info().total_jobs == 0);
  CHECK(api.service.engine().memory().bytes() == 0);
  client->answers().set_writer(nullptr);
}

TEST_CASE("a reserve whose job is removed before its response is made holds no job") {
  Api api;
  auto reserve = api.begin(Method::post, "/tubes/mail/reserve", {.json = R"({"timeout":50})"});
  REQUIRE(!reserve->done());
  api.run("put-in-tube mail 0 0 60 1\r\nm\r\ndelete-force 1\r\n");
  reserve->run();
  REQUIRE(reserve->done());
  // As a client of the protocol that was answered before.
  CHECK(reserve->answer().text == "{\"token\":\"cafe\",\"id\":1,\"body\":\"m\"}\n");
  auto client = reserve->take_conversation();
  CHECK(!api.service.engine().holds_jobs(client->session()));
  api.service.engine().check_invariants();
}

TEST_CASE("a waiting reserve ends with a problem when its role loses the tube") {
  Api api({role_of_families("web", "w", {"mail"})});
  auto reserve =
      api.begin(Method::post, "/tubes/mail/reserve", {.json = R"({"timeout":50})", .role = "web"});
  REQUIRE(!reserve->done());
  api.service.set_roles({role_of_families("web", "w", {"other"})});
  reserve->run();
  REQUIRE(reserve->done());
  CHECK(reserve->answer().status == 403);
}

TEST_CASE("commands on the job of a token find it gone, or another client's") {
  for (const std::string_view meanwhile :
       {"delete-force 1\r\n", "flush-tube mail\r\n", "flush-tube mail reserved\r\n"}) {
    CAPTURE(meanwhile);
    Api api;
    api.run("put-in-tube mail 9 0 60 1\r\nm\r\n");
    auto held = api.begin(Method::post, "/tubes/mail/reserve");
    REQUIRE(held->done());
    api.run(meanwhile);
    for (const char* const what : {"touch", "release", "bury"}) {
      CHECK(ask_held(api, held, Method::post, std::string("/reservations/cafe/") + what).status ==
            404);
    }
    CHECK(ask_held(api, held, Method::remove, "/reservations/cafe").status == 404);
    api.service.engine().check_invariants();
  }
  Api api;
  api.run("put-in-tube mail 9 0 1 1\r\nm\r\n");
  auto held = api.begin(Method::post, "/tubes/mail/reserve");
  REQUIRE(held->done());
  api.advance(std::chrono::seconds(2));
  api.run("reserve-job 1\r\n");
  for (const char* const what : {"touch", "release", "bury"}) {
    const Got refused =
        ask_held(api, held, Method::post, std::string("/reservations/cafe/") + what);
    CHECK(refused.status == 409);
    CHECK(refused["state"] == "\"reserved\"");
  }
  CHECK(ask_held(api, held, Method::remove, "/reservations/cafe").status == 409);
  CHECK(api.get("/jobs/1")["state"] == "\"reserved\"");
}

TEST_CASE("a list of tubes over several pages ends where its role loses the verb") {
  Api api({role_of_families("web", "i")}, Limits{.work_per_turn = 10});
  for (int i = 0; i < 600; ++i) {
    api.run("put-in-tube t" + std::to_string(i) + " 0 0 60 0\r\n\r\n");
  }
  auto made = api.script(Method::get, "/tubes?sort=name", {.role = "web"});
  auto script = std::move(std::get<std::unique_ptr<Script>>(made));
  std::string next;
  script->on_input([&](std::string_view line) { next += line; });
  auto client = api.client("web");
  client->answers().set_writer(script.get());
  client->receive(script->first_input());
  REQUIRE(next.starts_with("stats-tubes "));
  api.service.set_roles({role_of_families("web", "")});
  client->receive(next);
  CHECK(script->done());
  std::string output = protocol::take_replies(client->replies());
  const auto head = take_frame_head(output);
  REQUIRE(head);
  CHECK(head->status == 403);
  client->answers().set_writer(nullptr);
}

TEST_CASE("unknown parameters are problems") {
  Api api;
  for (const std::string_view target : {"/server?x=1",
                                        "/tubes?x=1",
                                        "/tubes/a?tube=b",
                                        "/tubes/a/jobs?filter=x",
                                        "/jobs/1?id=2",
                                        "/tubes?limit=0",
                                        "/tubes?limit=1001",
                                        "/tubes?from=x",
                                        "/tubes?from=-1&sort=name",
                                        "/tubes?sort=nothing",
                                        "/tubes?order=up",
                                        "/tubes?limit=0&sort=name",
                                        "/tubes?limit=1001&sort=name",
                                        "/tubes?from=10000&sort=name",
                                        "/tubes?sort=",
                                        "/tubes/a/jobs?state=next&from=5",
                                        "/tubes/a/jobs?sort=body",
                                        "/tubes/a/jobs?sort=id&q=",
                                        "/tubes/a/jobs?sort=id&age_over=x",
                                        "/tubes/a/jobs?sort=id&filter=x",
                                        "/tubes/a/jobs?state=lost",
                                        "/clients?limit=1001"}) {
    CAPTURE(target);
    CHECK(api.get(target).status == 400);
  }
}

}  // namespace
}  // namespace tubed::api
