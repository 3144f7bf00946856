// flatness SOCKET TUBES WAITING DELAYED: measures put+reserve+delete of one client on a server in
// this process that holds many tubes, waiting clients and delayed jobs. callgrind collects only
// while the server runs, not the client.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "hosted_server.h"

namespace {

using namespace tubed;
using namespace tubed::instructions;

constexpr int kCycles = 2000;
constexpr int kWarmUp = 500;
constexpr int kBatch = 200;

// Fills the queue with delayed jobs, spread over `tubes` tubes.
void delay_jobs(Client& client, int tubes, int jobs) {
  for (int done = 0; done < jobs;) {
    std::string batch;
    std::size_t replies = 0;
    for (int i = 0; i < kBatch && done < jobs; ++i, ++done) {
      batch += "use crowd-" + std::to_string(done % tubes) + "\r\n" + "put " +
               std::to_string(done % 5000) + " " + std::to_string(100000 + done) +
               " 60 4\r\nbody\r\n";
      replies += 2;
    }
    client.ask(batch, replies);
  }
}

// The waiting clients run in a process of their own, because both ends of their connections would
// need too many descriptors in this process.
pid_t start_waiting_clients(const std::string& path, int count, int (&until)[2]) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::close(until[1]);
  std::vector<int> clients;
  for (int i = 0; i < count; ++i) {
    clients.push_back(connect_to(path));
    send_all(clients.back(),
             "watch waiting-" + std::to_string(i % 100) + "\r\nignore default\r\nreserve\r\n");
  }
  char end;
  [[maybe_unused]] const ssize_t closed = ::read(until[0], &end, 1);
  std::_Exit(0);
}

void wait_until_waiting(Client& client, int count) {
  const std::string line = "current-waiting: " + std::to_string(count) + "\n";
  while (client.ask("stats\r\n", 1).find(line) == std::string::npos) {
  }
}

void cycle(Client& client, Collect collect) {
  const std::string inserted = client.ask("put 10 0 60 4\r\nbody\r\n", 1, collect);
  const std::string id = inserted.substr(9, inserted.size() - 11);
  if (client.ask("reserve\r\n", 1, collect) != "RESERVED " + id + " 4\r\nbody\r\n") {
    fail("not the job that was put");
  }
  if (client.ask("delete " + id + "\r\n", 1, collect) != "DELETED\r\n") fail("not deleted");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) fail("usage: flatness SOCKET TUBES WAITING DELAYED");
  const std::string path = argv[1];
  const int tubes = std::atoi(argv[2]);
  const int waiting = std::atoi(argv[3]);
  const int delayed = std::atoi(argv[4]);

  Settings settings;
  settings.connections = 20000;
  HostedServer server(settings, path);

  int until[2];
  if (::pipe(until) != 0) fail("no pipe");
  const pid_t crowd = waiting > 0 ? start_waiting_clients(path, waiting, until) : 0;
  {
    Client client(server);
    if (delayed > 0) delay_jobs(client, tubes, delayed);
    if (waiting > 0) wait_until_waiting(client, waiting);
    client.ask("use default\r\n", 1);
    for (int i = 0; i < kWarmUp; ++i) cycle(client, Collect::no);
    CALLGRIND_START_INSTRUMENTATION;
    for (int i = 0; i < kCycles; ++i) cycle(client, Collect::yes);
    CALLGRIND_STOP_INSTRUMENTATION;
  }
  ::close(until[1]);
  if (crowd > 0) ::waitpid(crowd, nullptr, 0);
  std::printf("cycles: %d beside %d tubes, %d waiting clients, %d delayed jobs\n", kCycles, tubes,
              waiting, delayed);
}
