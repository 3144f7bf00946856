// The answers of commands as JSON: another renderer beside protocol::render().
//
// Names are those of stats and of the columns of lists, so that a script finds the same words in
// both.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
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

// The response that a complete answer of the operation's command is. Precondition:
// is_whole_reply(answer). O(answer).
Response response_of(const Operation& operation, const protocol::Answer& answer);

// A block of stats, `key: value` lines, as the members of an object, without its braces; those of a
// list as an array. A list that begins with `next N` and a line of columns is an object with `next`
// and the rows. `rows`: their name. O(block).
std::string members_of_block(std::string_view block);
std::string json_of_block(std::string_view block, std::string_view rows);

// "body" or "body_base64" with its value, without braces. O(body).
std::string members_of_body(std::string_view body);

// Calls visit(line) for each line of a block after its first, without its end and, of a list,
// without "- ".
template <class Visit>
void for_each_line(std::string_view block, const Visit& visit) {
  for (std::size_t begin = block.find('\n'); begin != std::string_view::npos;) {
    block.remove_prefix(begin + 1);
    begin = block.find('\n');
    if (begin == std::string_view::npos) return;
    std::string_view line = block.substr(0, begin);
    if (line.starts_with("- ")) line.remove_prefix(2);
    visit(line);
  }
}

// Calls visit(word) for each word of a line, with one space between.
template <class Visit>
void for_each_field(std::string_view line, const Visit& visit) {
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    visit(word);
    line.remove_prefix(std::min(word.size() + 1, line.size()));
  }
}

}  // namespace tubed::api
