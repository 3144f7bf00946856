// test-dump and test-load: the marks of jobs and the policies of tubes.
#include "test_mode/state_lines.h"

#include <cstdint>
#include <string>

#include <doctest/doctest.h>

#include "tests/test_mode/test_mode_server.h"

namespace tubed::test_mode {

namespace {

std::string dump_of(TestModeServer& server) {
  const std::string reply = server.say("test-dump");
  return reply.substr(reply.find("\r\n") + 2);
}

std::string load(TestModeServer& server, const std::string& lines) {
  return server.send(*server.control,
                     "test-load " + std::to_string(lines.size()) + "\r\n" + lines + "\r\n");
}

// Its jobs and policies. The count of a tube's jobs begins again, and ages are whole seconds.
std::string durable_lines(const std::string& dump) {
  std::string lines;
  std::size_t begin = 0;
  for (std::size_t end = dump.find('\n'); end != dump.npos; end = dump.find('\n', begin)) {
    const std::string line = dump.substr(begin, end + 1 - begin);
    if (line.starts_with("{\"id\"") || line.starts_with("{\"policy\"")) lines += line;
    begin = end + 1;
  }
  return lines;
}

// The answers, with the dump, that loading the dump must not change.
std::string answers(TestModeServer& server, Conversation& client, JobId jobs) {
  std::string all = durable_lines(dump_of(server));
  for (JobId id = 1; id <= jobs; ++id) {
    all += server.send(client, "stats-job " + std::to_string(id) + "\r\n");
  }
  for (const char* const line :
       {"tube-policy mails\r\n", "tube-policy none\r\n", "stats-group g\r\n",
        "list-jobs mails held\r\n", "list-jobs mails ready\r\n", "list-jobs dead ready\r\n"}) {
    all += server.send(client, line);
  }
  return all;
}

// The ids that list-jobs shows, each after a space.
std::string ids(TestModeServer& server, Conversation& client, const std::string& jobs) {
  const std::string reply = server.send(client, "list-jobs " + jobs + "\r\n");
  std::string all;
  for (std::size_t at = reply.find("\n- "); at != reply.npos; at = reply.find("\n- ", at + 1)) {
    const std::string word = reply.substr(at + 3, reply.find(' ', at + 3) - at - 3);
    if (word != "next" && word != "id") all += " " + word;
  }
  return all;
}

}  // namespace

TEST_CASE("a load restores the marks of jobs and the policies of tubes") {
  TestModeServer server;
  auto& client = server.client();
  server.send(client, "tube-policy mails max-attempts 2\r\ntube-policy mails dead dead\r\n");
  server.send(client, "tube-policy none rate 3/60\r\ntube-policy none keep 1\r\n");
  server.send(client, "use mails\r\nwatch mails\r\nwatch dead\r\n");
  // Job 1 is dead for its attempts, and job 2 is buried and kicked after its first attempt.
  server.send(client, put(0) + "reserve\r\nrelease 1 0 0\r\nreserve\r\nrelease 1 0 0\r\n");
  server.send(client, put(0) + "reserve-job 2\r\nbury 2 0\r\nkick-job 2\r\n");
  // Job 3 was ready before its group had a member, job 4 is that member, and job 5 is held.
  server.send(client, "put 9 0 60 1 aft:g\r\nx\r\nput 9 0 60 1 grp:g\r\nx\r\n");
  server.send(client, "put 9 0 60 1 aft:g\r\nx\r\nput 9 0 60 1 aft:g grp:h\r\nx\r\n");
  const std::string dump = dump_of(server);
  for (const char* const part :
       {R"({"policy":"mails","key":"max-attempts","value":"2"})",
        R"({"policy":"none","key":"rate","value":"3/60"})",
        R"("reserves_before":2,"releases_before":2,"dead_from":"mails","dead_reason":"attempts")",
        R"("reserves_before":1})", R"("after_done":true})", R"("time_left_ms":0,"held":true})"}) {
    CAPTURE(part);
    CHECK(dump.find(part) != dump.npos);
  }
  const std::string before = answers(server, client, 6);
  CHECK(before.find("\nmax-attempts-from: wire\n") != before.npos);
  CHECK(before.find("\ndead-from: mails\n") != before.npos);
  for (int time = 0; time < 2; ++time) {
    CHECK(server.say("test-reset") == "RESET\r\n");
    CHECK(load(server, dump) == "LOADED 6\r\n");
    CHECK(answers(server, client, 6) == before);
    server.say("test-snapshot loaded");
    CHECK(server.say("test-restore loaded") == "RESTORED 6\r\n");
    CHECK(answers(server, client, 6) == before);
  }
  const std::uint64_t memory = server.talk.service.engine().info().memory_bytes;
  CHECK(load(server, dump) == "LOADED 6\r\n");
  CHECK(server.talk.service.engine().info().memory_bytes == 2 * memory);
  server.say("test-restore loaded");
  // The held jobs wait for job 4 alone, and job 2 has two attempts again.
  server.send(client, "watch mails\r\n");
  CHECK(ids(server, client, "mails held") == " 5 6");
  CHECK(server.send(client, "delete 4\r\n") == "DELETED\r\n");
  CHECK(ids(server, client, "mails ready") == " 2 3 5 6");
  server.send(client, "reserve\r\nrelease 2 0 0\r\n");
  CHECK(ids(server, client, "dead ready") == " 1");
  server.send(client, "reserve\r\nrelease 2 0 0\r\n");
  CHECK(ids(server, client, "dead ready") == " 1 2");
}

TEST_CASE("a job that has expired does not expire again after a load") {
  TestModeServer server;
  auto& client = server.client();
  server.send(client, "tube-policy default ttl 10\r\ntube-policy default expired bury\r\n");
  server.send(client, put(0));
  CHECK(server.say("test-advance 10") == "ADVANCED 10000\r\n");
  server.send(client, "kick 1\r\n" + put(0));
  const std::string dump = dump_of(server);
  CHECK(dump.find(R"("dead_reason":"expired")") != dump.npos);
  CHECK(dump.find("dead_from") == dump.npos);
  const std::string before = answers(server, client, 2);
  server.say("test-reset");
  CHECK(load(server, dump) == "LOADED 2\r\n");
  CHECK(answers(server, client, 2) == before);
  CHECK(server.say("test-advance 10") == "ADVANCED 10000\r\n");
  CHECK(ids(server, client, "default ready") == " 1");
  CHECK(ids(server, client, "default buried") == " 2");
}

TEST_CASE("a load restores times with milliseconds") {
  TestModeServer server;
  auto& client = server.client();
  server.send(client, "put 0 0 1500ms 1\r\nx\r\nput 0 700ms 60 1\r\ny\r\n");
  server.send(client, "pause-tube default 300ms\r\n");
  const std::string dump = dump_of(server);
  CHECK(dump.find(R"("ttr_ms":1500)") != dump.npos);
  server.say("test-reset");
  CHECK(load(server, dump) == "LOADED 2\r\n");
  CHECK(dump_of(server).find(R"("pause":1,"pause_left_ms":300)") != dump.npos);
  server.say("test-advance 299ms");
  CHECK(server.send(client, "reserve-with-timeout 0\r\n") == "TIMED_OUT\r\n");
  server.say("test-advance 1ms");
  CHECK(server.send(client, "reserve-with-timeout 0\r\n") == "RESERVED 1 1\r\nx\r\n");
  server.say("test-advance 399ms");
  CHECK(ids(server, client, "default ready").empty());
  server.say("test-advance 1ms");
  CHECK(ids(server, client, "default ready") == " 2");
  server.say("test-advance 1099ms");
  CHECK(server.send(client, "touch 1\r\n") == "TOUCHED\r\n");
}

TEST_CASE("a dump of an older form, without marks and policies, is loaded") {
  TestModeServer server;
  auto& client = server.client();
  CHECK(load(server, R"({"tube":"a","pause":0,"pause_left_ms":0}
{"id":1,"tube":"a","state":"buried","reserves":3,"tags":"max:3","body":"x"}
{"id":2,"tube":"a","state":"delayed","delay":0,"tags":"aft:g","body":"x","time_left_ms":0}
{"id":3,"tube":"a","state":"ready","tags":"aft:none","body":"x"}
{"id":4,"tube":"a","state":"ready","tags":"grp:g","body":"x"})") == "LOADED 4\r\n");
  CHECK(ids(server, client, "a held") == " 2");
  CHECK(ids(server, client, "a ready") == " 3 4");
}

TEST_CASE("a line with malformed marks or a malformed policy changes nothing") {
  TestModeServer server;
  const std::string good = R"({"policy":"a","key":"keep","value":"1"})"
                           "\n";
  for (const char* const bad : {R"({"body":"x","reserves":1,"reserves_before":2})",
                                R"({"body":"x","reserves_before":"0"})",
                                R"({"body":"x","timeouts_before":1})",
                                R"({"body":"x","releases":1,"releases_before":-1})",
                                R"({"body":"x","dead_from":"a"})",
                                R"({"body":"x","dead_reason":""})",
                                R"({"body":"x","dead_reason":"boredom"})",
                                R"({"body":"x","dead_reason":"attempts","dead_from":"a b"})",
                                R"({"body":"x","dead_reason":1})",
                                R"({"body":"x","after_done":true})",
                                R"({"body":"x","tags":"aft:g","after_done":1})",
                                R"({"body":"x","ttr":2,"ttr_ms":1000})",
                                R"({"body":"x","ttr":2,"ttr_ms":2001})",
                                R"({"body":"x","ttr":2,"ttr_ms":"1500"})",
                                R"({"body":"x","ttr_ms":18446744073709551615})",
                                R"({"policy":"a b","key":"ttl","value":"1"})",
                                R"({"policy":"a","key":"tll","value":"1"})",
                                R"({"policy":"a","key":"ttl","value":"-"})",
                                R"({"policy":"a","key":"ttl","value":1})",
                                R"({"policy":"a","value":"1"})",
                                R"({"policy":"a","key":"ttl"})",
                                R"({"policy":null,"key":"ttl","value":"1"})"}) {
    CAPTURE(bad);
    CHECK(load(server, good + R"({"body":"y"})" + "\n" + bad) == "BAD_FORMAT\r\n");
  }
  const engine::Engine& engine = server.talk.service.engine();
  CHECK(engine.info().total_jobs == 0);
  CHECK(engine.info().memory_bytes == 0);
  CHECK(engine.queries().policies().count() == 0);
}

TEST_CASE("a load that exceeds a bound changes nothing") {
  TestModeServer server;
  engine::Engine& engine = server.talk.service.engine();
  const std::string policies =
      R"({"policy":"a","key":"ttl","value":"1"}
{"policy":"a","key":"ttl","value":"2"}
{"policy":"a","key":"keep","value":"1"})";
  const std::string job =
      R"({"body":"x","reserves":3,"reserves_before":3,"dead_from":"a","dead_reason":"attempts"})";
  CHECK(load(server, job) == "LOADED 1\r\n");
  const std::uint64_t needed = engine.info().memory_bytes;
  CHECK(needed > engine::JobMemory::cost_of(1));
  server.send(*server.control, "delete 1\r\n");
  Limits limits = engine.limits();
  limits.policies = 1;
  limits.job_memory_bytes = needed - 1;
  engine.set_limits(limits);
  CHECK(load(server, job) == "OUT_OF_MEMORY\r\n");
  CHECK(load(server, policies) == "OUT_OF_MEMORY\r\n");
  CHECK(engine.queries().policies().count() == 0);
  CHECK(engine.info().memory_bytes == 0);
  limits.policies = 2;
  limits.job_memory_bytes = needed;
  engine.set_limits(limits);
  CHECK(load(server, job) == "LOADED 1\r\n");
  server.send(*server.control, "delete 2\r\n");
  CHECK(load(server, policies) == "LOADED 0\r\n");
  CHECK(server.send(server.client(), "tube-policy a ttl 3\r\ntube-policy b ttl 3\r\n") ==
        "POLICY_SET\r\nOUT_OF_MEMORY\r\n");
  // A limit below the number of policies refuses only those that are new.
  limits.policies = 1;
  engine.set_limits(limits);
  CHECK(load(server, R"({"policy":"a","key":"ttl","value":"4"})") == "LOADED 0\r\n");
  CHECK(load(server, R"({"policy":"b","key":"ttl","value":"4"})") == "OUT_OF_MEMORY\r\n");
  CHECK(load(server, R"({"body":"y"})") == "LOADED 1\r\n");
}

}  // namespace tubed::test_mode
