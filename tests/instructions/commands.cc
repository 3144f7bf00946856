// instructions FOLDER: measures the cost of each command in the server's user space.
//
// Run it under callgrind, which writes a dump for each measured step; standard output has the
// number of commands of each dump. Journal and sockets are created in FOLDER. Each step leaves the
// number of jobs unchanged, in the order of their ids; only the steps with a journal keep the jobs
// that they put, which leaves compaction no work.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include <valgrind/callgrind.h>

#include "hosted_server.h"
#include "text/numbers.h"

namespace {

using namespace tubed;
using namespace tubed::instructions;

constexpr int kRounds = 320;
// After the warm-up, rare work such as the growth of a buffer is mostly done.
constexpr int kWarmUp = 160;
// These jobs always exist, to give the heaps some depth. Their number exceeds a batch.
constexpr int kReadyJobs = 1000;
constexpr int kPipelined = 16;
constexpr int kCycles = 10;
constexpr std::size_t kBodyBytes = 100;
constexpr std::size_t kLargeBodyBytes = 16 * 1024;

// Calls step(Collect), which runs `commands` commands, and gives callgrind the collected counts
// under this name.
template <class Step>
void measure(const char* name, int commands, Step step) {
  for (int i = 0; i < kWarmUp; ++i) step(Collect::no);
  CALLGRIND_ZERO_STATS;
  for (int i = 0; i < kRounds; ++i) step(Collect::yes);
  CALLGRIND_DUMP_STATS_AT(name);
  std::printf("%d %s\n", kRounds * commands, name);
}

// A client that checks every reply.
class CheckedClient {
 public:
  explicit CheckedClient(HostedServer& server) : client_(server) {}

  void expect(std::string_view reply, std::string_view command, Collect collect = Collect::no) {
    const std::string line = std::string(command) + "\r\n";
    if (client_.ask(line, 1, collect) != std::string(reply) + "\r\n") fail("wrong answer: " + line);
  }
  // Expects a reply with a body that starts with `word`.
  void expect_body(std::string_view word, std::string_view command, Collect collect) {
    const std::string line = std::string(command) + "\r\n";
    const std::string reply = client_.ask(line, 1, collect);
    if (!reply.starts_with(std::string(word) + " ")) fail("wrong answer: " + line);
  }

  static std::string put_command(std::size_t bytes = kBodyBytes, int priority = 10) {
    return "put " + std::to_string(priority) + " 0 3600 " + std::to_string(bytes) + "\r\n" +
           std::string(bytes, 'x') + "\r\n";
  }
  void put(Collect collect = Collect::no) { puts(put_command(), 1, collect); }
  // `commands` has `count` puts.
  void puts(std::string_view commands, int count, Collect collect = Collect::no) {
    if (!client_.ask(commands, static_cast<std::size_t>(count), collect).starts_with("INSERTED ")) {
      fail("not inserted");
    }
  }
  // Reserves the first job; returns its id.
  std::string reserve(Collect collect = Collect::no) {
    const std::string reply = client_.ask("reserve\r\n", 1, collect);
    if (!reply.starts_with("RESERVED ")) fail("not reserved");
    return std::to_string(leading_number<std::uint64_t>(std::string_view(reply).substr(9)));
  }
  void release(const std::string& id, Collect collect = Collect::no) {
    expect("RELEASED", "release " + id + " 10 0", collect);
  }
  void take_out(int jobs = 1) {
    for (int i = 0; i < jobs; ++i) expect("DELETED", "delete " + reserve());
  }
  std::string first_ready() {
    const std::string reply = client_.ask("peek-ready\r\n", 1);
    if (!reply.starts_with("FOUND ")) fail("nothing ready");
    return std::to_string(leading_number<std::uint64_t>(std::string_view(reply).substr(6)));
  }

  Client& raw() { return client_; }

