#include "tubectl/terminal.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "tubectl/utf8.h"

namespace tubed::tubectl {
namespace {

constexpr std::chrono::milliseconds kFirstShown{500};
constexpr std::chrono::milliseconds kShownEvery{100};
constexpr std::size_t kBarWidth = 30;

std::string_view sequence_of(Style style) {
  switch (style) {
    case Style::plain:
      return "";
    case Style::bold:
      return "\x1b[1m";
    case Style::dim:
      return "\x1b[2m";
    case Style::red:
      return "\x1b[31m";
    case Style::green:
      return "\x1b[32m";
    case Style::yellow:
      return "\x1b[33m";
    case Style::cyan:
      return "\x1b[36m";
  }
  return "";
}

}  // namespace

bool colours_unwanted() {
  // [no-color.org] counts when it is set and not empty.
  const char* const no_color = std::getenv("NO_COLOR");
  return no_color != nullptr && *no_color != '\0';
}

Paint Paint::for_descriptor(int descriptor) {
  const char* const terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return Paint(!colours_unwanted() && !dumb && ::isatty(descriptor) == 1);
}

std::string Paint::operator()(Style style, std::string_view text) const {
  if (!paints_ || style == Style::plain) return std::string(text);
  return fmt::format("{}{}\x1b[0m", sequence_of(style), text);
}

std::string shown_body(std::string body, bool several, bool raw) {
  const bool to_terminal = !raw && ::isatty(STDOUT_FILENO) == 1;
  if (to_terminal) body = escaped(body);
  if (several || (to_terminal && !body.ends_with('\n'))) body.push_back('\n');
  return body;
}

Progress::Progress(std::string label, std::uint64_t total)
    : label_(std::move(label)),
      total_(total),
      wanted_(::isatty(STDERR_FILENO) == 1),
      begin_(Clock::now()),
      next_(begin_ + kFirstShown) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::show(std::uint64_t done) {
  if (!wanted_) return;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + kShownEvery;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double rate = static_cast<double>(done) / seconds;
  std::string line = fmt::format("\r{} {}", label_, done);
  if (total_ > 0) {
    const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
    const auto filled = static_cast<std::size_t>(part * static_cast<double>(kBarWidth));
    line += fmt::format(" of {} [{:=<{}}{:<{}}] {:.0f} %", total_, "", filled, "",
                        kBarWidth - filled, 100 * part);
  }
  std::fputs(fmt::format("{}, {:.0f}/s\x1b[K", line, rate).c_str(), stderr);
  std::fflush(stderr);
}

Result<bool> confirm(const std::string& question) {
  // Not standard input: that may be the jobs.
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> terminal(std::fopen("/dev/tty", "r+e"));
  if (terminal == nullptr) return Error{"there is no terminal to ask on"};
  std::fputs(fmt::format("{} [y/N] ", question).c_str(), terminal.get());
  std::fflush(terminal.get());
  std::array<char, 16> line{};
  if (std::fgets(line.data(), static_cast<int>(line.size()), terminal.get()) == nullptr) {
    return false;
  }
  const std::string_view answer(line.data());
  return answer == "y\n" || answer == "Y\n" || answer == "yes\n";
}

}  // namespace tubed::tubectl
