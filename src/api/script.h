// Script: what one request of the API does in its conversation.
//
// A script gives the conversation lines of the protocol, one command at a time, and takes its
// answers as values. It writes one frame, the response, when it is done.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/answer_json.h"
#include "api/operation.h"
#include "protocol/answer.h"

namespace tubed::api {

class Script : public protocol::AnswerWriter {
 public:
  virtual ~Script() = default;
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  void write(const protocol::Answer& answer, protocol::ReplyBuffer& replies) final;

  // The first input of the conversation.
  const std::string& first_input() const { return first_input_; }
  // Called with each further input, while the conversation takes an answer.
  void on_input(std::function<void(std::string_view)> send) { send_ = std::move(send); }
  // Called with the id of a job for its state; no value: the client may not know that it exists.
  void on_look(std::function<std::optional<JobState>(JobId)> state_of) {
    state_of_ = std::move(state_of);
  }
  // The response was written: later answers are not.
  bool done() const { return done_; }

 protected:
  explicit Script(std::string first_input) : first_input_(std::move(first_input)) {}

  // The answer to what was the input, if it is a complete reply.
  virtual void answered(const protocol::Answer& answer, protocol::ReplyBuffer& replies) = 0;

  void send(std::string_view line) { send_(line); }
  // Returns the response to the answer of a command, which has named this job.
  Response response_to(const Operation& operation, const protocol::Answer& answer,
                       std::optional<JobId> job) const;
  void finish(const Response& response, protocol::ReplyBuffer& replies);
  void finish(const FrameHead& head, const Bytes& content, protocol::ReplyBuffer& replies);

 private:
  std::string first_input_;
  std::function<void(std::string_view)> send_;
  std::function<std::optional<JobState>(JobId)> state_of_;
  bool done_ = false;
};

// The job of a reservation.
struct HeldJob {
  JobId id = 0;
  Priority priority = 0;
};

// The parameters of a request that are no part of it: `token`, of the reservation that is made;
// `held`, of the reservation that the request names.
struct ScriptOptions {
  std::string token = {};
  std::optional<HeldJob> held = std::nullopt;
  std::vector<JobId> held_jobs = {};  // of Kind::all_held
  std::uint64_t body_bytes = 0;
  std::string_view batch = {};  // the body of the request, of Kind::put_many
  bool body_as_json = false;
};
// Returns the script of an operation with a command, or the problem with its parameters.
// Precondition: remove_units(parameters). O(parameters).
std::variant<std::unique_ptr<Script>, Problem> script_of(const Operation& operation,
                                                         Parameters parameters,
                                                         const ScriptOptions& options);

}  // namespace tubed::api
