// The page of metrics: its values against what was done, its shape, and its pieces.
#include "stats/metrics.h"

#include <map>
#include <set>
#include <sstream>
#include <string>

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "tests/commands/talk.h"
#include "tests/stats/cluster.h"

using namespace tubed;
using namespace tubed::stats;
using commands::Conversation;
using commands::Service;
using commands::Talk;
using namespace std::chrono_literals;

namespace {

Limits with_metrics(std::uint32_t tubes) {
  Limits limits;
  limits.tubes_with_metrics = tubes;
  return limits;
}

std::string page_of(const Service& service, std::size_t bytes = 4096) {
  MetricsPage page(service.server_state(), service.engine());
  std::string text;
  for (std::size_t before = 0; page.append_piece(service.now(), bytes, text);
       before = text.size()) {
    CHECK(text.size() - before <= bytes);
  }
  return text;
}

// The samples of a page by name and labels; fails on anything that Prometheus would not take.
class Samples {
 public:
  explicit Samples(const std::string& page) {
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) read(line);
    CHECK(page.ends_with('\n'));
    for (const auto& [name, last] : last_bucket_) check_histogram(name, last);
  }

  double at(const std::string& series) const {
    CAPTURE(series);
    REQUIRE(values_.contains(series));
    return std::stod(values_.at(series));
  }
  const std::string& text_at(const std::string& series) const { return values_.at(series); }
  bool has(const std::string& series) const { return values_.contains(series); }
  bool has_family(const std::string& family) const { return types_.contains(family); }
  const std::map<std::string, std::string>& types() const { return types_; }

 private:
  void read(const std::string& line) {
    CAPTURE(line);
    if (line.starts_with("# HELP ")) {
      family_ = line.substr(7, line.find(' ', 7) - 7);
      CHECK(families_.insert(family_).second);  // the lines of a family are side by side
      CHECK(line.size() > 8 + family_.size());  // the help is not empty
      return;
    }
    if (line.starts_with("# TYPE ")) {
      CHECK(line.starts_with("# TYPE " + family_ + " "));
      types_[family_] = line.substr(8 + family_.size());
      return;
    }
    const std::size_t space = line.rfind(' ');
    REQUIRE(space != std::string::npos);
    const std::string series = line.substr(0, space);
    std::size_t read = 0;
    const double value = std::stod(line.substr(space + 1), &read);
    CHECK(read == line.size() - space - 1);
    const std::string name = series.substr(0, series.find('{'));
    const bool of_histogram = types_[family_] == "histogram";
    if (of_histogram) {
      const std::string part = name.substr(family_.size());
      CHECK((part == "_bucket" || part == "_sum" || part == "_count"));
    }
    CHECK((of_histogram ? name.starts_with(family_) : name == family_));
    CHECK(values_.emplace(series, line.substr(space + 1)).second);  // each series appears once
    if (of_histogram && name.ends_with("_bucket")) read_bucket(series, value);
  }

  // Cumulative: within a histogram they never fall.
  void read_bucket(const std::string& series, double value) {
    const std::size_t le = series.rfind("le=\"");
    std::string labels = series.substr(series.find('{') + 1, le - series.find('{') - 1);
    if (labels.ends_with(',')) labels.pop_back();
    auto& last = last_bucket_[family_ + "{" + labels + "}"];
    CHECK(value >= last.second);
    last = {series.substr(le), value};
  }

  void check_histogram(const std::string& name, const std::pair<std::string, double>& last) {
    CHECK(last.first == "le=\"+Inf\"}");
    const std::size_t brace = name.find('{');
    std::string labels = name.substr(brace);
    if (labels == "{}") labels.clear();
    CHECK(at(name.substr(0, brace) + "_count" + labels) == last.second);
    CHECK(has(name.substr(0, brace) + "_sum" + labels));
  }

  std::string family_;
  std::set<std::string> families_;
  std::map<std::string, std::string> types_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::pair<std::string, double>> last_bucket_;
};

