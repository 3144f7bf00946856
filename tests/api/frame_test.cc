#include "api/frame.h"

#include <doctest/doctest.h>

#include "api/problem.h"
#include "tests/api/api.h"

namespace tubed::api {
namespace {

Bytes bytes_of(const std::string& text) {
  Bytes bytes = Bytes::allocate(static_cast<std::uint32_t>(text.size()));
  std::ranges::copy(text, bytes.writable().begin());
  return bytes;
}

TEST_CASE("a frame is read as it was written") {
  for (const FrameHead& head :
       {FrameHead{}, FrameHead{.status = 201, .location = "/api/v1/jobs/7"},
        FrameHead{.status = 404, .content = Content::problem}, FrameHead{.status = 204}}) {
    for (const std::string& content :
         {std::string(), std::string("{}\n"), std::string(9000, '\n')}) {
      protocol::ReplyBuffer replies;
      write_frame(replies, head, content);
      std::string text = protocol::take_replies(replies);
      const auto found = take_frame_head(text);
      REQUIRE(found);
      CHECK(found->status == head.status);
      CHECK(found->content == head.content);
      CHECK(found->location == head.location);
      CHECK(found->bytes == content.size());
      CHECK(text == content);
    }
  }
}

TEST_CASE("a frame has small and large bodies, in pieces of any size") {
  for (const std::size_t size : {0U, 1U, 2047U, 2048U, 100'000U}) {
    std::string body(size, 'x');
    if (size > 2) body.replace(size / 2, 2, "\r\n");
    protocol::ReplyBuffer replies;
    write_frame(replies, {.content = Content::bytes}, bytes_of(body));
    std::string text;
    std::optional<FrameHead> head;
    while (!replies.empty()) {
      const std::size_t count = std::min<std::size_t>(replies.front().size(), head ? 4096 : 1);
      text.append(replies.front().substr(0, count));
      replies.take(count);
      if (!head) head = take_frame_head(text);
    }
    REQUIRE(head);
    CHECK(head->bytes == size);
    CHECK(std::string_view(type_of(head->content)) == "application/octet-stream");
    CHECK(text == body);
  }
}

TEST_CASE("a head that is not whole is not taken") {
  std::string text = "200 0  15";
  CHECK(!take_frame_head(text));
  text += "\r";
  CHECK(!take_frame_head(text));
  CHECK(text == "200 0  15\r");
}

TEST_CASE("a problem is one object of JSON") {
  const std::string text = to_json(bad_request("a \"b\"\n\xff"));
  CHECK(is_json(text));
  CHECK(member(text, "type") == "\"urn:tubed:problem:bad-request\"");
  CHECK(member(text, "status") == "400");
  CHECK(member(text, "reply").empty());
  for (const std::string_view word :
       {"NOT_FOUND", "DENIED", "UNAUTHORIZED", "BAD_FORMAT", "UNKNOWN_COMMAND", "EXPECTED_CRLF",
        "ALREADY_RESERVED", "NOT_IGNORED", "DEADLINE_SOON", "JOB_TOO_BIG", "INTERNAL_ERROR",
        "DRAINING", "OUT_OF_MEMORY"}) {
    CAPTURE(word);
    const ReplyProblem* found = find_problem(word);
    REQUIRE(found != nullptr);
    const Problem problem = problem_of(word);
    CHECK(problem.status >= 400);
    CHECK(is_json(to_json(problem)));
    CHECK(member(to_json(problem), "reply") == '"' + std::string(word) + '"');
  }
  for (const std::string_view word : {"", "INSERTED", "DELETED", "TIMED_OUT", "KICKED"})
    CHECK(find_problem(word) == nullptr);
}

}  // namespace
}  // namespace tubed::api
