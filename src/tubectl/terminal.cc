// Four independent parts: checking UTF-8 and escaping text for a terminal; deciding whether colours
// are wanted; laying out tables, which needs all rows before the first line can be written; and the
// interaction: a changing line on standard error, which may show the progress of long work, and a
// question on /dev/tty. The progress appears only after half a second. The line is erased before
// anything else is printed, so it never mixes with results.
#include "tubectl/terminal.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/assert.h"
#include "text/units.h"

namespace tubed::tubectl {
namespace {

constexpr std::chrono::milliseconds kShownEvery{100};
constexpr std::size_t kBarWidth = 20;
constexpr std::size_t kUsualColumns = 80;

// The line on the terminal, if any.
StatusLine* shown_line = nullptr;

// Escape sequences of ECMA-48, which every terminal with colours supports.
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

// Takes a whole character. U+0080 to U+009F are control characters as well.
bool is_control_character(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const std::string_view character = text.substr(0, bytes == 0 ? 1 : bytes);
    text.remove_prefix(character.size());
    if (character == "\n" || character == "\t" || (bytes > 0 && !is_control_character(character))) {
      result += character;
    } else if (character == "\r") {
      result += "\\r";
    } else {
      for (const char byte : character) {
        fmt::format_to(std::back_inserter(result), "\\x{:02x}", static_cast<unsigned char>(byte));
      }
    }
  }
  return result;
}

std::string one_line(std::string_view text) {
  std::string result;
  for (const char character : escaped(text)) {
    if (character == '\n') {
      result += "\\n";
    } else if (character == '\t') {
      result += "\\t";
    } else {
      result += character;
    }
  }
  return result;
}

bool colours_unwanted() {
  // [no-color.org] The variable counts if it is set and not empty.
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

void TextTable::add(std::vector<Cell> row) {
  TUBED_ASSERT(row.size() == columns_.size());
  rows_.push_back(std::move(row));
}

// The padding is computed from the text without its colours, because escape sequences take no
// columns. A left-aligned last column is not padded, to avoid trailing blanks.
std::string TextTable::text(const Paint& paint) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = columns_[i].title.size();
    for (const auto& row : rows_) width = std::max(width, row[i].text.size());
    widths.push_back(width);
  }
  std::string text;
  const auto append = [&](std::size_t column, const Cell& cell) {
    const std::string padding(widths[column] - cell.text.size(), ' ');
    const bool right = columns_[column].right;
    const bool last = column + 1 == columns_.size();
    if (column > 0) text.append("  ");
    if (right) text.append(padding);
    text.append(paint(cell.style, cell.text));
    if (!right && !last) text.append(padding);
    if (last) text.push_back('\n');
  };
  for (std::size_t i = 0; i < columns_.size(); ++i) append(i, {columns_[i].title, Style::bold});
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) append(i, row[i]);
  }
  return text;
}

std::string shown_body(std::string body, bool several, bool raw) {
  const bool to_terminal = !raw && ::isatty(STDOUT_FILENO) == 1;
  if (to_terminal) body = escaped(body);
  if (several || (to_terminal && !body.ends_with('\n'))) body.push_back('\n');
  return body;
}

std::string progress_text(std::string_view label, std::uint64_t done, std::uint64_t total,
                          std::optional<double> part, double seconds) {
  if (total > 0) part = static_cast<double>(done) / static_cast<double>(total);
  if (part) part = std::clamp(*part, 0.0, 1.0);
  std::string line = fmt::format("{} {}", label, done);
  if (total > 0) line += fmt::format(" of {}", total);
  if (part) {
    const auto filled = static_cast<std::size_t>(*part * static_cast<double>(kBarWidth));
    line +=
        fmt::format(" [{:=<{}}{:<{}}] {:.0f} %", "", filled, "", kBarWidth - filled, 100 * *part);
  }
  if (seconds > 0) line += fmt::format(", {:.0f}/s", static_cast<double>(done) / seconds);
  if (part && *part > 0) {
    constexpr double kMost = 1e9;  // 30 years
    const double left = std::min(seconds / *part * (1 - *part), kMost);
    line += fmt::format(", {} left", time_in_words(static_cast<std::uint64_t>(left + 0.5)));
  }
  return line;
}

void Progress::show(std::uint64_t done, std::optional<double> part) {
  if (!line_.is_wanted()) return;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + kShownEvery;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  line_.show(progress_text(label_, done, total_, part, seconds));
}

StatusLine::StatusLine() : wanted_(::isatty(STDERR_FILENO) == 1) {}

StatusLine::~StatusLine() {
  clear();
}

void StatusLine::clear() {
  if (shown_line == this) shown_line = nullptr;
  if (!std::exchange(shown_, {}).empty()) std::fputs("\r\x1b[K", stderr);
}

void StatusLine::clear_shown() {
  if (shown_line != nullptr) shown_line->clear();
}

// Cuts the text, because a wrapped line cannot be erased. A cut within a character is repaired by
// the next text or at the end.
void StatusLine::show(std::string_view text) {
  if (!wanted_) return;
  winsize window{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1;
  text = text.substr(0, known ? window.ws_col - 1U : kUsualColumns - 1);
  if (text == shown_) return;
  shown_ = text;
  shown_line = this;
  std::fputs(fmt::format("\r{}\x1b[K", text).c_str(), stderr);
  std::fflush(stderr);
}

Result<bool> confirm(const std::string& question) {
  // Not standard input, which may contain the jobs.
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
