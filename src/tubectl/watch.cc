// One thread. The looks capture what the subcommand prints, and a Display shows it.
//
// SIGINT and SIGTERM end the program in their handler: a look at a server that does not answer is
// interrupted at once. The handler writes bytes that are prepared in advance, which restore the
// terminal and show the last look again. A new text for it is made in the other of two buffers.
#include "tubectl/watch.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/system_error.h"
#include "tubectl/commands/command.h"
#include "tubectl/exit_codes.h"
#include "tubectl/terminal.h"

namespace tubed::tubectl {
namespace {

using std::chrono::steady_clock;

// A lost server is tried again at least this often, and at most this often.
constexpr steady_clock::duration kLongestRetry = std::chrono::seconds(5);
constexpr steady_clock::duration kShortestRetry = std::chrono::seconds(1);
constexpr std::size_t kUsualRows = 24;

// The alternate screen without a cursor; long lines are cut and not wrapped. [xterm: DECSET]
constexpr std::string_view kEnterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr std::string_view kLeaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l";

// The bytes that the handler writes.
std::array<std::string, 2> last_words;
std::atomic<const std::string*> words_at_end = nullptr;

void end_by_signal(int) {
  if (const std::string* const words = words_at_end.load()) {
    [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, words->data(), words->size());
  }
  ::_exit(0);
}

void say_at_end(std::string words) {
  std::string& other = words_at_end.load() == last_words.data() ? last_words[1] : last_words[0];
  other = std::move(words);
  words_at_end.store(&other);
}

// Keeps signals ignored that the parent ignores, as a shell does for commands in the background.
void end_on_stop_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action.sa_handler = end_by_signal;
    action.sa_flags = 0;
    sigfillset(&action.sa_mask);
    ::sigaction(number, &action, nullptr);
  }
}

// "2026-11-28T15:54:02Z" [RFC 3339]
std::string time_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

// Returns 0, or the exit code after printing the error.
int write_out(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (done < 0) {
      return fail(kExitIo, client::system_error("cannot write to standard output").message);
    }
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return 0;
}

bool is_terminal() {
  const char* const name = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && name != nullptr && std::string_view(name) != "dumb";
}

class Display {
 public:
  explicit Display(const Watching& watching)
      : watching_(watching),
        terminal_(is_terminal()),
        paint_(Paint::for_descriptor(STDOUT_FILENO)) {}

  // Shows the result of a look. Returns 0, or the exit code after printing the error.
  int show(const Printed& seen) {
    if (!std::exchange(lost_, {}).empty() && !terminal_) report("the server is back");
    const std::string time = time_now();
    if (!terminal_) {
      const int code = write_out(watching_.json ? with_time(seen.output, time)
                                                : fmt::format("{}\n{}", time, seen.output));
      std::fputs(seen.errors.c_str(), stderr);
      return code;
    }
    looked_ = time;
    shown_ = seen.output + seen.errors;
    return draw();
  }

  // The server is lost. Reports a loss once, until the next show().
  int lose(const std::string& reason) {
    const bool is_new = lost_.empty();
    lost_ = reason;
    if (terminal_) return draw();
    if (is_new) report(reason + "; trying again");
    return 0;
  }

 private:
  static void report(const std::string& what) { fail(0, fmt::format("{}: {}", time_now(), what)); }

  // Draws the frame, as many lines as fit.
  int draw() {
    winsize window{};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 0;
    std::size_t rows = known ? window.ws_row : kUsualRows;
    const std::string head = paint_(Style::dim, fmt::format("{}  {}  every {:.10g} s", looked_,
                                                            watching_.title, *watching_.seconds));
    std::string frame = std::string(entered_ ? "" : kEnterScreen) + "\x1b[H" + head + "\x1b[K";
    entered_ = true;
    rows -= std::min<std::size_t>(rows, 1);
    if (!lost_.empty()) {
      frame += "\n" + paint_(Style::red, one_line(lost_) + "; trying again") + "\x1b[K";
      rows -= std::min<std::size_t>(rows, 1);
    }
    std::string_view left = shown_;
    auto lines = static_cast<std::size_t>(std::ranges::count(left, '\n'));
    while (!left.empty() && rows > 0) {
      if (rows-- == 1 && lines > 1) {
        frame += fmt::format("\n{}\x1b[K", paint_(Style::dim, fmt::format("{} more lines", lines)));
        break;
      }
      const auto end = std::min(left.find('\n'), left.size());
      frame.append("\n").append(left.substr(0, end)).append("\x1b[K");
      left.remove_prefix(std::min(end + 1, left.size()));
      --lines;
    }
    say_at_end(fmt::format("{}{}\n{}", kLeaveScreen, head, shown_));
    return write_out(frame + "\x1b[J");
  }

  const Watching& watching_;
  const bool terminal_;
  const Paint paint_;
  bool entered_ = false;
  std::string looked_;  // the time of the last look
  std::string shown_;   // its text
  std::string lost_;    // why the server is lost; empty: it is not
};

}  // namespace

std::string with_time(std::string_view lines, std::string_view time) {
  std::string text;
  while (!lines.empty()) {
    std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    if (line.starts_with('{')) {
      line.remove_prefix(1);
      text += fmt::format("{{\"time\":\"{}\"{}", time, line.starts_with('}') ? "" : ",");
    }
    text.append(line).append("\n");
  }
  return text;
}

Result<int> look_or_watch(const Watching& watching, const Look& look) {
  if (!watching.seconds) return look();
  const auto interval = std::chrono::duration_cast<steady_clock::duration>(
      std::chrono::duration<double>(*watching.seconds));
  end_on_stop_signals();
  Display display(watching);
  for (bool first = true;; first = false) {
    const auto began = steady_clock::now();
    Printed seen;
    const auto code = [&] {
      const Capture capture(seen);
      return look();
    }();
    if (first && (!code || (*code != 0 && seen.output.empty()))) {
      std::fputs(seen.errors.c_str(), stderr);
      return code;
    }
    if (const int shown = code ? display.show(seen) : display.lose(code.error().message);
        shown != 0) {
      return shown;
    }
    const auto pause = code ? interval : std::clamp(interval, kShortestRetry, kLongestRetry);
    std::this_thread::sleep_until(began + pause);
  }
}

}  // namespace tubed::tubectl
