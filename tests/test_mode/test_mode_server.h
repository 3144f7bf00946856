// TestModeServer: a server in test mode without sockets: a Talk with a control connection.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "commands/conversation.h"
#include "test_mode/test_mode.h"
#include "tests/commands/talk.h"

namespace tubed::test_mode {

using commands::Conversation;
using commands::kStart;
using commands::Talk;

class TestModeServer {
 public:
  explicit TestModeServer(ClockMode clock = ClockMode::manual)
      : mode(talk.service, clock, kStart, [this] { drain(false); }), control(talk.connect()) {
    this->mode.set_control(control->session());
  }

  Conversation& client() {
    clients.push_back(talk.connect());
    return *clients.back();
  }

  // Drain mode in which no job is given out, as by drain.exit = "when-idle".
  void drain(bool draining) {
    talk.service.set_draining(draining);
    talk.service.set_giving(!draining);
  }

  // Sends lines, each with its CR LF, and runs everything that can run.
  std::string send(Conversation& to, std::string text) {
    tick();
    to.receive(text);
    settle();
    return protocol::take_replies(to.replies());
  }
  std::string say(std::string_view line) { return send(*control, std::string(line) + "\r\n"); }
  std::string replies(Conversation& of) { return protocol::take_replies(of.replies()); }

  void tick(Duration passed = {}) {
    real += passed;
    talk.service.begin_tick(real);
  }
  // Runs deferred conversations in turn until no conversation is deferred.
  void settle() {
    bool any = true;
    for (int rounds = 0; any && rounds < 10'000; ++rounds) {
      any = talk.run_deferred();
      if (talk.service.next_deadlines().due(real)) {
        any = true;
        tick();
      }
    }
    CHECK_FALSE(any);
    talk.service.engine().check_invariants();
  }

  Talk talk;
  Time real = kStart;
  TestMode mode;
  std::unique_ptr<Conversation> control;
  std::vector<std::unique_ptr<Conversation>> clients;
};

inline std::string put(int delay, int ttr = 60, std::string_view body = "x") {
  return "put 0 " + std::to_string(delay) + " " + std::to_string(ttr) + " " +
         std::to_string(body.size()) + "\r\n" + std::string(body) + "\r\n";
}

}  // namespace tubed::test_mode
