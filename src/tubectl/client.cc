#include "tubectl/client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <iterator>

#include <fmt/format.h>
#include <poll.h>

#include "engine/types.h"
#include "tubectl/reply_reader.h"
#include "tubectl/system_error.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kCrLf = "\r\n";
// A reply's line is a word and a few numbers, or USING and a tube.
constexpr std::size_t kLongestLine = 1024;

std::uint64_t most_reply_bytes = kMaxReplyBytes;

bool has_body(std::string_view word) {
  return word == "OK" || word == "FOUND" || word == "RESERVED";
}

// The last number of a line, which is how long the body is.
std::optional<std::size_t> last_number(std::string_view line) {
  const std::string_view text = line.substr(line.rfind(' ') + 1);
  std::size_t number = 0;
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

}  // namespace

void limit_replies(std::uint64_t bytes) {
  most_reply_bytes = bytes;
}

std::uint64_t Answer::number() const {
  const auto space = line.find(' ');
  if (space == line.npos) return 0;
  std::uint64_t number = 0;
  std::from_chars(line.data() + space + 1, line.data() + line.size(), number);
  return number;
}

Result<Client> Client::connect(const Address& server, int patience_seconds) {
  auto socket = TRY(connect_to(server, patience_seconds));
  return Client(Connection(std::move(socket)));
}

Result<void> Client::send(std::string_view commands) {
  TRY(connection_.send(commands));
  while (connection_.blocked()) {
    TRY(wait(POLLIN | POLLOUT, kPatience));
    TRY(receive_some());
    TRY(connection_.flush());
  }
  return {};
}

Result<Answer> Client::receive(Duration patience) {
  for (;;) {
    auto answer = TRY(parse());
    if (answer.has_value()) return std::move(*answer);
    TRY(wait(POLLIN, patience));
    TRY(receive_some());
  }
}

Result<std::optional<Answer>> Client::take() {
  for (;;) {
    auto answer = parse();
    if (!answer || answer->has_value()) return answer;
    const auto got = TRY(receive_some());
    if (!got) return std::optional<Answer>();
  }
}

Result<Answer> Client::ask(std::string_view command) {
  TRY(send(fmt::format("{}\r\n", command)));
  return receive();
}

Result<void> Client::wait(short events, Duration patience) {
  const Duration longest = std::chrono::hours(24);
  pollfd polled{.fd = descriptor(), .events = events, .revents = 0};
  for (;;) {
    const auto part = std::min(patience, longest);
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(part).count();
    const int ready = ::poll(&polled, 1, static_cast<int>(milliseconds));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return system_error("cannot wait for the server");
    if (ready == 0 && patience <= longest) {
      return Error{fmt::format("the server was silent for {} s",
                               std::chrono::duration_cast<std::chrono::seconds>(patience).count())};
    }
  }
}

// False: nothing was there.
Result<bool> Client::receive_some() {
  std::array<char, 64 * 1024> buffer;
  const auto got = TRY(connection_.receive(buffer));
  if (taken_ > 0) {
    input_.erase(0, taken_);
    taken_ = 0;
  }
  input_.append(got);
  return !got.empty();
}

Result<std::optional<Answer>> Client::parse() {
  const std::string_view input = std::string_view(input_).substr(taken_);
  const auto end = input.find(kCrLf);
  if (end == input.npos) {
    if (input.size() > kLongestLine) return no_beanstalk(input);
    return std::optional<Answer>();
  }
  Answer answer{std::string(input.substr(0, end)), {}};
  // No reply has any other bytes in its line, and a terminal might obey them.
  if (!std::ranges::all_of(answer.line, [](char c) { return c >= ' ' && c <= '~'; })) {
    return no_beanstalk(answer.line);
  }
  std::size_t size = end + kCrLf.size();
  if (has_body(answer.word())) {
    const auto bytes = last_number(answer.line);
    if (!bytes) return no_beanstalk(answer.line);
    if (*bytes > most_reply_bytes) {
      return Error{fmt::format("the server announces a reply of {} bytes; --max-reply is {}",
                               *bytes, most_reply_bytes)};
    }
    if (input.size() < size + *bytes + kCrLf.size()) return std::optional<Answer>();
    // One that is off by a byte would have every later answer taken for another command's.
    if (input.substr(size + *bytes, kCrLf.size()) != kCrLf) return no_beanstalk(answer.line);
    answer.body = input.substr(size, *bytes);
    size += *bytes + kCrLf.size();
  }
  taken_ += size;
  return std::optional<Answer>(std::move(answer));
}

void append_put(const NewJob& job, std::string& commands) {
  fmt::format_to(std::back_inserter(commands), "put {} {} {} {}\r\n", job.priority,
                 job.delay_seconds, job.ttr_seconds, job.body.size());
  commands.append(job.body).append(kCrLf);
}

}  // namespace tubed::tubectl
