#include "api/frame.h"

#include <array>

#include <fmt/format.h>

#include "api/target.h"
#include "base/assert.h"
#include "text/numbers.h"

namespace tubed::api {

namespace {

constexpr std::array<const char*, 3> kTypes = {"application/json", "application/problem+json",
                                               "application/octet-stream"};

void write_head(protocol::ReplyBuffer& replies, const FrameHead& head, std::size_t bytes) {
  replies.text(fmt::format("{} {} {} {}\r\n", head.status, static_cast<int>(head.content),
                           head.location, bytes));
}

std::string_view take_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

std::uint64_t take_count(std::string_view& text) {
  const auto number = parse_number<std::uint64_t>(take_word(text));
  TUBED_ASSERT(number.has_value());
  return *number;
}

}  // namespace

const char* type_of(Content content) {
  return kTypes[static_cast<std::size_t>(content)];
}

void write_frame(protocol::ReplyBuffer& replies, const FrameHead& head, std::string_view content) {
  write_head(replies, head, content.size());
  replies.text(content);
}

void write_frame(protocol::ReplyBuffer& replies, const FrameHead& head, const Bytes& content) {
  write_head(replies, head, content.size());
  replies.block_part(content);
}

std::optional<FrameHead> take_frame_head(std::string& text) {
  const std::size_t end = text.find("\r\n");
  if (end == std::string::npos) return std::nullopt;
  std::string_view line = std::string_view(text).substr(0, end);
  FrameHead head;
  head.status = static_cast<unsigned>(take_count(line));
  head.content = static_cast<Content>(take_count(line));
  head.location = take_word(line);
  head.bytes = take_count(line);
  text.erase(0, end + 2);
  return head;
}

}  // namespace tubed::api
