// exchange_http() sends the request, and then reads the answer with an AnswerReader, which has all
// input that no line and no body has taken yet. read_head() reads one status line with its fields;
// heads of informational answers (100 to 199) are read and dropped. The fields decide how the body
// ends [RFC 9112, section 6.3], and read_body() reads it so.
//
// Every byte that arrives counts against a bound: lines of heads and trailers against head_bytes,
// content against body_bytes, and the line with the size of a chunk has a bound of its own. One
// deadline is for all, so a server that sends a byte now and then does not hold the caller up.
#include "client/http.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include "client/event_loop.h"
#include "client/system_error.h"
#include "text/ascii.h"
#include "text/numbers.h"

namespace tubed::client {
namespace {

// A size in hexadecimal digits, and extensions, which nothing here uses.
constexpr std::size_t kMaxChunkLine = 256;
constexpr int kNoContent = 204;
constexpr int kNotModified = 304;

Error not_http(std::string_view part) {
  return Error{fmt::format("the answer is not HTTP: {}", part)};
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

class AnswerReader {
 public:
  AnswerReader(int socket, TimePoint end, const HttpLimits& limits)
      : socket_(socket), end_(end), limits_(limits), head_left_(limits.head_bytes) {}

  Result<HttpAnswer> read() {
    Head head;
    do {
      head = TRY(read_head());
    } while (head.status < 200);
    HttpAnswer answer{.status = head.status, .body = {}};
    if (head.status != kNoContent && head.status != kNotModified) {
      TRY(read_body(head, answer.body));
    }
    return answer;
  }

 private:
  struct Head {
    int status = 0;
    std::optional<std::size_t> length;
    bool chunked = false;
  };

  Result<Head> read_head() {
    Head head;
    head.status = TRY(status_of(TRY(head_line())));
    for (;;) {
      const std::string line = TRY(head_line());
      if (line.empty()) return head;
      TRY(read_field(line, head));
    }
  }

  static Result<int> status_of(std::string_view line) {
    constexpr std::string_view kVersion = "HTTP/1.";
    constexpr std::size_t kStatusAt = kVersion.size() + 2;
    constexpr std::size_t kStatusDigits = 3;
    const bool has_status = line.starts_with(kVersion) &&
                            line.size() >= kStatusAt + kStatusDigits && line[kStatusAt - 1] == ' ';
    const auto status =
        has_status ? parse_number<unsigned>(line.substr(kStatusAt, kStatusDigits)) : std::nullopt;
    const std::string_view rest =
        has_status ? line.substr(kStatusAt + kStatusDigits) : std::string_view();
    if (!status || *status < 100 || (!rest.empty() && rest.front() != ' ')) {
      return not_http("it has no status line");
    }
    return static_cast<int>(*status);
  }

  static Result<void> read_field(std::string_view line, Head& head) {
    const auto colon = line.find(':');
    if (colon == line.npos || colon == 0 || is_blank(line.front())) {
      return not_http("a line of its head is no field");
    }
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = trimmed(line.substr(colon + 1));
    if (equal_but_for_case(name, "content-length")) {
      const auto length = parse_number<std::size_t>(value);
      if (!length || (head.length && head.length != length)) {
        return not_http("its Content-Length is no number");
      }
      head.length = length;
    } else if (equal_but_for_case(name, "transfer-encoding")) {
      if (head.chunked || !equal_but_for_case(value, "chunked")) {
        return not_http("its Transfer-Encoding is not chunked");
      }
      head.chunked = true;
    }
    return {};
  }

  Result<void> read_body(const Head& head, std::string& body) {
    if (head.chunked) {
      if (head.length) return not_http("it has two lengths");
      return read_chunks(body);
    }
    if (head.length) return take(*head.length, body);
    do {
      if (input_.size() - taken_ > limits_.body_bytes) return too_large();
    } while (TRY(receive()));
    body.append(input_, taken_);
    return {};
  }

  Result<void> read_chunks(std::string& body) {
    for (;;) {
      const std::string line = TRY(next_line(kMaxChunkLine));
      const std::string_view text(line);
      const auto size = parse_number<std::size_t>(trimmed(text.substr(0, text.find(';'))), 16);
      if (!size) return not_http("a chunk has no size");
      if (*size == 0) break;
      TRY(take(*size, body));
      if (!TRY(next_line(kMaxChunkLine)).empty()) return not_http("a chunk has no end");
    }
    while (!TRY(head_line()).empty()) {  // trailers
    }
    return {};
  }

  // Appends `bytes` bytes to the body.
  Result<void> take(std::size_t bytes, std::string& body) {
    if (bytes > limits_.body_bytes - body.size()) return too_large();
    while (input_.size() - taken_ < bytes) {
      if (!TRY(receive())) return cut_off();
    }
    body.append(input_, taken_, bytes);
    taken_ += bytes;
    return {};
  }

  Result<std::string> head_line() {
    std::string line = TRY(next_line(head_left_));
    head_left_ -= std::min(head_left_, line.size() + 1);
    return line;
  }

  // Without its end, which is LF or CR LF.
  Result<std::string> next_line(std::size_t most) {
    std::size_t searched = taken_;
    for (;;) {
      const auto end = input_.find('\n', searched);
      const std::size_t size = (end == input_.npos ? input_.size() : end) - taken_;
      if (size >= most) return Error{"the head of the answer is too large"};
      if (end != input_.npos) {
        std::string line = input_.substr(taken_, size);
        taken_ = end + 1;
        if (line.ends_with('\r')) line.pop_back();
        return line;
      }
      searched = input_.size() - taken_;  // receive() drops what was taken
      if (!TRY(receive())) return cut_off();
    }
  }

  // Appends to input_. False: the server has closed the connection.
  Result<bool> receive() {
    input_.erase(0, taken_);
    taken_ = 0;
    std::array<char, 16 * 1024> buffer;
    for (;;) {
      const auto ready = wait_for(socket_, POLLIN, std::max(end_ - Clock::now(), Duration::zero()));
      if (!ready) return system_error("cannot wait for the server");
      if (!*ready) return Error{"the server did not answer in time"};
      const ssize_t got = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got >= 0) {
        input_.append(buffer.data(), static_cast<std::size_t>(got));
        return got > 0;
      }
      if (errno == ECONNRESET) return false;
      if (errno != EAGAIN && errno != EINTR) return system_error("cannot receive");
    }
  }

  Error too_large() const {
    return Error{fmt::format("the answer is larger than {} bytes", limits_.body_bytes)};
  }
  static Error cut_off() { return Error{std::string(kHttpClosed)}; }

  int socket_;
  TimePoint end_;
  const HttpLimits& limits_;
  std::size_t head_left_;
  std::string input_;
  std::size_t taken_ = 0;  // prefix of input_ that was read
};

// A server may answer and close before it has read the whole request: then the rest is not sent,
// and the answer is read.
Result<void> send_request(int socket, std::string_view bytes, TimePoint end) {
  while (!bytes.empty()) {
    const ssize_t done = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (done >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(done));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return {};
    } else if (errno == EAGAIN) {
      const auto ready = wait_for(socket, POLLOUT, std::max(end - Clock::now(), Duration::zero()));
      if (!ready) return system_error("cannot wait for the server");
      if (!*ready) return Error{"the server did not take the request in time"};
    } else if (errno != EINTR) {
      return system_error("cannot send");
    }
  }
  return {};
}

// The name of the host matters to no unix socket, but HTTP/1.1 demands one.
std::string request_text(const HttpRequest& request) {
  std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n",
                                 request.method, request.path);
  if (!request.json.empty()) {
    text += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n",
                        request.json.size());
  }
  return text + "\r\n" + request.json;
}

}  // namespace

Result<HttpAnswer> exchange_http(os::Descriptor connection, const HttpRequest& request,
                                 const HttpLimits& limits) {
  const TimePoint end = Clock::now() + limits.timeout;
  TRY(send_request(connection.number(), request_text(request), end));
  return AnswerReader(connection.number(), end, limits).read();
}

}  // namespace tubed::client
