#include "test_mode/control_text.h"

#include <doctest/doctest.h>

namespace tubed::test_mode {

namespace {

template <class Filter>
std::string filtered(std::string_view text, std::size_t piece) {
  Filter filter;
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += piece) filter.take(text.substr(at, piece), out);
  return out;
}

// However the text is cut.
template <class Filter>
void check(std::string_view text, std::string_view expected) {
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    CAPTURE(piece);
    CHECK(filtered<Filter>(text, piece) == expected);
  }
}

}  // namespace

TEST_CASE("lines of a control connection end with LF or CR LF") {
  check<ControlInput>("stats\nuse a\r\nlist-tubes\n", "stats\r\nuse a\r\nlist-tubes\r\n");
  check<ControlInput>("a\rb\n\n", "a\rb\r\n\r\n");
}

TEST_CASE("the bodies of commands stay as they are, but for their line end") {
  check<ControlInput>("put 0 0 60 5\na\nb\r\n\nstats\n", "put 0 0 60 5\r\na\nb\r\n\r\nstats\r\n");
  check<ControlInput>("put 0 0 60 0\n\nput 0 0 60 0\r\n\r\n",
                      "put 0 0 60 0\r\n\r\nput 0 0 60 0\r\n\r\n");
  check<ControlInput>("test-load 3\n{}\n\nstats\n", "test-load 3\r\n{}\n\r\nstats\r\n");
  // The conversation discards the body of a malformed put whose length can be read.
  check<ControlInput>("put x 0 60 2\na\n\nstats\n", "put x 0 60 2\r\na\n\r\nstats\r\n");
  check<ControlInput>("put 0 0 60\na\nstats\n", "put 0 0 60\r\na\r\nstats\r\n");
}

TEST_CASE("a body that is too long does not hide the next line") {
  check<ControlInput>("put 0 0 60 1\nab\nstats\n", "put 0 0 60 1\r\nab\r\nstats\r\n");
  check<ControlInput>("put 0 0 60 1\na\rput 0 0 1 9\nstats\n",
                      "put 0 0 60 1\r\na\rput 0 0 1 9\r\nstats\r\n");
}

TEST_CASE("a line without an end is not held") {
  const std::string line(5 * kMostHeld, 'x');
  // Each piece copies what is held: not every size, as check() does.
  for (const std::size_t piece : {kMostHeld - 1, kMostHeld, kMostHeld + 1, line.size() + 1}) {
    CAPTURE(piece);
    CHECK(filtered<ControlInput>(line + "\nstats\n", piece) == line + "\r\nstats\r\n");
  }
  ControlInput input;
  std::string out;
  input.take(line + "\r", out);
  CHECK(out == line);
  input.take("\n", out);
  CHECK(out == line + "\r\n");
}

TEST_CASE("replies end with LF, and bodies stay as they are") {
  check<ControlOutput>("INSERTED 1\r\nRESERVED 1 5\r\na\r\nb\n\r\nOK 14\r\n---\n- default\n\r\n",
                       "INSERTED 1\nRESERVED 1 5\na\r\nb\n\nOK 14\n---\n- default\n\n");
  check<ControlOutput>("FOUND 1 0\r\n\r\nNOT_FOUND\r\n", "FOUND 1 0\n\nNOT_FOUND\n");
}

}  // namespace tubed::test_mode
