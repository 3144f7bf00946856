// Each counter of stats against what was done.
#include "stats/stats.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>

#include <doctest/doctest.h>

#include "facts/policy.h"
#include "protocol/text_keys.h"
#include "tests/commands/talk.h"
#include "tests/stats/cluster.h"

using namespace tubed;
using namespace tubed::stats;
using commands::Conversation;
using commands::Service;
using commands::Talk;

namespace {

using Values = std::map<std::string, std::string>;

Values values_of(const std::string& reply) {
  Values values;
  std::istringstream lines(reply);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) values[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return values;
}

Values stats_of(Conversation& client, const std::string& command = "stats") {
  return values_of(Talk::exchange(client, command + "\r\n"));
}

}  // namespace

TEST_CASE("stats-tube-times shows no bucket for a tube without a metrics record of its own") {
  Talk talk({.tubes_with_metrics = 1});  // of the tube default
  auto client = talk.connect();
  Talk::exchange(*client, "use t\r\n");
  CHECK(Talk::exchange(*client, "stats-tube-times t\r\n") ==
        "OK 40\r\n---\n- next 0\n- seconds queue processing\n\r\n");
  const std::string reply = Talk::exchange(*client, "stats-tube-times default\r\n");
  CHECK(std::count(reply.begin(), reply.end(), '\n') == 14);
}

TEST_CASE("new lines come last, before the lines of a cluster") {
  Talk talk;
  auto client = talk.connect();
  CHECK(Talk::exchange(*client, "stats\r\n").ends_with("\njournal-full: false\n\r\n"));
  const ClusterState cluster = leader_of_three();
  talk.host.cluster_state = &cluster;
  const std::string reply = Talk::exchange(*client, "stats\r\n");
  CHECK(reply.find("\njournal-full: false\ncluster-name: ") != std::string::npos);
}

TEST_CASE("every command counts in its own line and in no other") {
  const std::map<std::string, std::string> lines = {
      {"put", "put 0 0 60 1\r\na\r\n"},
      {"peek", "peek 99\r\n"},
      {"peek-ready", "peek-ready\r\n"},
      {"peek-delayed", "peek-delayed\r\n"},
      {"peek-buried", "peek-buried\r\n"},
      {"reserve", "reserve\r\n"},
      {"reserve-with-timeout", "reserve-with-timeout 0\r\n"},
      {"delete", "delete 99\r\n"},
      {"release", "release 99 0 0\r\n"},
      {"use", "use default\r\n"},
      {"watch", "watch default\r\n"},
      {"ignore", "ignore other\r\n"},
      {"bury", "bury 99 0\r\n"},
      {"kick", "kick 1\r\n"},
      {"touch", "touch 99\r\n"},
      {"stats", "stats\r\n"},
      {"stats-job", "stats-job 99\r\n"},
      {"stats-tube", "stats-tube default\r\n"},
      {"list-tubes", "list-tubes\r\n"},
      {"list-tube-used", "list-tube-used\r\n"},
      {"list-tubes-watched", "list-tubes-watched\r\n"},
      {"pause-tube", "pause-tube default 0\r\n"},
      {"reserve-job", "reserve-job 99\r\n"},
      {"kick-job", "kick-job 99\r\n"},
      {"quit", "quit\r\n"},
      {"capabilities", "capabilities\r\n"},
      {"drain", "drain\r\n"},
      {"undrain", "undrain\r\n"},
      {"flush-tube", "flush-tube default\r\n"},
      {"flush-buried", "flush-buried default\r\n"},
      {"truncate", "truncate default\r\n"},
      {"list-jobs", "list-jobs default all\r\n"},
      {"peek-reserved", "peek-reserved\r\n"},
      {"kick-tube", "kick-tube default 1\r\n"},
      {"put-in-tube", "put-in-tube default 0 0 60 1\r\nx\r\n"},
      {"set-caps", "set-caps 0\r\n"},
      {"reserve-batch", "reserve-batch 1\r\n"},
      {"delete-batch", "delete-batch 99\r\n"},
      {"touch-all", "touch-all\r\n"},
      {"reserve-with-abort", "reserve-with-abort\r\n"},
      {"reserve-mode", "reserve-mode fifo\r\n"},
      {"move-job", "move-job 99 t\r\n"},
      {"move-jobs", "move-jobs default ready default\r\n"},
      {"reprioritize", "reprioritize 99 1\r\n"},
      {"delete-force", "delete-force 99\r\n"},
      {"tube-policy", "tube-policy default\r\n"},
      {"wait", "wait 0 99\r\n"},
      {"stats-group", "stats-group g\r\n"},
      {"stats-tubes", "stats-tubes\r\n"},
      {"auth", "auth t\r\n"},
      {"list-clients", "list-clients\r\n"},
      {"stats-tube-times", "stats-tube-times default\r\n"},
      {"reload", "reload\r\n"},
  };
  CHECK(lines.size() == commands::kCommandCount);
  for (const auto& entry : lines) {
    const std::string& name = entry.first;
    const std::string& line = entry.second;
    Talk talk;
    talk.host.answer_to_token = [](std::string_view) -> commands::Authentication {
      return commands::Granted{};
    };
    auto client = std::make_unique<commands::Conversation>(
        talk.service, commands::Admission{.takes_tokens = name == "auth"});
    auto watcher = talk.connect();
    if (name == "reserve") Talk::exchange(*watcher, "put 0 0 60 1\r\nz\r\n");
    const Values before = stats_of(*watcher);
    for (int i = 0; i < 3; ++i) {
      if (i == 0 || (name != "reserve" && name != "quit")) Talk::exchange(*client, line);
    }
    const Values after = stats_of(*watcher);
    for (const commands::Command& command : commands::command_table()) {
      const std::string key = "cmd-" + std::string(command.name);
      long expected = command.name == name ? (name == "reserve" || name == "quit" ? 1 : 3) : 0;
      if (command.name == "delete" && name == "delete-batch") expected = 3;  // one id each
      if (command.name == "stats") ++expected;                               // the look itself
      CAPTURE(name);
      CAPTURE(key);
      CHECK(std::stol(after.at(key)) - std::stol(before.at(key)) == expected);
    }
  }
}

