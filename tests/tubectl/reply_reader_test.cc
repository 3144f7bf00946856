#include "tubectl/reply_reader.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

namespace tubed::tubectl {
namespace {

struct Seen {
  Reply::Kind kind;
  JobId id;
  std::string line;
  std::string head;

  friend bool operator==(const Seen&, const Seen&) = default;
};

// Appends what the reader makes of that piece.
Result<void> read(ReplyReader& reader, std::string_view piece, std::vector<Seen>& seen) {
  reader.feed(piece);
  Reply reply;
  while (true) {
    auto whole = reader.next(reply);
    if (!whole) return whole.error();
    if (!*whole) return {};
    seen.push_back(Seen{reply.kind, reply.id, std::string(reply.line), std::string(reply.head)});
  }
}

const std::string kReplyStream =
    "INSERTED 12\r\n"
    "RESERVED 7 5\r\na\r\nb\n\r\n"
    "DELETED\r\n"
    "RESERVED 18446744073709551615 0\r\n\r\n"
    "RESERVED 8 20\r\n0123456789abcdefghij\r\n"
    "DELETED now\r\n"
    "TIMED_OUT\r\n";

const std::vector<Seen> kSeen{
    {Reply::Kind::inserted, 0, "INSERTED 12", ""},
    {Reply::Kind::reserved, 7, "RESERVED", "a\r\nb\n"},
    {Reply::Kind::deleted, 0, "DELETED", ""},
    {Reply::Kind::reserved, UINT64_MAX, "RESERVED", ""},
    {Reply::Kind::reserved, 8, "RESERVED", "0123456789abcdef"},
    {Reply::Kind::other, 0, "DELETED now", ""},
    {Reply::Kind::other, 0, "TIMED_OUT", ""},
};

}  // namespace

TEST_CASE("replies are the same whole, cut at every byte, and byte by byte") {
  const std::string_view stream = kReplyStream;
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    CAPTURE(cut);
    ReplyReader reader;
    std::vector<Seen> seen;
    // Copies, so that nothing can rest on input that is gone.
    REQUIRE(read(reader, std::string(stream.substr(0, cut)), seen));
    REQUIRE(read(reader, std::string(stream.substr(cut)), seen));
    REQUIRE(seen == kSeen);
  }
  ReplyReader reader;
  std::vector<Seen> seen;
  for (const char byte : stream) REQUIRE(read(reader, std::string(1, byte), seen));
  CHECK(seen == kSeen);
}

TEST_CASE("a reply counts when its last byte is there, not before") {
  ReplyReader reader;
  std::vector<Seen> seen;
  REQUIRE(read(reader, "RESERVED 1 2\r\nhi\r", seen));
  CHECK(seen.empty());
  REQUIRE(read(reader, "\n", seen));
  CHECK(seen.size() == 1);
}

TEST_CASE("what is no beanstalk is an error") {
  for (const std::string& text :
       {std::string("HTTP/1.1 400 Bad Request\n"), std::string("RESERVED\r\nRESERVED x 1\r\n"),
        std::string("RESERVED 1\r\n"), std::string("RESERVED 1 x\r\n"),
        std::string("RESERVED 1 1 1\r\n"), std::string("RESERVED 1 4294967296\r\n"),
        std::string("RESERVED 1 2\r\nhi.\n"), std::string("RESERVED 1 2\r\nhi\r."),
        std::string(2000, 'x')}) {
    CAPTURE(text);
    ReplyReader reader;
    std::vector<Seen> seen;
    CHECK_FALSE(read(reader, text, seen));
  }
}

}  // namespace tubed::tubectl
