#include <string>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tubectl/jobs/record.h"

namespace tubed::tubectl {
namespace {

JobRecord full_record() {
  JobRecord job;
  job.id = UINT64_MAX;
  job.tube = "a-b+c/d;e.f$g_h(i)";
  job.state = JobState::delayed;
  job.priority = UINT32_MAX;
  job.delay_seconds = 17;
  job.ttr_seconds = 99;
  job.age_seconds = 1000;
  job.reserves = 1;
  job.timeouts = 2;
  job.releases = 3;
  job.buries = 4;
  job.kicks = 5;
  job.body = "hello";
  return job;
}

std::string error_of(std::string_view line) {
  const auto read = read_record(line);
  return read ? "" : read.error().message;
}

}  // namespace

TEST_CASE("a record is one line, with its keys in a fixed order") {
  CHECK(to_line(as_json(full_record())) ==
        R"json({"id":18446744073709551615,"tube":"a-b+c/d;e.f$g_h(i)","state":"delayed",)json"
        R"json("priority":4294967295,"delay":17,"ttr":99,"age":1000,"reserves":1,"timeouts":2,)json"
        R"json("releases":3,"buries":4,"kicks":5,"body":"hello"})json");
}

TEST_CASE("a record is read back as written, whatever the body") {
  for (const std::string& body :
       {std::string(), std::string("a\r\nb\"\\"), std::string("\0\xff", 2),
        std::string(100'000, '\x80'), std::string("\xc3\xa4")}) {
    JobRecord job = full_record();
    job.body = body;
    const auto read = read_record(to_line(as_json(job)));
    REQUIRE(read);
    CHECK(read.value().body == body);
    CHECK(as_json(read.value()) == as_json(job));
  }
}

TEST_CASE("a body is enough, and unknown keys are ignored") {
  const auto read = read_record(R"({"body":"x","colour":["red",1.5]})");
  REQUIRE(read);
  const JobRecord& job = read.value();
  CHECK(job.body == "x");
  CHECK(read_record(R"({"body":"x","pri":7})").value().priority == 7);
  CHECK(job.tube == "default");
  CHECK(job.state == JobState::ready);
  CHECK(job.priority == 1024);
  CHECK(job.delay_seconds == 0);
  CHECK(job.ttr_seconds == 60);
}

TEST_CASE("tags precede the body, and are omitted for a job without tags") {
  JobRecord job;
  job.tags = "idp:k:300";
  job.body = "x";
  const std::string line = to_line(as_json(job));
  CHECK(line.ends_with(R"("kicks":0,"tags":"idp:k:300","body":"x"})"));
  CHECK(read_record(line).value().tags == job.tags);
  job.tags = "idp:k max:5:dead ttl:60";
  CHECK(read_record(to_line(as_json(job))).value().tags == job.tags);
  job.tags.clear();
  CHECK(to_line(as_json(job)).find("tags") == std::string::npos);
  for (const char* const tags : {"\"\"", "\"idp:\"", "\"max:x\"", "\"idp:k idp:l\"", "[]", "7"}) {
    CAPTURE(tags);
    CHECK(error_of(std::string(R"({"body":"","tags":)") + tags + "}") ==
          "its \"tags\" are not those of a put");
  }
}

TEST_CASE("the error of a line names what is wrong") {
  for (const char* const line : {"", "{", "[]", "1", "\"x\"", "{} {}", "{\"body\":\"\xff\"}"}) {
    CAPTURE(line);
    CHECK(error_of(line) == "it is no JSON object");
  }
  CHECK(error_of("{}") == "it has neither or both of \"body\" and \"body_base64\"");
  CHECK(error_of(R"({"body":1})") == "its body is not text");
  CHECK(error_of(R"({"body_base64":"A"})") == "its base64 is damaged");
  CHECK(error_of(R"({"body":"","tube":"-x"})") == "its \"tube\" is no tube's name");
  CHECK(error_of(R"({"body":"","tube":7})") == "its \"tube\" is no tube's name");
  for (const char* const state : {"\"kicked\"", "\"\"", "1", "null"}) {
    CAPTURE(state);
    CHECK(error_of(std::string(R"({"body":"","state":)") + state + "}") ==
          "its \"state\" is not ready, delayed, buried or reserved");
  }
  for (const char* const number : {"-1", "1.0", "4294967296", "\"1\"", "null", "1e3"}) {
    for (const char* const key : {"priority", "delay", "ttr"}) {
      CAPTURE(key);
      CAPTURE(number);
      CHECK(error_of(std::string(R"({"body":"",")") + key + "\":" + number + "}") ==
            std::string("its \"") + key + "\" is no whole number from 0 to 4294967295");
    }
  }
  CHECK(error_of(R"({"body":"","age":18446744073709551616})") ==
        "its \"age\" is no whole number from 0 to 18446744073709551615");
}

TEST_CASE("stats-job has everything except the body") {
  const auto record = record_of(client::StatsBlock(
      "---\nid: 7\ntube: \"1.0\"\nstate: delayed\npri: 3\nage: 5\ndelay: 60\nttr: 9\n"
      "time-left: 41\nfile: 0\nreserves: 1\ntimeouts: 2\nreleases: 3\nburies: 4\nkicks: 5\n"));
  REQUIRE(record);
  JobRecord expected;
  expected.id = 7;
  expected.tube = "1.0";
  expected.state = JobState::delayed;
  expected.priority = 3;
  expected.delay_seconds = 41;
  expected.ttr_seconds = 9;
  expected.age_seconds = 5;
  expected.reserves = 1;
  expected.timeouts = 2;
  expected.releases = 3;
  expected.buries = 4;
  expected.kicks = 5;
  CHECK(as_json(*record) == as_json(expected));
}

TEST_CASE("stats-job has the tags as a put writes them") {
  const auto tags = [](const char* lines) {
    return record_of(
               client::StatsBlock(std::string("id: 7\ntube: t\nstate: delayed\nttr: 9\n") + lines))
        ->tags;
  };
  CHECK(tags("") == "");
  CHECK(tags("idempotency-key: \"k\"\nidempotency-ttl: 0\n") == "idp:k");
  CHECK(tags("max-attempts: 3\n") == "max:3");
  CHECK(tags("max-attempts: 0\n") == "max:0");
  CHECK(tags("ttl: 0\n") == "ttl:0");
  CHECK(tags("concurrency-key: \"k\"\nconcurrency-limit: 1\n") == "con:k");
  CHECK(tags("idempotency-key: \"k\"\nidempotency-ttl: 300\nmax-attempts: 5\ndead: \"1.0\"\n"
             "ttl: 60\ngroup: \"g\"\nafter-group: \"h\"\nconcurrency-key: \"c\"\n"
             "concurrency-limit: 2\ndead-from: \"t\"\ndead-reason: attempts\n") ==
        "idp:k:300 max:5:1.0 ttl:60 grp:g aft:h con:c:2");
  // The format of tuber for a job without tags.
  CHECK(tags("idempotency-key: \nidempotency-ttl: 0\ngroup: \nafter-group: \nconcurrency-key: \n"
             "concurrency-limit: 0\n") == "");
}

TEST_CASE("only a delayed job waits for a group") {
  const auto record = [](std::string_view state, int left, std::string_view lines) {
    return *record_of(client::StatsBlock(fmt::format(
        "id: 7\ntube: t\nstate: {}\ntime-left: {}\ngroup: \"g\"\n{}", state, left, lines)));
  };
  const std::string after = "after-group: \"h\"\n";
  for (const char* state : {"ready", "reserved", "buried"}) {
    CHECK(record(state, 0, after).tags == "grp:g");
    CHECK_FALSE(may_be_held(record(state, 0, after)));
  }
  CHECK(record("delayed", 0, after).tags == "grp:g aft:h");
  CHECK(may_be_held(record("delayed", 0, after)));
  CHECK_FALSE(may_be_held(record("delayed", 2, after)));
  CHECK_FALSE(may_be_held(record("delayed", 0, "")));
}

TEST_CASE("only a delayed job has a delay, of at least a second") {
  const auto delay = [](const char* state, const char* left) {
    return record_of(client::StatsBlock(std::string("id: 7\ntube: t\nstate: ") + state +
                                        "\ndelay: 60\ntime-left: " + left + "\n"))
        ->delay_seconds;
  };
  CHECK(delay("delayed", "0") == 1);
  CHECK(delay("delayed", "4294967296") == UINT32_MAX);
  CHECK(delay("ready", "0") == 0);
  CHECK(delay("reserved", "30") == 0);
  CHECK(delay("buried", "30") == 0);
}

TEST_CASE("other stats do not describe a job") {
  CHECK_FALSE(record_of(client::StatsBlock()));
  CHECK_FALSE(record_of(client::StatsBlock("---\nid: 0123456789abcdef\nversion: 1.12\n")));
  CHECK_FALSE(record_of(client::StatsBlock("---\nid: 7\ntube: t\nstate: lost\n")));
}

}  // namespace tubed::tubectl
