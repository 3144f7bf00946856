// The log of the commands of administrators.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "access/authenticator.h"
#include "os/log.h"
#include "serving/clients.h"
#include "serving/scheduler.h"
#include "tests/loop/loopback.h"

namespace tubed::server_test {

namespace {

// A server whose clients have the role "ops", and whose time does not pass.
struct AuditedServer final : serving::TickHost, commands::ServiceHost {
  AuditedServer() {
    service.set_host(*this);
    RoleSettings role;
    role.role.name = "ops";
    role.role.produce = role.role.admin = true;
    authenticator->apply({role}, {});
  }

  void audit(const commands::AuditEvent& event) override {
    if (authenticator != nullptr) authenticator->audit(event);
  }
  bool complete_tick() override { return false; }
  void tick_ended() override {}

  serving::Client& connect() {
    auto [here, there] = loop_test::connected_pair();
    peers.push_back(std::move(there));
    return clients.add(loop::open_channel(loop, std::move(here), {}), scheduler,
                       {.role = service.roles().find("ops"), .name = "peer"});
  }
  std::vector<std::string> lines_with(std::string_view text) const {
    std::vector<std::string> found;
    std::ranges::copy_if(lines, std::back_inserter(found), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
    return found;
  }

  static Limits slices_of_two() {
    Limits limits;
    limits.work_per_turn = 2;
    return limits;
  }

  loop::Loop loop;
  std::vector<std::string> lines;
  os::Log log{[this](std::string_view line) {
                lines.emplace_back(line);
                return true;
              },
              [] { return Duration(); }};
  commands::Service service{
      slices_of_two(), stats::ProcessIdentity{}, {[] { return stats::CpuTimes{}; }}};
  serving::Clients clients{log, service};
  serving::Scheduler scheduler{loop, service, clients, *this};
  std::unique_ptr<access::Authenticator> authenticator =
      std::make_unique<access::Authenticator>(loop, log, service, clients, scheduler);
  std::vector<os::Socket> peers;
};

void run(serving::Client& client, std::string_view commands) {
  client.conversation().receive(commands);
  for (int i = 0; i < 1000 && client.conversation().can_resume(); ++i)
    client.conversation().resume();
}

}  // namespace

TEST_CASE("a client that is closed within a command in slices is named with its address") {
  AuditedServer server;
  serving::Client& client = server.connect();
  for (int i = 0; i < 5; ++i) run(client, "put 0 100 60 1\r\nx\r\n");
  client.conversation().receive("kick 5\r\n");
  const std::string address = client.address();
  REQUIRE(!address.empty());
  server.clients.close(client, "test");
  const auto lines = server.lines_with("admin command");
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("reply=unfinished jobs=2 ") != std::string::npos);
  CHECK(lines[0].find("address=\"" + address + "\"") != std::string::npos);
}

TEST_CASE("what the audit has left out is counted in the log at the latest when the server ends") {
  AuditedServer server;
  serving::Client& client = server.connect();
  for (int i = 0; i < 130; ++i) run(client, "kick 1\r\n");
  CHECK(server.lines_with("info admin command ").size() == 100);
  CHECK(server.lines_with("left out").empty());
  server.authenticator.reset();
  REQUIRE(server.lines_with("left out").size() == 1);
  CHECK(server.lines_with("left out of the log count=30").size() == 1);
  server.clients.close_all("test");
}

}  // namespace tubed::server_test
