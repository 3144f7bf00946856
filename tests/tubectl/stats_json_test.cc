#include "tubectl/stats_json.h"

#include <doctest/doctest.h>

namespace tubed::tubectl {

TEST_CASE("numbers and truth values are no text, and text that looks like a number is none") {
  const client::StatsBlock stats(
      "---\n"
      "cmd-put: 18446744073709551615\n"
      "rusage-utime: 0.25\n"
      "draining: false\n"
      "readonly: true\n"
      "version: \"1.12\"\n"
      "id: 1234567890123456\n"
      "hostname: 10\n"
      "name: 7\n"
      "pid: \n"
      "odd: 1e5\n"
      "more: 99999999999999999999\n");
  CHECK(to_line(stats_json(stats)) ==
        R"({"cmd-put":18446744073709551615,"rusage-utime":0.25,"draining":false,"readonly":true,)"
        R"("version":"1.12","id":"1234567890123456","hostname":"10","name":"7","pid":"",)"
        R"("odd":"1e5","more":1e+20})");
}

TEST_CASE("a job has all keys, also those that the server does not tell") {
  const client::StatsBlock job("id: 5\ntube: 12\nstate: ready\npri: 7\ntime-left: 3\nkicks: 2\n");
  CHECK(to_line(job_json(job)) ==
        R"({"id":5,"tube":"12","state":"ready","priority":7,"age":0,"delay":0,"ttr":0,)"
        R"("time_left":3,"reserves":0,"timeouts":0,"releases":0,"buries":0,"kicks":2})");
}

TEST_CASE("lines have their values one below the other") {
  CHECK(aligned_lines({{"id", 5}, {"time_left", 10}, {"tube", "mail"}}) ==
        "id         5\n"
        "time_left  10\n"
        "tube       mail\n");
  CHECK(aligned_lines(Json::object()) == "");
}

}  // namespace tubed::tubectl
