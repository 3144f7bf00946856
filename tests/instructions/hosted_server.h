// HostedServer: a whole server in this process, and clients that let it work, so that callgrind can
// collect the instructions that the server spends in user space, and none of the clients'.
//
// Nothing here waits for a clock. A turn that is collected begins when its event is there and the
// threads of the pool rest, so that how many turns an answer takes, and what they cost, is the same
// in each run.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "config/settings.h"
#include "loop/loop.h"
#include "os/log.h"
#include "server/server.h"

namespace tubed::instructions {

// Says what is wrong and ends the process: a measurement that went wrong measures nothing.
[[noreturn]] void fail(std::string_view what);

// A connection to a unix socket.
int connect_to(const std::string& path);
void send_all(int descriptor, std::string_view text);

enum class Collect : bool { no, yes };

class HostedServer {
 public:
  // Listens on the unix socket `path`, whatever the settings say.
  HostedServer(Settings settings, const std::string& path);

  const std::string& path() const { return settings_.listeners.front().path; }

  // One turn of the loop, once there is something to do.
  void turn(Collect collect);

  // Stops as SIGTERM does, with the journal's end. Needed where there is a journal.
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
  // The server outlives it.
  explicit Client(HostedServer& server);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Sends the commands and lets the server turn until that many replies are there. Returns them.
  std::string ask(std::string_view commands, std::size_t replies, Collect collect = Collect::no);
  // Sends what is not answered at once, and lets the server turn once.
  void tell(std::string_view commands, Collect collect = Collect::no);
  // What has come without being asked for.
  std::string take();

 private:
  HostedServer& server_;
  int descriptor_;
};

}  // namespace tubed::instructions
