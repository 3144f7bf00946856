#include "client/reply_parser.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace tubed::client {
namespace {

struct Seen {
  std::string line;
  std::string body;

  friend bool operator==(const Seen&, const Seen&) = default;
};

// Appends the replies that `piece` completes.
Result<void> read(ReplyParser& parser, std::string_view piece, std::vector<Seen>& seen) {
  ReplyView reply;
  while (true) {
    const bool whole = TRY(parser.next(piece, reply));
    if (!whole) return {};
    seen.push_back({std::string(reply.line), std::string(reply.body)});
  }
}

const std::string kReplyStream =
    "INSERTED 12\r\n"
    "RESERVED 7 5\r\na\r\nb\n\r\n"
    "DELETED\r\n"
    "RESERVED 18446744073709551615 0\r\n\r\n"
    "FOUND 8 20\r\n0123456789abcdefghij\r\n"
    "OK 4\r\n---\n\r\n"
    "DELETED now\r\n"
    "TIMED_OUT\r\n";

std::vector<Seen> seen_in_stream(std::size_t kept_bytes) {
  std::vector<Seen> seen{{"INSERTED 12", ""},
                         {"RESERVED 7 5", "a\r\nb\n"},
                         {"DELETED", ""},
                         {"RESERVED 18446744073709551615 0", ""},
                         {"FOUND 8 20", "0123456789abcdefghij"},
                         {"OK 4", "---\n"},
                         {"DELETED now", ""},
                         {"TIMED_OUT", ""}};
  for (Seen& one : seen) one.body.resize(std::min(one.body.size(), kept_bytes));
  return seen;
}

}  // namespace

TEST_CASE("the parser gives the same replies complete, split at every byte, and byte by byte") {
  const std::string_view stream = kReplyStream;
  for (const std::size_t kept_bytes : {std::size_t{1000}, std::size_t{16}, std::size_t{0}}) {
    CAPTURE(kept_bytes);
    const auto expected = seen_in_stream(kept_bytes);
    const ReplyParser::Limits limits{.max_kept_bytes = kept_bytes};
    for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
      CAPTURE(cut);
      ReplyParser parser(limits);
      std::vector<Seen> seen;
      // Temporary copies show that the parser keeps no view of its input.
      REQUIRE(read(parser, std::string(stream.substr(0, cut)), seen));
      REQUIRE(read(parser, std::string(stream.substr(cut)), seen));
      REQUIRE(seen == expected);
    }
    ReplyParser parser(limits);
    std::vector<Seen> seen;
    for (const char byte : stream) REQUIRE(read(parser, std::string(1, byte), seen));
    CHECK(seen == expected);
  }
}

TEST_CASE("a reply is complete with its last byte, not before") {
  ReplyParser parser({});
  std::vector<Seen> seen;
  REQUIRE(read(parser, "RESERVED 1 2\r\nhi\r", seen));
  CHECK(seen.empty());
  REQUIRE(read(parser, "\n", seen));
  CHECK(seen.size() == 1);
}

TEST_CASE("an owned reply outlives the input and the next reply") {
  ReplyParser parser({});
  ReplyView view;
  std::string_view input = "FOUND 3 5\r\nhe";
  REQUIRE_FALSE(*parser.next(input, view));
  std::string rest = "llo\r\nINSERTED 4\r\n";
  input = rest;
  REQUIRE(*parser.next(input, view));
  const Reply found = parser.own(view);
  REQUIRE(*parser.next(input, view));
  const Reply inserted = parser.own(view);
  rest.assign(rest.size(), 'x');
  CHECK(found.line == "FOUND 3 5");
  CHECK(found.body == "hello");
  CHECK(found.number() == 3);
  CHECK(inserted.line == "INSERTED 4");
  CHECK(inserted.body.empty());
}

TEST_CASE("input that is not beanstalk is an error") {
  for (const std::string& text :
       {std::string("HTTP/1.1 400 Bad Request\n"), std::string("RESERVED\r\nRESERVED x 1\r\n"),
        std::string("RESERVED 1\r\n"), std::string("RESERVED 1 x\r\n"), std::string("OK\r\n"),
        std::string("RESERVED 1 1 1\r\n"), std::string("RESERVED 1 4294967296\r\n"),
        std::string("RESERVED 1 2\r\nhi.\n"), std::string("RESERVED 1 2\r\nhi\r."),
        std::string("USING \x1b]0;title\a\r\n"), std::string(2000, 'x')}) {
    CAPTURE(text);
    ReplyParser parser({});
    std::vector<Seen> seen;
    CHECK_FALSE(read(parser, text, seen));
  }
}

TEST_CASE("a TLS alert is not a reply, and is reported before its line ends") {
  ReplyParser parser({});
  std::string_view input("\x15\x03\x01\x00\x02\x02\x46", 7);
  ReplyView reply;
  CHECK(parser.next(input, reply).error().message == "the server speaks TLS: use --tls");
}

TEST_CASE("a body that is too long is refused before it arrives") {
  ReplyParser parser({.max_body_bytes = 10});
  std::vector<Seen> seen;
  REQUIRE(read(parser, "OK 10\r\n0123456789\r\n", seen));
  const auto refused = read(parser, "OK 11\r\n", seen);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "the server announces a reply of 11 bytes; --max-reply is 10");
}

}  // namespace tubed::client