TEST_CASE("the server's lines agree with the state") {
  Talk talk({.job_bytes = 1234, .job_memory_bytes = 1 << 20});
  auto producer = talk.connect();
  auto worker = talk.connect();
  auto waiting = talk.connect();
  auto watcher = talk.connect();
  Talk::exchange(*producer,
                 "use t\r\nput 1023 0 60 1\r\na\r\nput 1024 0 60 1\r\nb\r\n"
                 "put 0 9 60 1\r\nc\r\nput 0 0 1 1\r\nd\r\nput 0 0 60 1\r\ne\r\n");
  Talk::exchange(*worker, "watch t\r\nreserve\r\nreserve\r\nbury 5 0\r\n");
  waiting->receive("watch u\r\nreserve\r\n");
  talk.advance(std::chrono::milliseconds(500));
  Values values = stats_of(*watcher);
  CHECK(values.at("current-jobs-urgent") == "1");
  CHECK(values.at("current-jobs-ready") == "2");
  CHECK(values.at("current-jobs-reserved") == "1");
  CHECK(values.at("current-jobs-delayed") == "1");
  CHECK(values.at("current-jobs-buried") == "1");
  CHECK(values.at("total-jobs") == "5");
  CHECK(values.at("max-job-size") == "1234");
  CHECK(values.at("current-tubes") == "3");
  CHECK(values.at("current-connections") == "4");
  CHECK(values.at("current-producers") == "1");
  CHECK(values.at("current-workers") == "2");
  CHECK(values.at("current-waiting") == "1");
  CHECK(values.at("total-connections") == "4");
  CHECK(values.at("job-timeouts") == "0");
  CHECK(values.at("uptime") == "0");
  CHECK(values.at("pid") == "7");
  CHECK(values.at("rusage-utime") == "1.500000");
  CHECK(values.at("rusage-stime") == "0.000020");
  CHECK(values.at("draining") == "false");
  CHECK(values.at("id") == "0123456789abcdef");
  CHECK(values.at("hostname") == "host");
  CHECK(values.at("os") == "\"#1\"");
  CHECK(values.at("platform") == "x86_64");
  CHECK(values.at("current-watches") == "6");
  CHECK(values.at("max-job-memory") == "1048576");
  CHECK(std::stoul(values.at("job-memory")) == 5 * engine::JobMemory::cost_of(1));

  talk.advance(std::chrono::seconds(1));
  talk.service.set_draining(true);
  talk.service.counters().count(Counter::refused_connection);
  talk.service.counters().add_received_bytes(40);
  talk.service.counters().add_sent_bytes(50);
  worker.reset();
  values = stats_of(*watcher);
  CHECK(values.at("job-timeouts") == "1");
  CHECK(values.at("current-jobs-reserved") == "0");
  CHECK(values.at("current-connections") == "3");
  CHECK(values.at("current-workers") == "1");
  CHECK(values.at("total-connections") == "4");
  CHECK(values.at("uptime") == "1");
  CHECK(values.at("draining") == "true");
  CHECK(values.at("refused-connections") == "1");
  CHECK(values.at("received-bytes") == "40");
  CHECK(values.at("sent-bytes") == "50");
}

