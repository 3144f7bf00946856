// Frame: a response of the API on its way through the replies of a conversation.
//
// The commit gate holds it like protocol text until its facts are durable. It is a line with the
// status, the type of the content, a path and the number of bytes, and then the content.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "protocol/reply.h"

namespace tubed::api {

enum class Content : std::uint8_t { json, problem, bytes };
// "application/json"
const char* type_of(Content content);

struct FrameHead {
  unsigned status = 200;
  Content content = Content::json;
  std::string location = {};  // the path of a created object; empty: nothing was created
  std::uint64_t bytes = 0;    // of the content
};

void write_frame(protocol::ReplyBuffer& replies, const FrameHead& head, std::string_view content);
// The content is not copied if it is large.
void write_frame(protocol::ReplyBuffer& replies, const FrameHead& head, const Bytes& content);

// Takes the line of a frame from the front of `text`. Nothing: the line is incomplete.
// Precondition: write_frame() wrote the text.
std::optional<FrameHead> take_frame_head(std::string& text);

}  // namespace tubed::api
