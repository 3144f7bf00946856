// Renders the answers of commands as JSON; protocol::render() renders them as protocol text.
#pragma once

#include <string>
#include <string_view>

#include "api/frame.h"
#include "api/operation.h"
#include "protocol/answer.h"

namespace tubed::api {

// A response with its content.
struct Response {
  FrameHead head;
  std::string text;
};
Response response_of(const Problem& problem);

// Returns the response for a complete answer of the operation's command. Precondition:
// is_whole_reply(answer). O(answer).
Response response_of(const Operation& operation, const protocol::Answer& answer);

// Writes the member "body" or "body_base64". O(body).
void write_body(std::string_view body, protocol::BlockSink& sink);

}  // namespace tubed::api