TEST_CASE("the tube's and the job's lines agree with the state") {
  Talk talk;
  auto client = talk.connect();
  Talk::exchange(*client,
                 "use t\r\nwatch t\r\nput 5 0 60 3\r\nabc\r\nput 6 7 60 1\r\nd\r\nreserve\r\n"
                 "release 1 9 0\r\nreserve\r\nbury 1 8\r\nkick-job 1\r\nreserve\r\n"
                 "pause-tube t 100\r\npause-tube t 50\r\n");
  talk.advance(std::chrono::milliseconds(2500));
  Values tube = stats_of(*client, "stats-tube t");
  CHECK(tube.at("name") == "t");
  CHECK(tube.at("current-jobs-reserved") == "1");
  CHECK(tube.at("current-jobs-delayed") == "1");
  CHECK(tube.at("total-jobs") == "2");
  CHECK(tube.at("current-using") == "1");
  CHECK(tube.at("current-watching") == "1");
  CHECK(tube.at("cmd-pause-tube") == "2");
  CHECK(tube.at("pause") == "50");
  CHECK(tube.at("pause-time-left") == "47");
  Values job = stats_of(*client, "stats-job 1");
  CHECK(job.at("tube") == "t");
  CHECK(job.at("state") == "reserved");
  CHECK(job.at("pri") == "8");
  CHECK(job.at("age") == "2");
  CHECK(job.at("delay") == "0");
  CHECK(job.at("ttr") == "60");
  CHECK(job.at("time-left") == "57");
  CHECK(job.at("reserves") == "3");
  CHECK(job.at("releases") == "1");
  CHECK(job.at("buries") == "1");
  CHECK(job.at("kicks") == "1");
  CHECK(job.at("timeouts") == "0");
  Talk::exchange(*client, "delete 1\r\n");
  CHECK(stats_of(*client, "stats-tube t").at("cmd-delete") == "1");
  talk.advance(std::chrono::seconds(50));
  tube = stats_of(*client, "stats-tube t");
  CHECK(tube.at("pause") == "0");
  CHECK(tube.at("pause-time-left") == "0");
}

TEST_CASE("the tube's own lines agree with the state") {
  Limits limits;
  limits.tubes_with_metrics = 10;
  Talk talk(limits);
  auto client = talk.connect();
  Talk::exchange(*client, "use t\r\nwatch t\r\nput 5 0 60 1\r\na\r\n");
  talk.advance(std::chrono::milliseconds(5500));
  Talk::exchange(*client, "put 0 0 2 1\r\nb\r\nput 0 7 60 1\r\nc\r\n");
  talk.advance(std::chrono::milliseconds(1500));
  Values tube = stats_of(*client, "stats-tube t");
  CHECK(tube.at("total-reserves") == "0");
  CHECK(tube.at("oldest-ready-id") == "2");
  CHECK(tube.at("oldest-ready-age") == "7");
  CHECK(tube.at("oldest-delayed-age") == "1");
  CHECK(tube.at("oldest-buried-age") == "0");
  CHECK(tube.at("queue-time-p50") == "0.000000");
  Talk::exchange(*client, "reserve\r\n");
  talk.advance(std::chrono::seconds(2));
  Talk::exchange(*client, "reserve\r\ndelete 2\r\nreserve\r\nbury 1 5\r\n");
  tube = stats_of(*client, "stats-tube t");
  CHECK(tube.at("total-reserves") == "3");
  CHECK(tube.at("total-timeouts") == "1");
  CHECK(tube.at("total-buries") == "1");
  CHECK(tube.at("oldest-ready-id") == "0");
  CHECK(tube.at("oldest-ready-age") == "0");
  CHECK(tube.at("oldest-buried-age") == "9");
  // The jobs waited 1.5 and 9 seconds, and one was held for less than a microsecond.
  CHECK(tube.at("queue-time-p50") == "1.450000");
  CHECK(tube.at("queue-time-p99") == "8.750000");
  CHECK(tube.at("processing-time-p50") == "0.000000");
  CHECK(tube.at("processing-time-p95") == "0.000000");
}

