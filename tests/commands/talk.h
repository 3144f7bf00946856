// Talk: a service and its conversations, for tests that send bytes and compare replies.
#pragma once

#include <memory>
#include <string>

#include "commands/conversation.h"
#include "commands/service.h"
#include "tests/protocol/take_replies.h"

namespace tubed::commands {

inline constexpr Time kStart{std::chrono::hours(1)};

inline stats::Identity test_identity() {
  return {.process_id = 7,
          .instance = "0123456789abcdef",
          .hostname = "host",
          .os = "#1",
          .platform = "x86_64",
          .started = kStart,
          .started_at = std::chrono::milliseconds(1'700'000'000'250)};
}

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
                 .descriptor_limit = [] { return std::uint64_t{1024}; }}) {}

  std::unique_ptr<Conversation> connect() { return std::make_unique<Conversation>(service); }

  // Runs deferred work until none is left, and returns all replies.
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

  void advance(Duration time) { service.begin_tick(service.now() + time); }

  Service service;
};

}  // namespace tubed::commands
