#include "os/log.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/clock.h"
#include "text/quoting.h"

namespace tubed::os {

namespace {

constexpr std::string_view kNames[] = {"error", "warning", "info", "debug"};
constexpr int kJournaldPriorities[] = {3, 4, 6, 7};  // priorities of syslog

bool write_to_stderr(std::string_view line) {
  // If stderr is a full pipe, the line is dropped: a reader that hangs must not block the server.
  pollfd ready{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&ready, 1, 0) != 1 || (ready.revents & POLLOUT) == 0) return false;
  // One write per line keeps the lines of several processes apart.
  return ::write(STDERR_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

std::string timestamp(Duration wall_time) {
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(wall_time).count();
  constexpr int kPerSecond = 1000;
  const std::time_t seconds = milliseconds / kPerSecond;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds),
                     milliseconds % kPerSecond);
}

// A field cannot end the line or the string, or send commands to a terminal.
std::string in_quotes(std::string_view text) {
  return quoted(text, kUnicodeEscape);
}

bool needs_quotes(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_+./:,[]@%";
  return text.empty() || text.find_first_not_of(kPlain) != std::string_view::npos;
}

std::string text_line(std::string_view event, const std::vector<Log::Field>& fields) {
  std::string line(event);
  for (const auto& field : fields) {
    line.append(" ").append(field.key).append("=");
    if (needs_quotes(field.value)) {
      line.append(in_quotes(field.value));
    } else {
      line.append(field.value);
    }
  }
  return line;
}

std::string json_line(std::string_view level, std::string_view time, std::string_view event,
                      const std::vector<Log::Field>& fields) {
  std::string line =
      fmt::format(R"({{"time":"{}","level":"{}","event":{})", time, level, in_quotes(event));
  for (const auto& field : fields) {
    line.append(",\"").append(field.key).append("\":");
    line.append(field.is_number ? field.value : in_quotes(field.value));
  }
  return line + "}";
}

}  // namespace

// $JOURNAL_STREAM has the device and inode of journald's stream.
bool stderr_is_the_journal() {
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &status) != 0) return false;
  return fmt::format("{}:{}", status.st_dev, status.st_ino) == stream;
}

Log::Log() : Log(write_to_stderr, wall_time) {}

Log::Log(Writer writer, std::function<Duration()> wall_time)
    : writer_(std::move(writer)), wall_time_(std::move(wall_time)) {}

void Log::configure(Level level, Format format) {
  level_ = level;
  format_ = format;
  if (format == Format::automatic) {
    format_ = stderr_is_the_journal() ? Format::journald : Format::text;
  }
}

void Log::limited(Level level, Time now, std::string_view event, Fields fields) {
  if (level > level_) return;
  Window& window = windows_[event];
  if (now - window.begin >= std::chrono::seconds(1)) {
    window.begin = now;
    window.written = 0;
  }
  if (window.written >= kLimitedPerSecond) {
    ++window.suppressed;
    return;
  }
  ++window.written;
  write(level, event, fields, std::exchange(window.suppressed, 0));
}

void Log::write(Level level, std::string_view event, Fields fields, std::uint64_t suppressed) {
  if (level > level_) return;
  std::vector<Field> all(fields);
  std::erase_if(all, [](const Field& field) { return field.key.empty(); });
  if (suppressed > 0) all.emplace_back("suppressed", suppressed);
  if (lost_ > 0) all.emplace_back("lost", lost_);
  const auto index = static_cast<std::size_t>(level);
  std::string line;
  switch (format_) {
    case Format::journald:
      line = fmt::format("<{}>{}", kJournaldPriorities[index], text_line(event, all));
      break;
    case Format::json:
      line = json_line(kNames[index], timestamp(wall_time_()), event, all);
      break;
    case Format::automatic:
    case Format::text:
      line = fmt::format("{} {} {}", timestamp(wall_time_()), kNames[index], text_line(event, all));
      break;
  }
  lost_ = writer_(line + "\n") ? 0 : lost_ + 1;
}

}  // namespace tubed::os