 private:
  Client client_;
};

void measure_puts(CheckedClient& client) {
  measure("put", 1, [&](Collect collect) {
    client.put(collect);
    client.take_out();
  });
  std::string batch;
  for (int i = 0; i < kPipelined; ++i) batch += CheckedClient::put_command();
  measure("put, 16 pipelined", kPipelined, [&](Collect collect) {
    client.puts(batch, kPipelined, collect);
    client.take_out(kPipelined);
  });
}

// The job is the most urgent, so it is reserved next; its id leaves a gap.
void measure_large_put(CheckedClient& client) {
  const std::string put = CheckedClient::put_command(kLargeBodyBytes, 5);
  measure("put of 16 KiB", 1, [&](Collect collect) {
    client.puts(put, 1, collect);
    client.take_out();
  });
}

void measure_reservations(CheckedClient& client) {
  measure("reserve", 1, [&](Collect collect) { client.release(client.reserve(collect)); });
  measure("release", 1, [&](Collect collect) { client.release(client.reserve(), collect); });
  measure("touch", 1, [&](Collect collect) {
    const std::string id = client.reserve();
    client.expect("TOUCHED", "touch " + id, collect);
    client.release(id);
  });
  measure("bury", 1, [&](Collect collect) {
    const std::string id = client.reserve();
    client.expect("BURIED", "bury " + id + " 10", collect);
    client.expect("KICKED", "kick-job " + id);
  });
  measure("kick-job", 1, [&](Collect collect) {
    const std::string id = client.reserve();
    client.expect("BURIED", "bury " + id + " 10");
    client.expect("KICKED", "kick-job " + id, collect);
  });
  measure("delete", 1, [&](Collect collect) {
    client.put();
    client.expect("DELETED", "delete " + client.reserve(), collect);
  });
}

// Ten puts, ten reserves and the deletes of the reserved jobs, in one batch.
void measure_cycle(CheckedClient& client) {
  measure("put, reserve, delete, 30 pipelined", 3 * kCycles, [&](Collect collect) {
    // The ids of the jobs have no gaps.
    const std::uint64_t first = leading_number<std::uint64_t>(client.first_ready());
    std::string batch;
    for (int i = 0; i < kCycles; ++i) batch += CheckedClient::put_command();
    for (int i = 0; i < kCycles; ++i) batch += "reserve\r\n";
    std::string deletes;
    for (std::uint64_t i = 0; i < kCycles; ++i) {
      deletes += "delete " + std::to_string(first + i) + "\r\n";
    }
    const std::string replies = client.raw().ask(batch + deletes, 3 * kCycles, collect);
    if (!replies.ends_with("\r\nDELETED\r\nDELETED\r\n")) fail("not deleted");
  });
}

// A waiting worker, and the put that ends its wait.
void measure_waiting(HostedServer& server) {
  CheckedClient worker(server);
  CheckedClient producer(server);
  worker.expect("WATCHING 2", "watch waiting");
  worker.expect("WATCHING 1", "ignore default");
  producer.expect("USING waiting", "use waiting");
  measure("reserve that waits, and its put", 1, [&](Collect collect) {
    worker.raw().send("reserve\r\n", collect);
    producer.put(collect);
    const std::string reply = worker.raw().take();
    if (!reply.starts_with("RESERVED ")) fail("the worker was not served");
    worker.expect("DELETED", "delete " + std::to_string(leading_number<std::uint64_t>(
                                             std::string_view(reply).substr(9))));
  });
}

void measure_questions(CheckedClient& client) {
  const std::string first = client.first_ready();
  measure("peek", 1,
          [&](Collect collect) { client.expect_body("FOUND", "peek " + first, collect); });
  measure("stats-job", 1,
          [&](Collect collect) { client.expect_body("OK", "stats-job " + first, collect); });
  measure("stats", 1, [&](Collect collect) { client.expect_body("OK", "stats", collect); });
  measure("watch and ignore", 1, [&](Collect collect) {
    client.expect("WATCHING 2", "watch other", collect);
    client.expect("WATCHING 1", "ignore other", collect);
  });
}

// Measures the loop's thread; the pool's threads are not collected. The files are not synced and
// hardly grow meanwhile, because both would happen at a time determined by the clock.
void measure_journal(const std::string& folder) {
  Settings settings;
  settings.journal_directory = folder + "/journal";
  settings.journal_sync = std::chrono::hours(1);
  std::filesystem::create_directory(settings.journal_directory);
  HostedServer server(settings, folder + "/journaled");
  {
    CheckedClient client(server);
    measure("put, with a journal", 1, [&](Collect collect) { client.put(collect); });
    std::string batch;
    for (int i = 0; i < kPipelined; ++i) batch += CheckedClient::put_command();
    measure("put, with a journal, 16 pipelined", kPipelined,
            [&](Collect collect) { client.puts(batch, kPipelined, collect); });
  }
  server.stop();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: instructions FOLDER");
  const std::string folder = argv[1];
  {
    HostedServer server(Settings(), folder + "/plain");
    CheckedClient client(server);
    for (int i = 0; i < kReadyJobs; ++i) client.put();
    measure_puts(client);
    measure_reservations(client);
    measure_cycle(client);
    measure_waiting(server);
    measure_questions(client);
    measure_large_put(client);
  }
  measure_journal(folder);
}
