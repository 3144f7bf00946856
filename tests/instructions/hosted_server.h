// HostedServer: a complete server in this process, with clients that drive its loop. callgrind can
// then collect the instructions of the server in user space without the clients.
//
// Nothing here waits for a clock. A collected tick begins when its event has arrived and the pool's
// threads are idle, so the number of ticks of an answer, and their cost, are the same in each run.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "config/settings.h"
#include "loop/loop.h"
#include "os/log.h"
#include "server/server.h"

namespace tubed::instructions {

// Prints the reason and ends the process, because a failed measurement has no result.
[[noreturn]] void fail(std::string_view what);

// Connects to a unix socket.
int connect_to(const std::string& path);
void send_all(int descriptor, std::string_view text);

enum class Collect : bool { no, yes };

class HostedServer {
 public:
  // Listens on the unix socket `path`, whatever the settings.
  HostedServer(Settings settings, const std::string& path);

  const std::string& path() const { return settings_.listeners.front().path; }

  // Runs one tick of the loop once it has an event.
  void run_once(Collect collect);

  // Stops as after SIGTERM, including the end of the journal. Required with a journal.
  void stop();

 private:
  void wait_for_event();

  os::Log log_;
  loop::Loop loop_;
  Settings settings_;
  server::Server server_;
};

class Client {
 public:
  // The server must outlive this object.
  explicit Client(HostedServer& server);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Sends the commands and runs ticks until this number of replies has arrived. Returns the
  // replies.
  std::string ask(std::string_view commands, std::size_t replies, Collect collect = Collect::no);
  // Sends commands that are not answered immediately, and runs one tick.
  void send(std::string_view commands, Collect collect = Collect::no);
  // Returns replies that arrived without a request.
  std::string take();

 private:
  HostedServer& server_;
  int descriptor_;
};

}  // namespace tubed::instructions