class FakeLog final : public NullLog {
 public:
  bool has_room_for(std::size_t) const override { return has_room; }
  LogStats stats() const override {
    return {.on_disk = true,
            .oldest_segment = 3,
            .current_segment = 9,
            .records_migrated = 11,
            .records_written = 12,
            .segment_bytes = 13,
            .file_bytes = 14,
            .live_bytes = 15,
            .max_file_bytes = 16,
            .commits = 2,
            .commit_times = times.counts(),
            .commit_records = records.counts(),
            .full = true};
  }
  std::uint64_t segment_of(JobId) const override { return 3; }

  ShortTimes times;
  Counts records;
  bool has_room = true;
};

}  // namespace

TEST_CASE("the server's metrics agree with the state") {
  Limits limits = with_metrics(10);
  limits.job_memory_bytes = 1 << 20;
  Talk talk(limits);
  auto producer = talk.connect();
  auto worker = talk.connect();
  auto waiting = talk.connect();
  Talk::exchange(*producer,
                 "use t\r\nput 1023 0 60 1\r\na\r\nput 1024 0 60 1\r\nb\r\n"
                 "put 0 9 60 1\r\nc\r\nput 0 0 1 1\r\nd\r\nput 0 0 60 1\r\ne\r\n");
  Talk::exchange(*worker, "watch t\r\nreserve\r\nreserve\r\nbury 5 0\r\n");
  waiting->receive("watch u\r\nreserve\r\n");
  talk.service.counters().add_received_bytes(70);
  talk.service.counters().add_received_bytes(7);
  talk.service.counters().add_sent_bytes(1234);
  talk.service.counters().add_tick(150us);
  talk.service.counters().add_tick(3ms);
  talk.service.counters().count(Counter::refused_connection, 4);
  const Samples samples(page_of(talk.service));
  CHECK(samples.at(R"(tubed_jobs{state="ready"})") == 2);
  CHECK(samples.at(R"(tubed_jobs{state="reserved"})") == 1);
  CHECK(samples.at(R"(tubed_jobs{state="delayed"})") == 1);
  CHECK(samples.at(R"(tubed_jobs{state="buried"})") == 1);
  CHECK(samples.at("tubed_urgent_jobs") == 1);
  CHECK(samples.at("tubed_jobs_put_total") == 5);
  CHECK(samples.at("tubed_job_timeouts_total") == 0);
  CHECK(samples.at(R"(tubed_commands_total{command="put"})") == 5);
  CHECK(samples.at(R"(tubed_commands_total{command="reserve"})") == 3);
  CHECK(samples.at(R"(tubed_commands_total{command="reserve-job"})") == 0);
  for (const commands::Command& command : commands::command_table()) {
    CHECK(samples.has("tubed_commands_total{command=\"" + std::string(command.name) + "\"}"));
  }
  CHECK(samples.at("tubed_tubes") == 3);
  CHECK(samples.at("tubed_connections") == 3);
  CHECK(samples.at("tubed_producers") == 1);
  CHECK(samples.at("tubed_workers") == 2);
  CHECK(samples.at("tubed_waiting_connections") == 1);
  CHECK(samples.at("tubed_connections_total") == 3);
  CHECK(samples.at("tubed_refused_connections_total") == 4);
  CHECK(samples.at("tubed_received_bytes_total") == 77);
  CHECK(samples.at("tubed_sent_bytes_total") == 1234);
  CHECK(samples.at("tubed_job_memory_bytes") ==
        static_cast<double>(5 * engine::JobMemory::cost_of(1)));
  CHECK(samples.at("tubed_job_memory_limit_bytes") == 1 << 20);
  CHECK(samples.at("tubed_job_size_limit_bytes") == 65'535);
  CHECK(samples.at("tubed_watches") == 5);
  CHECK(samples.at("tubed_draining") == 0);
  CHECK(samples.text_at(R"(tubed_cpu_seconds_total{mode="user"})") == "1.5");
  CHECK(samples.text_at(R"(tubed_cpu_seconds_total{mode="system"})") == "0.00002");
  CHECK(samples.text_at("tubed_start_time_seconds") == "1700000000.25");
  CHECK(samples.at("tubed_resident_memory_bytes") == 12'345'678);
  CHECK(samples.at("tubed_open_descriptors") == 17);
  CHECK(samples.at("tubed_descriptor_limit") == 1024);
  CHECK(samples.at(R"(tubed_loop_turn_seconds_bucket{le="0.0001"})") == 0);
  CHECK(samples.at(R"(tubed_loop_turn_seconds_bucket{le="0.0002"})") == 1);
  CHECK(samples.at(R"(tubed_loop_turn_seconds_bucket{le="0.005"})") == 2);
  CHECK(samples.text_at("tubed_loop_turn_seconds_sum") == "0.00315");
  CHECK_FALSE(samples.has_family("tubed_journal_bytes"));
  CHECK_FALSE(samples.has_family("tubed_recovery_seconds"));
  const std::string page = page_of(talk.service);
  CHECK(page.find("id=\"0123456789abcdef\",hostname=\"host\",os=\"#1\",platform=\"x86_64\"} 1\n") !=
        std::string::npos);
  CHECK(page.find("tubed_info{version=\"") != std::string::npos);

  talk.service.set_draining(true);
  talk.advance(1s);
  const Samples later(page_of(talk.service));
  CHECK(later.at("tubed_draining") == 1);
  CHECK(later.at("tubed_job_timeouts_total") == 1);
  CHECK(later.at(R"(tubed_tube_job_timeouts_total{tube="t"})") == 1);
}

TEST_CASE("puts that are refused are counted by reason") {
  Limits limits;
  limits.job_bytes = 1000;
  limits.job_memory_bytes = engine::JobMemory::cost_of(1000);
  Talk talk(limits);
  FakeLog log;
  talk.service.set_log(log);
  talk.service.counters().set_recovery_time(1500ms);
  auto client = talk.connect();
  const auto refused = [&](const std::string& reason) {
    return Samples(page_of(talk.service)).at("tubed_refused_puts_total{reason=\"" + reason + "\"}");
  };
  for (const char* reason : {"draining", "job_too_big", "job_memory", "journal_full"}) {
    CHECK(refused(reason) == 0);
  }
  CHECK(Talk::exchange(*client, "put 0 0 60 1001\r\n" + std::string(1001, 'x') + "\r\n") ==
        "JOB_TOO_BIG\r\n");
  CHECK(refused("job_too_big") == 1);
  const std::string large = "put 0 0 60 1000\r\n" + std::string(1000, 'x') + "\r\n";
  CHECK(Talk::exchange(*client, large + large + large) ==
        "INSERTED 1\r\nOUT_OF_MEMORY\r\nOUT_OF_MEMORY\r\n");
  CHECK(refused("job_memory") == 2);
  CHECK(Talk::exchange(*client, "delete 1\r\n") == "DELETED\r\n");
  const std::string line = "put 0 0 60 1\r\n";
  log.has_room = false;
  CHECK(Talk::exchange(*client, line + "x\r\n") == "OUT_OF_MEMORY\r\n");
  log.has_room = true;
  CHECK(Talk::exchange(*client, line).empty());
  log.has_room = false;  // while the body arrives
  CHECK(Talk::exchange(*client, "x\r\n") == "OUT_OF_MEMORY\r\n");
  CHECK(refused("journal_full") == 2);
  log.has_room = true;
  talk.service.set_draining(true);
  CHECK(Talk::exchange(*client, line + "x\r\n") == "DRAINING\r\n");
  talk.service.set_draining(false);
  CHECK(Talk::exchange(*client, line).empty());
  talk.service.set_draining(true);
  CHECK(Talk::exchange(*client, "x\r\n") == "DRAINING\r\n");
  CHECK(refused("draining") == 2);
  CHECK(refused("job_too_big") == 1);
  CHECK(refused("job_memory") == 2);
}

TEST_CASE("a refused tube is counted by its command") {
  Limits limits;
  limits.tubes = 2;
  Talk talk(limits);
  auto client = talk.connect();
  CHECK(Talk::exchange(*client, "use a\r\nwatch b\r\nwatch c\r\nuse b\r\n") ==
        "USING a\r\nOUT_OF_MEMORY\r\nOUT_OF_MEMORY\r\nOUT_OF_MEMORY\r\n");
  const Samples samples(page_of(talk.service));
  CHECK(samples.at(R"(tubed_refused_tubes_total{command="use"})") == 1);
  CHECK(samples.at(R"(tubed_refused_tubes_total{command="watch"})") == 2);
}

TEST_CASE("malformed commands are counted by reply") {
  Talk talk;
  auto client = talk.connect();
  CHECK(Talk::exchange(*client, "put 0 0 60 1 \r\nx\r\nkick one\r\n" + std::string(300, 'x') +
                                    "\r\nputt\r\ndelete\r\nput 0 0 60 1\r\nxyz\r\n") ==
        "BAD_FORMAT\r\nBAD_FORMAT\r\nBAD_FORMAT\r\nUNKNOWN_COMMAND\r\nUNKNOWN_COMMAND\r\n"
        "EXPECTED_CRLF\r\n");
  const Samples samples(page_of(talk.service));
  CHECK(samples.at(R"(tubed_malformed_commands_total{reply="BAD_FORMAT"})") == 3);
  CHECK(samples.at(R"(tubed_malformed_commands_total{reply="UNKNOWN_COMMAND"})") == 2);
  CHECK(samples.at(R"(tubed_malformed_commands_total{reply="EXPECTED_CRLF"})") == 1);
}

TEST_CASE("the journal's metrics exist with a journal") {
  Talk talk;
  FakeLog log;
  log.times.add(3ms);
  log.times.add(2s);
  log.records.add(1);
  log.records.add(70);
  talk.service.set_log(log);
  talk.service.counters().set_recovery_time(1500ms);
  const Samples samples(page_of(talk.service));
  CHECK(samples.at("tubed_journal_oldest_segment") == 3);
  CHECK(samples.at("tubed_journal_current_segment") == 9);
  CHECK(samples.at("tubed_journal_records_migrated_total") == 11);
  CHECK(samples.at("tubed_journal_records_written_total") == 12);
  CHECK(samples.at("tubed_journal_segment_size_bytes") == 13);
  CHECK(samples.at("tubed_journal_bytes") == 14);
  CHECK(samples.at("tubed_journal_live_bytes") == 15);
  CHECK(samples.at("tubed_journal_limit_bytes") == 16);
  CHECK(samples.at("tubed_journal_commits_total") == 2);
  CHECK(samples.at("tubed_journal_full") == 1);
  CHECK(samples.text_at("tubed_recovery_seconds") == "1.5");
  CHECK(samples.at(R"(tubed_journal_commit_seconds_bucket{le="0.002"})") == 0);
  CHECK(samples.at(R"(tubed_journal_commit_seconds_bucket{le="0.005"})") == 1);
  CHECK(samples.at(R"(tubed_journal_commit_seconds_bucket{le="1"})") == 1);
  CHECK(samples.at("tubed_journal_commit_seconds_count") == 2);
  CHECK(samples.at(R"(tubed_journal_commit_records_bucket{le="1"})") == 1);
  CHECK(samples.at(R"(tubed_journal_commit_records_bucket{le="100"})") == 2);
  CHECK(samples.text_at("tubed_journal_commit_records_sum") == "71");
}

TEST_CASE("a tube's metrics count its changes, and the overflow is summed up") {
  Talk talk(with_metrics(2));  // "default" and the first tube
  auto a = talk.connect();
  auto b = talk.connect();
  auto c = talk.connect();
  auto waiting = talk.connect();
  Talk::exchange(*a, "use a\r\nwatch a\r\nput 0 0 60 1\r\nx\r\nput 0 0 60 1\r\nx\r\n");
  talk.advance(20ms);
  Talk::exchange(*a, "reserve\r\nput 5 0 60 1\r\nx\r\nput 0 5 60 1\r\nx\r\n");
  talk.advance(2s);
  Talk::exchange(*a, "delete 1\r\nreserve\r\nbury 2 0\r\npause-tube a 60\r\n");
  Talk::exchange(*b, "use b\r\nput 0 0 60 1\r\nx\r\n");
  talk.advance(1s);
  Talk::exchange(*c, "use other\r\nput 0 0 60 1\r\nx\r\npause-tube b 9\r\npause-tube other 9\r\n");
  waiting->receive("watch b\r\nreserve\r\n");
  talk.advance(500ms);
  const Samples samples(page_of(talk.service));
  CHECK(samples.at(R"(tubed_tube_jobs{tube="a",state="ready"})") == 1);
  CHECK(samples.at(R"(tubed_tube_jobs{tube="a",state="reserved"})") == 0);
  CHECK(samples.at(R"(tubed_tube_jobs{tube="a",state="delayed"})") == 1);
  CHECK(samples.at(R"(tubed_tube_jobs{tube="a",state="buried"})") == 1);
  CHECK(samples.at(R"(tubed_tube_jobs{tube="other",state="ready"})") == 2);
  CHECK(samples.at(R"(tubed_tube_jobs{tube="default",state="ready"})") == 0);
  CHECK(samples.at(R"(tubed_tube_jobs_put_total{tube="a"})") == 4);
  CHECK(samples.at(R"(tubed_tube_jobs_put_total{tube="other"})") == 2);
  CHECK(samples.at(R"(tubed_tube_jobs_deleted_total{tube="a"})") == 1);
  CHECK(samples.at(R"(tubed_tube_waiting_connections{tube="default"})") == 1);
  CHECK(samples.at(R"(tubed_tube_waiting_connections{tube="other"})") == 1);
  CHECK(samples.at(R"(tubed_tube_paused{tube="a"})") == 1);
  CHECK(samples.at(R"(tubed_tube_paused{tube="other"})") == 2);
  CHECK(samples.text_at(R"(tubed_tube_oldest_ready_job_age_seconds{tube="a"})") == "3.5");
  CHECK(samples.text_at(R"(tubed_tube_oldest_ready_job_age_seconds{tube="other"})") == "1.5");
  CHECK(samples.text_at(R"(tubed_tube_oldest_ready_job_age_seconds{tube="default"})") == "0");
  CHECK(samples.at(R"(tubed_tube_put_to_reserve_seconds_bucket{tube="a",le="0.01"})") == 0);
  CHECK(samples.at(R"(tubed_tube_put_to_reserve_seconds_bucket{tube="a",le="0.1"})") == 1);
  CHECK(samples.at(R"(tubed_tube_put_to_reserve_seconds_count{tube="a"})") == 2);
  CHECK(samples.text_at(R"(tubed_tube_put_to_reserve_seconds_sum{tube="a"})") == "2.04");
  CHECK(samples.at(R"(tubed_tube_reserve_to_delete_seconds_count{tube="a"})") == 1);
  CHECK(samples.text_at(R"(tubed_tube_reserve_to_delete_seconds_sum{tube="a"})") == "2");
  // The jobs waited 0.02 and 2.02 seconds, and a client held one for 2. Shown is the middle of the
  // bucket.
  const auto percentile = [&samples](std::string_view family, std::string_view share) {
    return samples.text_at(fmt::format(
        "tubed_tube_{}_percentile_seconds{{tube=\"a\",percentile=\"{}\"}}", family, share));
  };
  CHECK(percentile("put_to_reserve", "50") == "0.0195");
  CHECK(percentile("put_to_reserve", "95") == "2.1");
  CHECK(percentile("put_to_reserve", "99") == "2.1");
  CHECK(percentile("reserve_to_delete", "50") == "1.95");
  CHECK_FALSE(samples.has(
      R"(tubed_tube_put_to_reserve_percentile_seconds{tube="default",percentile="50"})"));
  CHECK_FALSE(samples.has(R"(tubed_tube_put_to_reserve_seconds_count{tube="other"})"));
  // Gone, but not forgotten.
  Talk::exchange(*a, "pause-tube a 0\r\nuse default\r\nignore a\r\n");
  Talk::exchange(*a, "delete 2\r\ndelete 3\r\ndelete 4\r\n");
  CHECK_FALSE(talk.service.engine().queries().tube_info(talk.service.now(), "a").has_value());
  const Samples gone(page_of(talk.service));
  CHECK(gone.at(R"(tubed_tube_jobs{tube="a",state="ready"})") == 0);
  CHECK(gone.at(R"(tubed_tube_paused{tube="a"})") == 0);
  CHECK(gone.at(R"(tubed_tube_jobs_deleted_total{tube="a"})") == 4);
  talk.advance(10min);
  CHECK_FALSE(Samples(page_of(talk.service)).has(R"(tubed_tube_paused{tube="a"})"));
}

TEST_CASE("pieces of any size give the same page, and each is as long as was asked for") {
  Talk talk(with_metrics(100));
  auto client = talk.connect();
  for (int i = 0; i < 40; ++i) {
    const std::string tube = "tube-" + std::to_string(i);
    Talk::exchange(*client,
                   "use " + tube + "\r\nwatch " + tube + "\r\nput 0 0 60 1\r\nx\r\nreserve\r\n");
  }
  const std::string whole = page_of(talk.service, 1 << 30);
  CHECK(Samples(whole).at(R"(tubed_tube_put_to_reserve_seconds_count{tube="tube-39"})") == 1);
  for (const std::size_t bytes : {1U, 2U, 7U, 64U, 100U, 4096U, 32'768U}) {
    CHECK(page_of(talk.service, bytes) == whole);
    MetricsPage page(talk.service.server_state(), talk.service.engine());
    std::string text;
    while (whole.size() - text.size() >= bytes) {
      const std::size_t before = text.size();
      REQUIRE(page.append_piece(talk.service.now(), bytes, text));
      REQUIRE(text.size() == before + bytes);
    }
  }
  MetricsPage page(talk.service.server_state(), talk.service.engine());
  std::string text;
  while (page.append_piece(talk.service.now(), 1000, text)) {
  }
  CHECK_FALSE(page.append_piece(talk.service.now(), 1000, text));
  CHECK(text == whole);
}

TEST_CASE("tubes without values are skipped, a thousand in one piece") {
  Talk talk(with_metrics(5000));
  auto client = talk.connect();
  for (int i = 0; i < 3500; ++i) {
    Talk::exchange(*client, "watch t" + std::to_string(i) + "\r\n");
  }
  MetricsPage page(talk.service.server_state(), talk.service.engine());
  std::string text;
  int empty_pieces = 0;
  for (std::size_t before = 0; page.append_piece(talk.service.now(), 1U << 20, text);
       before = text.size()) {
    if (text.size() == before) ++empty_pieces;
  }
  // Two families of histograms: each has at least two pieces without a line.
  CHECK(empty_pieces >= 4);
  CHECK(text == page_of(talk.service));
}

TEST_CASE("expired records are skipped, a thousand in one piece") {
  Talk talk(with_metrics(5000));
  {
    auto client = talk.connect();
    for (int i = 0; i < 3500; ++i) {
      Talk::exchange(*client, "watch t" + std::to_string(i) + "\r\n");
    }
  }
  talk.advance(11min);
  MetricsPage page(talk.service.server_state(), talk.service.engine());
  std::string text;
  int pieces = 0;
  while (page.append_piece(talk.service.now(), 1U << 20, text)) ++pieces;
  CHECK(pieces >= 20);
  CHECK(text.find("t1234") == std::string::npos);
}

TEST_CASE("the queue may change between two pieces, and no line appears twice") {
  Talk talk(with_metrics(30));
  auto client = talk.connect();
  std::string text;
  MetricsPage page(talk.service.server_state(), talk.service.engine());
  std::uint64_t state = 1;
  for (int i = 0; page.append_piece(talk.service.now(), 150, text); ++i) {
    REQUIRE(i < 100'000);
    state = state * 6364136223846793005 + 1442695040888963407;
    const std::string tube = "t" + std::to_string((state >> 33) % 50);
    Talk::exchange(*client, "use " + tube + "\r\nput 0 0 60 1\r\nx\r\n");
    if (i % 3 == 0) Talk::exchange(*client, "watch " + tube + "\r\nreserve-with-timeout 0\r\n");
    if (i % 5 == 0) Talk::exchange(*client, "peek-ready\r\nignore " + tube + "\r\n");
    for (int id = i - 20; id < i && id > 0; id += 2) {
      Talk::exchange(*client, "delete " + std::to_string(id) + "\r\n");
    }
    if (i % 7 == 0) talk.advance(1min);
  }
  const Samples samples(text);
  CHECK(samples.has(R"(tubed_tube_jobs_put_total{tube="default"})"));
  CHECK(samples.has(R"(tubed_tube_oldest_ready_job_age_seconds{tube="other"})"));
}

TEST_CASE("the metrics of a cluster exist on its nodes") {
  Talk talk;
  CHECK(page_of(talk.service).find("cluster") == std::string::npos);
  const ClusterState cluster = leader_of_three();
  talk.host.cluster_state = &cluster;
  const Samples samples(page_of(talk.service));
  CHECK(samples.at(R"(tubed_cluster_info{node="a",cluster="00000000deadbeef"})") == 1);
  CHECK(samples.at(R"(tubed_cluster_role{role="leader"})") == 1);
  for (const char* role : {"waiting", "fetching", "standby", "follower", "candidate"})
    CHECK(samples.at(std::string("tubed_cluster_role{role=\"") + role + "\"}") == 0);
  CHECK(samples.at("tubed_cluster_leads") == 1);
  CHECK(samples.at("tubed_cluster_serves") == 0);
  CHECK(samples.at("tubed_cluster_term") == 7);
  CHECK(samples.at("tubed_cluster_commit_index") == 1000);
  CHECK(samples.at("tubed_cluster_applied_index") == 999);
  CHECK(samples.at("tubed_cluster_stored_index") == 1001);
  CHECK(samples.at("tubed_cluster_held_over_jobs") == 3);
  CHECK(samples.at(R"(tubed_cluster_members{kind="voter"})") == 2);
  CHECK(samples.at(R"(tubed_cluster_members{kind="standby"})") == 1);
  CHECK(samples.text_at("tubed_cluster_lease_seconds") == "0.27");
  CHECK(samples.at("tubed_cluster_raft_log_bytes") == 12'345);
  CHECK(samples.at("tubed_cluster_raft_log_limit_bytes") == 67'890);
  CHECK(samples.at("tubed_cluster_raft_log_full") == 1);
  CHECK(samples.at("tubed_cluster_elections_won_total") == 4);
  CHECK(samples.at("tubed_cluster_leaderships_lost_total") == 3);
  CHECK(samples.at("tubed_cluster_leases_lost_total") == 2);
  CHECK(samples.at("tubed_cluster_fetches_total") == 1);
  CHECK(samples.at("tubed_cluster_slow_appends_total") == 5);
  CHECK(samples.at("tubed_cluster_forwarded_clients") == 6);
  CHECK(samples.at(R"(tubed_cluster_node_link_bytes_per_second{node="b"})") == 6'250'000);
  CHECK_FALSE(samples.has(R"(tubed_cluster_node_link_bytes_per_second{node="c"})"));
  CHECK(samples.text_at(R"(tubed_cluster_node_lag_seconds{node="b"})") == "2.2505");
  CHECK_FALSE(samples.has(R"(tubed_cluster_node_lag_seconds{node="a"})"));
  CHECK(samples.at("tubed_cluster_spare_voters") == 0);
  CHECK(samples.at("tubed_cluster_feature_level") == 1);
  CHECK(samples.text_at("tubed_cluster_election_timeout_seconds") == "0.3");
  CHECK(samples.at("tubed_cluster_settings_differ") == 1);
  CHECK(samples.at(R"(tubed_cluster_node_level{node="a"})") == 2);
  CHECK(samples.at(R"(tubed_cluster_node_level{node="b"})") == 1);
  CHECK_FALSE(samples.has(R"(tubed_cluster_node_level{node="c"})"));
  CHECK_FALSE(samples.has(R"(tubed_cluster_node_clock_difference_seconds{node="a"})"));
  CHECK(samples.text_at(R"(tubed_cluster_node_clock_difference_seconds{node="b"})") == "1.5");
  CHECK_FALSE(samples.has(R"(tubed_cluster_node_lag_seconds{node="c"})"));
  CHECK(samples.at(R"(tubed_cluster_node_match_index{node="a"})") == 1001);
  CHECK(samples.at(R"(tubed_cluster_node_match_index{node="b"})") == 990);
  CHECK_FALSE(samples.has(R"(tubed_cluster_node_match_index{node="c"})"));
  CHECK_FALSE(samples.has(R"(tubed_cluster_node_silence_seconds{node="a"})"));
  CHECK(samples.text_at(R"(tubed_cluster_node_silence_seconds{node="b"})") == "0.0125");
}

TEST_CASE("a voter is spare if a majority answers without it") {
  const auto spare = [](std::size_t voters, std::size_t silent, ClusterRole role) {
    ClusterState cluster{.name = "a", .role = role};
    for (std::size_t i = 0; i < voters; ++i) {
      const bool answers = i + silent < voters;
      cluster.nodes.push_back({.name = std::to_string(i),
                               .votes = true,
                               .is_self = i == 0,
                               .silence = answers ? Duration::zero() : std::chrono::seconds(5)});
    }
    cluster.nodes.push_back({.name = "standby", .silence = Duration::zero()});
    return spare_voters(cluster);
  };
  CHECK(spare(1, 0, ClusterRole::leader) == 0);
  CHECK(spare(2, 0, ClusterRole::leader) == 0);
  CHECK(spare(3, 0, ClusterRole::leader) == 1);
  CHECK(spare(3, 1, ClusterRole::leader) == 0);
  CHECK(spare(3, 2, ClusterRole::leader) == 0);
  CHECK(spare(5, 0, ClusterRole::leader) == 2);
  CHECK(spare(5, 2, ClusterRole::leader) == 0);
  CHECK_FALSE(spare(3, 0, ClusterRole::follower));
  Talk talk;
  ClusterState cluster{.name = "b", .role = ClusterRole::follower};
  talk.host.cluster_state = &cluster;
  CHECK_FALSE(Samples(page_of(talk.service)).has("tubed_cluster_spare_voters"));
}

TEST_CASE("a waiting node names no cluster in its metrics, and the metrics of nodes are bounded") {
  Talk talk;
  ClusterState cluster{.name = "d"};
  talk.host.cluster_state = &cluster;
  CHECK(Samples(page_of(talk.service)).at(R"(tubed_cluster_info{node="d",cluster=""})") == 1);
  for (int i = 0; i < 100; ++i) {
    cluster.nodes.push_back({.name = std::to_string(i), .match = 1});
  }
  const Samples samples(page_of(talk.service));
  CHECK(samples.has(R"(tubed_cluster_node_match_index{node="63"})"));
  CHECK_FALSE(samples.has(R"(tubed_cluster_node_match_index{node="64"})"));
}

TEST_CASE("every family of the page is in the reference, and the other way round") {
  Talk talk(with_metrics(5));
  const ClusterState cluster = leader_of_three();
  talk.host.cluster_state = &cluster;
  FakeLog log;
  talk.service.set_log(log);
  talk.service.counters().set_recovery_time(1500ms);
  talk.service.counters().set_certificate_expiry(1h);
  auto client = talk.connect();
  Talk::exchange(*client, "put 0 0 60 1\r\nx\r\nreserve\r\ndelete 1\r\n");
  const Samples samples(page_of(talk.service));
  std::map<std::string, std::string> types;
  for (const MetricText& text : metric_texts()) {
    CHECK(types.emplace(text.family, text.type).second);
    CHECK(text.help.ends_with('.'));
    CHECK(text.family.ends_with("_total") == (text.type == "counter"));
  }
  CHECK(samples.types() == types);
}
