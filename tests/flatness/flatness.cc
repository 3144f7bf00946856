// flatness SOCKET TUBES WAITING DELAYED: a server in this process, a crowd in it, and one client
// whose put+reserve+delete is measured: callgrind collects while the server works for it, and not
// while the client does.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "config/settings.h"
#include "platform/log.h"
#include "platform/loop.h"
#include "server/server.h"

namespace {

using namespace tubed;

constexpr int kCycles = 2000;
constexpr int kWarmUp = 500;
constexpr int kBatch = 200;

[[noreturn]] void fail(std::string_view what) {
  std::fprintf(stderr, "flatness: %.*s\n", static_cast<int>(what.size()), what.data());
  std::exit(1);
}

int connect_to(const std::string& path) {
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  if (::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    fail("cannot connect");
  }
  return descriptor;
}

void send_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(descriptor, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) fail("cannot send");
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// A client of the server in this process: it lets the loop turn until its reply is there.
class Client {
 public:
  Client(platform::Loop& loop, const std::string& path)
      : loop_(loop), descriptor_(connect_to(path)) {}
  ~Client() { ::close(descriptor_); }

  // Returns once so many reply lines have come; bodies in this test have none of their own.
  std::string ask(std::string_view command, long lines, bool collect = false) {
    send_all(descriptor_, command);
    std::string reply;
    long seen = 0;
    while (seen < lines) {
      if (collect) CALLGRIND_TOGGLE_COLLECT;
      loop_.turn_once();
      if (collect) CALLGRIND_TOGGLE_COLLECT;
      char buffer[65536];
      const ssize_t got = ::recv(descriptor_, buffer, sizeof buffer, MSG_DONTWAIT);
      if (got == 0) fail("the server closed the connection");
      for (ssize_t i = 0; i < got; ++i) seen += buffer[i] == '\n' ? 1 : 0;
      if (got > 0) reply.append(buffer, static_cast<std::size_t>(got));
    }
    return reply;
  }

 private:
  platform::Loop& loop_;
  int descriptor_;
};

// Fills the queue with delayed jobs, spread over so many tubes.
void delay_jobs(Client& client, int tubes, int jobs) {
  for (int done = 0; done < jobs;) {
    std::string batch;
    long lines = 0;
    for (int i = 0; i < kBatch && done < jobs; ++i, ++done) {
      batch += "use crowd-" + std::to_string(done % tubes) + "\r\n" + "put " +
               std::to_string(done % 5000) + " " + std::to_string(100000 + done) +
               " 60 4\r\nbody\r\n";
      lines += 2;
    }
    client.ask(batch, lines);
  }
}

// A process of its own, since both ends would take too many descriptors here.
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
  const std::string wanted = "current-waiting: " + std::to_string(count) + "\n";
  // The line behind the block shows that all of it has come.
  const std::string question = "stats\r\nlist-tube-used\r\n";
  for (std::string reply; reply.find(wanted) == std::string::npos;) {
    reply = client.ask(question, 1);
    while (reply.find("USING ") == std::string::npos) reply += client.ask("", 1);
  }
}

void cycle(Client& client, bool collect) {
  const std::string inserted = client.ask("put 10 0 60 4\r\nbody\r\n", 1, collect);
  const std::string id = inserted.substr(9, inserted.size() - 11);
  if (client.ask("reserve\r\n", 2, collect) != "RESERVED " + id + " 4\r\nbody\r\n") {
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

  platform::Log log([](std::string_view) { return true; }, [] { return Duration(); });
  platform::Loop loop;
  Settings settings;
  settings.listeners.front().kind = Listen::Kind::unix_socket;
  settings.listeners.front().path = path;
  settings.connections = 20000;
  server::Server server(loop, log, settings, [&] { return Result<Settings>(settings); });
  if (auto listening = server.listen({}); !listening) fail(listening.error().message);

  int until[2];
  if (::pipe(until) != 0) fail("no pipe");
  const pid_t crowd = waiting > 0 ? start_waiting_clients(path, waiting, until) : 0;
  {
    Client client(loop, path);
    if (delayed > 0) delay_jobs(client, tubes, delayed);
    if (waiting > 0) wait_until_waiting(client, waiting);
    client.ask("use default\r\n", 1);
    for (int i = 0; i < kWarmUp; ++i) cycle(client, false);
    CALLGRIND_START_INSTRUMENTATION;
    for (int i = 0; i < kCycles; ++i) cycle(client, true);
    CALLGRIND_STOP_INSTRUMENTATION;
  }
  ::close(until[1]);
  if (crowd > 0) ::waitpid(crowd, nullptr, 0);
  std::printf("cycles: %d beside %d tubes, %d waiting clients, %d delayed jobs\n", kCycles, tubes,
              waiting, delayed);
}
