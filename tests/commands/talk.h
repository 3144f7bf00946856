// Talk: a service and its conversations, for tests that send bytes and compare replies. Such a
// server has no loop and no sockets: the test moves its time and runs what is deferred.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "commands/conversation.h"
#include "commands/service.h"
#include "tests/commands/test_host.h"
#include "tests/protocol/take_replies.h"

namespace tubed::commands {

inline constexpr Time kStart{std::chrono::hours(1)};

inline stats::ProcessIdentity test_identity() {
  return {.process_id = 7,
          .instance = "0123456789abcdef",
          .hostname = "host",
          .os = "#1",
          .platform = "x86_64",
          .started = kStart,
          .started_at = std::chrono::milliseconds(1'700'000'000'250)};
}

// A client: its conversation, if the connection has not ended, and the replies that it has
// received.
struct Talker {
  std::unique_ptr<Conversation> conversation;
  std::string received;
};

class Talk {
 public:
  explicit Talk(const Limits& limits = {})
      : service(limits, test_identity(),
                {.cpu_times =
                     [] {
                       return stats::CpuTimes{.user = std::chrono::milliseconds(1500),
                                              .system = std::chrono::microseconds(20)};
                     },
                 .resident_bytes = [] { return std::uint64_t{12'345'678}; },
                 .open_descriptors = [] { return std::uint64_t{17}; },
                 .descriptor_limit = [] { return std::uint64_t{1024}; }}) {
    service.set_host(host);
  }

  std::unique_ptr<Conversation> connect() { return std::make_unique<Conversation>(service); }

  // Runs all deferred work, and returns all replies.
  static std::string replies_of(Conversation& conversation) {
    std::string all;
    do {
      conversation.resume();
      all += protocol::take_replies(conversation.replies());
    } while (conversation.can_resume());
    return all;
  }

  static std::string exchange(Conversation& conversation, std::string_view bytes) {
    conversation.receive(bytes);
    return replies_of(conversation);
  }

  // Resumes each conversation with deferred work once. False if no conversation has deferred work.
  bool run_deferred() {
    std::vector<SessionId> notified;
    bool any = service.conversations().has_notified();
    service.conversations().take_notified(notified);
    for (Conversation* one : service.conversations().all()) {
      if (one == nullptr) continue;
      one->refuse();
      if (!one->can_resume()) continue;
      any = true;
      one->resume();
    }
    return any;
  }

  // Runs all deferred work, takes the replies of these clients, and ends the connections that are
  // over.
  void run_until_idle(std::span<Talker> clients) {
    for (bool again = true; again;) {
      receive(clients);
      again = run_deferred();
      again = receive(clients) || again;
    }
    service.engine().check_invariants();
  }

  void advance(Duration time) { service.begin_tick(service.now() + time); }

  TestHost host;
  Service service;

 private:
  // True: a connection has ended.
  static bool receive(std::span<Talker> clients) {
    bool ended = false;
    for (Talker& client : clients) {
      if (client.conversation == nullptr) continue;
      client.received += protocol::take_replies(client.conversation->replies());
      if (!client.conversation->finished()) continue;
      client.conversation.reset();
      ended = true;
    }
    return ended;
  }
};

}  // namespace tubed::commands
