#include "protocol/reply.h"

#include <algorithm>
#include <array>
#include <string>

#include <doctest/doctest.h>

using namespace tubed;
using namespace tubed::protocol;

namespace {

std::string take_all(ReplyBuffer& replies, std::size_t step, std::size_t pieces_at_once) {
  std::string all;
  std::array<std::string_view, 8> pieces;
  while (!replies.empty()) {
    const std::size_t count = replies.pieces(std::span(pieces).first(pieces_at_once));
    REQUIRE(count > 0);
    std::string joined;
    for (std::size_t i = 0; i < count; ++i) joined.append(pieces[i]);
    const std::size_t taken = std::min(step, joined.size());
    all.append(joined, 0, taken);
    const std::size_t before = replies.size();
    replies.take(taken);
    CHECK(replies.size() == before - taken);
  }
  return all;
}

}  // namespace

TEST_CASE("each kind of reply has its form") {
  ReplyBuffer replies;
  replies.line("DELETED");
  replies.line("INSERTED", std::uint64_t{18446744073709551615ULL});
  replies.line("USING", std::string_view("default"));
  replies.job("RESERVED", 7, Bytes::copy_of("body"));
  replies.job("FOUND", 8, Bytes::copy_of(""));
  replies.block([](std::string& text) { text += "---\n- a\n"; });
  CHECK(take_all(replies, 1000, 8) ==
        "DELETED\r\nINSERTED 18446744073709551615\r\nUSING default\r\nRESERVED 7 4\r\nbody\r\n"
        "FOUND 8 0\r\n\r\nOK 8\r\n---\n- a\n\r\n");
}

TEST_CASE("the line of a block has its length, of any number of digits") {
  for (const std::size_t bytes : {0UL, 9UL, 10UL, 999UL, 1000UL, 9999UL, 10'000UL, 123'456UL}) {
    CAPTURE(bytes);
    ReplyBuffer replies;
    replies.line("DELETED");
    replies.block([&](std::string& text) { text.append(bytes, 'x'); });
    replies.job("FOUND", 7, Bytes::copy_of(std::string(3000, 'y')));
    const std::string expected = "DELETED\r\nOK " + std::to_string(bytes) + "\r\n" +
                                 std::string(bytes, 'x') + "\r\nFOUND 7 3000\r\n" +
                                 std::string(3000, 'y') + "\r\n";
    CHECK(replies.size() == expected.size());
    CHECK(take_all(replies, 1000, 8) == expected);
  }
}

TEST_CASE("pieces of any size add up to the bytes that were appended") {
  const std::string large(5000, 'x');
  for (const std::size_t step : {1UL, 2UL, 7UL, 2047UL, 5001UL, 100000UL}) {
    for (const std::size_t at_once : {1UL, 2UL, 3UL, 8UL}) {
      ReplyBuffer replies;
      replies.job("RESERVED", 1, Bytes::copy_of(large));
      replies.line("DELETED");
      replies.job("RESERVED", 2, Bytes::copy_of(large));
      replies.job("RESERVED", 3, Bytes::copy_of(large));
      const std::string expected = "RESERVED 1 5000\r\n" + large +
                                   "\r\nDELETED\r\nRESERVED 2 5000\r\n" + large +
                                   "\r\nRESERVED 3 5000\r\n" + large + "\r\n";
      CHECK(replies.size() == expected.size());
      CHECK(take_all(replies, step, at_once) == expected);
      replies.line("DELETED");
      CHECK(take_all(replies, step, at_once) == "DELETED\r\n");
    }
  }
}

TEST_CASE("a buffer that is never empty frees the memory of sent bytes") {
  ReplyBuffer replies;
  std::string expected;
  std::string got;
  std::array<std::string_view, 1> piece;
  const Bytes large = Bytes::copy_of(std::string(3000, 'y'));
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    replies.line("INSERTED", i);
    expected += "INSERTED " + std::to_string(i) + "\r\n";
    if (i % 100 == 0) {
      replies.job("FOUND", i, large);
      expected += "FOUND " + std::to_string(i) + " 3000\r\n" + std::string(large.view()) + "\r\n";
    }
    while (replies.size() > 500) {
      REQUIRE(replies.pieces(piece) == 1);
      const std::size_t count = std::min<std::size_t>(piece[0].size(), 333);
      got.append(piece[0].substr(0, count));
      replies.take(count);
    }
    CHECK(replies.kept_bytes() < 20'000);
  }
  got += take_all(replies, 100, 1);
  CHECK(got == expected);
}

TEST_CASE("a large body is sent in place, a small body is copied") {
  const Bytes large = Bytes::copy_of(std::string(5000, 'x'));
  ReplyBuffer replies;
  replies.job("RESERVED", 1, large);
  std::array<std::string_view, 8> pieces;
  REQUIRE(replies.pieces(pieces) == 3);
  CHECK(pieces[1].data() == large.view().data());
  ReplyBuffer small;
  small.job("RESERVED", 1, Bytes::copy_of("small"));
  CHECK(small.pieces(pieces) == 1);
}
