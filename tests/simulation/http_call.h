// HttpCall: one request of a simulated client over HTTP, from its connection to its answer.
//
// It judges the answer by the row of the operation (api/operation.h): the status must belong to a
// reply of its command or be valid for every operation, and JSON must be valid.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/operation.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/commands.h"
#include "tests/simulation/net.h"

namespace tubed::simulation {

struct HttpRequest {
  const api::Operation* operation = nullptr;
  std::string target;  // with the query, below /api/v1
  std::string body = {};
  bool waits = false;  // for a job that may be far away
};

struct HttpAnswer {
  unsigned status = 0;  // 0: the connection ended before the answer
  std::string type = {};
  std::string body = {};
};

// Returns the value of the first member with this name, a text or a number, or an empty text.
std::string member_of(const std::string& json, std::string_view name);

class HttpCall {
 public:
  using Done = std::function<void(const HttpAnswer&)>;

  // Calls `done` once, unless leave() is called first; `done` may destroy the call.
  HttpCall(World& world, Net& net, Knowledge& known, Chance& chance, std::string name,
           HttpRequest request, Done done);
  ~HttpCall();
  HttpCall(const HttpCall&) = delete;
  HttpCall& operator=(const HttpCall&) = delete;

  // False: nothing listens.
  bool is_connected() const { return connection_ != nullptr; }
  // Called now and then: sends what is held, and checks how long the answer takes.
  void act();

  enum class End : std::uint8_t { close, half_close, reset };
  // The client no longer wants the answer: `done` is not called.
  void leave(End end);

 private:
  void count(int by);
  void read();
  std::optional<HttpAnswer> whole_answer() const;
  void finish(const HttpAnswer& answer);
  void judge(const HttpAnswer& answer);
  bool may_have(unsigned status) const;
  void fail(std::string_view what);

  World& world_;
  Knowledge& known_;
  Chance& chance_;
  const std::string name_;
  const HttpRequest request_;
  Done done_;
  std::shared_ptr<Endpoint> connection_;
  const std::uint64_t process_;
  const std::uint64_t queue_;
  const Time begun_;
  Time sent_;         // when the last bytes were sent
  std::string held_;  // rest of the request
  std::string received_;
};

}  // namespace tubed::simulation
