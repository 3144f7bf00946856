#include "tubectl/files.h"

#include <cstdlib>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/assert.h"

namespace tubed::tubectl {
namespace {

class File {
 public:
  explicit File(std::string_view text) {
    const int descriptor = ::mkstemp(path_.data());
    TUBED_ASSERT(descriptor >= 0);
    TUBED_ASSERT(::write(descriptor, text.data(), text.size()) ==
                 static_cast<ssize_t>(text.size()));
    ::close(descriptor);
  }
  ~File() { ::unlink(path_.c_str()); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  LineInput open() const { return std::move(*LineInput::open(path_)); }

 private:
  std::string path_ = "/tmp/tubed-lines-XXXXXX";
};

TEST_CASE("the part of a file that was returned") {
  const File file("a\nbc\ndefgh\n");
  LineInput input = file.open();
  CHECK(*input.part() == 0);
  REQUIRE(input.next(100).value());
  CHECK(*input.part() == doctest::Approx(2.0 / 11));
  REQUIRE(input.next(100).value());
  REQUIRE(input.next(100).value());
  CHECK(*input.part() == 1);
  CHECK_FALSE(input.next(100).value());
  CHECK(*input.part() == 1);
  const File empty("");
  CHECK_FALSE(empty.open().part());
}

std::vector<std::string> lines_of(std::string_view text) {
  const File file(text);
  LineInput input = file.open();
  std::vector<std::string> lines;
  for (auto line = input.next(1'000'000); line.value(); line = input.next(1'000'000)) {
    CHECK_FALSE(line.value()->too_long);
    lines.emplace_back(line.value()->text);
    CHECK(input.number() == lines.size());
  }
  return lines;
}

}  // namespace

TEST_CASE("lines of a file, the last with or without a line end") {
  using Lines = std::vector<std::string>;
  CHECK(lines_of("").empty());
  CHECK(lines_of("\n") == Lines{""});
  CHECK(lines_of("a") == Lines{"a"});
  CHECK(lines_of("a\n\nb\r\nc") == Lines{"a", "", "b\r", "c"});
  CHECK(lines_of("a\nb\n") == Lines{"a", "b"});
}

TEST_CASE("lines longer than a piece of input") {
  std::string text;
  for (int i = 0; i < 5; ++i) text += std::string(300'000, static_cast<char>('a' + i)) + "\n";
  const auto lines = lines_of(text);
  REQUIRE(lines.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(lines[i] == std::string(300'000, static_cast<char>('a' + static_cast<int>(i))));
  }
}

TEST_CASE("a line that is too long is cut, and rest() returns all input after the cut") {
  const File file("12345\n" + std::string(600'000, 'x') + "\nlast");
  LineInput input = file.open();
  CHECK_FALSE(input.is_stream());
  CHECK(input.next(5).value()->text == "12345");
  const auto line = input.next(5);
  CHECK(line.value()->text == "xxxxx");
  CHECK(line.value()->too_long);
  CHECK(input.ready());
  std::string rest;
  CHECK(input.rest([&rest](std::string_view piece) -> Result<void> {
    rest += piece;
    return {};
  }));
  CHECK(rest == std::string(599'995, 'x') + "\nlast");
}

TEST_CASE("a line that is too long is followed by the next line") {
  const File file(std::string(600'000, 'x') + "\nnext\n" + std::string(9, 'y'));
  LineInput input = file.open();
  CHECK(input.next(5).value()->too_long);
  CHECK(input.next(5).value()->text == "next");
  CHECK(input.number() == 2);
  CHECK(input.next(5).value()->too_long);
  CHECK_FALSE(input.next(5).value());
}

TEST_CASE("pass_over() skips lines of any length, and rest() returns the input after them") {
  const File file("first\n" + std::string(600'000, 'x') + "\nlast\n");
  LineInput input = file.open();
  CHECK(input.next(5).value()->text == "first");
  CHECK(input.pass_over(2));
  CHECK(input.number() == 2);
  CHECK(input.pass_over(1));
  std::string rest;
  CHECK(input.rest([&rest](std::string_view piece) -> Result<void> {
    rest += piece;
    return {};
  }));
  CHECK(rest == "last\n");
  CHECK(input.pass_over(9));
}

TEST_CASE("a missing file") {
  const auto input = LineInput::open("/nowhere/jobs.jsonl");
  REQUIRE_FALSE(input);
  CHECK(input.error().message == "cannot open /nowhere/jobs.jsonl: No such file or directory");
}

}  // namespace tubed::tubectl
