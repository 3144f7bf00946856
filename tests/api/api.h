// Api: requests of the HTTP API in process, without HTTP: each runs its script in a conversation.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "api/frame.h"
#include "api/script.h"
#include "commands/authorization.h"
#include "json/json.h"
#include "tests/commands/admitted.h"

namespace tubed::api {

// True: the text is one value of JSON and a line end, or nothing after it.
inline bool is_json(std::string_view text) {
  return json::Json::parse(std::string(R"({"value":)").append(text).append("}")).has_value();
}

// The member of an object, as it is written.
inline std::string member(std::string_view object, std::string_view key) {
  const auto parsed = json::Json::parse(object);
  REQUIRE(parsed);
  const json::Json* found = parsed->find(key);
  return found == nullptr ? "" : to_line(*found);
}

inline const Operation& operation_of(std::string_view id) {
  const auto found = std::ranges::find(operations(), id, &Operation::id);
  REQUIRE(found != operations().end());
  return *found;
}

struct Got {
  unsigned status = 0;
  Content content = Content::json;
  std::string location;
  std::string text;

  std::string operator[](std::string_view key) const { return member(text, key); }
};

inline Got got(const Response& response) {
  return {.status = response.head.status,
          .content = response.head.content,
          .location = response.head.location,
          .text = response.text};
}

// A request on its way: its script and the conversation that it talks to.
class Asking {
 public:
  Asking(std::unique_ptr<commands::Conversation> conversation, std::unique_ptr<Script> script,
         std::optional<std::string_view> body = {})
      : conversation_(std::move(conversation)), script_(std::move(script)) {
    conversation_->answers().set_writer(script_.get());
    script_->on_input([this](std::string_view line) { to_send_ += line; });
    script_->on_look(
        [this](JobId id) { return commands::visible_state(conversation_->context(), id); });
    to_send_ = script_->first_input();
    if (body) to_send_.append(*body).append("\r\n");
    run();
  }

  void run() {
    do {
      conversation_->receive(std::exchange(to_send_, {}));
      output_ += protocol::take_replies(conversation_->replies());
      conversation_->resume();
      output_ += protocol::take_replies(conversation_->replies());
    } while (!to_send_.empty() || conversation_->can_resume());
  }

  bool done() const { return script_->done(); }
  // Precondition: done().
  Got answer() {
    std::string text = output_;
    const auto head = take_frame_head(text);
    REQUIRE(head);
    REQUIRE(head->bytes == text.size());
    if (head->content != Content::bytes && head->status != 204) {
      CAPTURE(text);
      CHECK(is_json(text));
    }
    return {head->status, head->content, head->location, text};
  }
  std::unique_ptr<commands::Conversation> take_conversation() {
    conversation_->answers().set_writer(nullptr);
    return std::move(conversation_);
  }

 private:
  std::unique_ptr<commands::Conversation> conversation_;
  std::unique_ptr<Script> script_;
  std::string to_send_;
  std::string output_;
};

struct AskOptions {
  std::string_view json = {};                 // the parameters of the body
  std::optional<std::string_view> body = {};  // of a put
  std::string_view role = {};
  bool body_as_json = false;
  std::optional<HeldJob> held = {};
  std::string_view batch = {};  // the body of a request with many jobs
  std::vector<JobId> held_jobs = {};
};

class Api : public commands::Admitted {
 public:
  using Admitted::Admitted;
  explicit Api(const Limits& limits = {}) : Admitted({}, limits) {}

  // `target`: below /api/v1.
  std::variant<std::unique_ptr<Script>, Problem> script(Method method, std::string_view target,
                                                        const AskOptions& options = {}) {
    auto parsed = parse_target(target);
    REQUIRE(parsed);
    Routed routed = route(method, parsed->segments);
    REQUIRE(routed.operation != nullptr);
    Parameters parameters = std::move(routed.path);
    for (auto& one : parsed->query) parameters.push_back(std::move(one));
    if (!options.json.empty()) {
      if (auto problem = add_json(options.json, parameters)) return std::move(*problem);
    }
    remove_units(parameters);
    return script_of(*routed.operation, std::move(parameters),
                     {.token = "cafe",
                      .held = options.held,
                      .held_jobs = options.held_jobs,
                      .body_bytes = options.body.value_or("").size(),
                      .batch = options.batch,
                      .body_as_json = options.body_as_json});
  }

  std::unique_ptr<commands::Conversation> client(std::string_view role) {
    return role.empty() ? connect() : connect_as(role);
  }

  // Begins a request whose script is made.
  std::unique_ptr<Asking> begin(Method method, std::string_view target,
                                const AskOptions& options = {}) {
    auto made = script(method, target, options);
    auto* ready = std::get_if<std::unique_ptr<Script>>(&made);
    REQUIRE(ready != nullptr);
    return std::make_unique<Asking>(client(options.role), std::move(*ready), options.body);
  }

  Got ask(Method method, std::string_view target, const AskOptions& options = {}) {
    CAPTURE(target);
    auto made = script(method, target, options);
    if (const auto* problem = std::get_if<Problem>(&made)) return got(response_of(*problem));
    Asking asking(client(options.role), std::move(std::get<std::unique_ptr<Script>>(made)),
                  options.body);
    REQUIRE(asking.done());
    return asking.answer();
  }

  Got get(std::string_view target, const AskOptions& options = {}) {
    return ask(Method::get, target, options);
  }
  Got post(std::string_view target, const AskOptions& options = {}) {
    return ask(Method::post, target, options);
  }
  // Runs protocol text of a client that may do everything.
  std::string run(std::string_view text) { return exchange(*other_client(), text); }

 private:
  commands::Conversation* other_client() {
    if (other_ == nullptr) other_ = connect();
    return other_.get();
  }

  std::unique_ptr<commands::Conversation> other_;
};

}  // namespace tubed::api