TEST_CASE("the lines of a cluster are last, and a server without a cluster lacks them") {
  Talk talk;
  auto client = talk.connect();
  CHECK(Talk::exchange(*client, "stats\r\n").find("cluster") == std::string::npos);
  const ClusterState leader = leader_of_three();
  talk.host.cluster_state = &leader;
  CHECK(Talk::exchange(*client, "stats\r\n")
            .ends_with("\ncluster-name: a\ncluster-role: leader\ncluster-leader: a\n"
                       "cluster-term: 7\ncluster-commit-index: 1000\n"
                       "cluster-applied-index: 999\ncluster-held-over: 3\n"
                       "cluster-nodes: \"a:leader:1001:0 b:voter:990:12 c:standby:-:-\"\n\r\n"));
  const ClusterState waiting{.name = "d"};
  talk.host.cluster_state = &waiting;
  Values values = stats_of(*client);
  CHECK(values.at("cluster-role") == "waiting");
  CHECK(values.at("cluster-leader") == "\"\"");
  CHECK(values.at("cluster-nodes") == "\"\"");
}

TEST_CASE("every line of the reference is a line of the reply, in the same order") {
  Talk talk;
  const ClusterState cluster = leader_of_three();
  talk.host.cluster_state = &cluster;
  auto client = talk.connect();
  Talk::exchange(*client,
                 "put 0 0 60 1 idp:k con:k grp:g aft:h max:1:bury ttl:60\r\na\r\nreserve-job "
                 "1\r\nrelease 1 0 0\r\n");
  const auto keys_of = [&](const std::string& command) {
    std::vector<std::string> keys;
    std::istringstream lines(Talk::exchange(*client, command + "\r\n"));
    for (std::string line; std::getline(lines, line);) {
      if (const auto colon = line.find(": "); colon != std::string::npos) {
        keys.push_back(line.substr(0, colon));
      }
    }
    return keys;
  };
  const auto check = [&](const std::string& command, const std::vector<StatsText>& texts) {
    std::vector<std::string> expected;
    for (const StatsText& text : texts) expected.push_back(text.key);
    CHECK(keys_of(command) == expected);
  };
  check("stats", server_stats_texts(commands::command_counts()));
  check("stats-tube default", tube_stats_texts());
  check("stats-job 1", job_stats_texts());
}

namespace {

// A row with a text is one of the texts that clients know, and no other row is.
template <class State>
void check_types(Rows<State> rows) {
  for (const Row<State>& row : rows) {
    if (row.key.empty() || row.plain != nullptr) continue;
    CAPTURE(row.key);
    const bool has_text = row.text != nullptr || row.composed != nullptr;
    const bool is_id_of_job = std::is_same_v<State, StoredJob> && row.key == "id";
    CHECK(protocol::is_text_member(row.key) == (has_text || is_id_of_job));
  }
}

}  // namespace

TEST_CASE("clients know which lines are texts") {
  check_types(job_count_rows());
  check_types(beanstalkd_rows());
  check_types(own_rows());
  check_types(newest_rows());
  check_types(cluster_rows());
  check_types(tube_rows());
  check_types(job_rows());
  for (const PolicyKeyRow& key : policy_keys()) {
    CAPTURE(key.name);
    CHECK(protocol::is_text_member(key.name) == key.is_place);
  }
}
