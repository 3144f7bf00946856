// Each answer of a node to its operator has a Content-Length, so its end is known without the end
// of the connection. parse_answer() is called again with all input after each receive: an answer is
// small, and its head has a few lines.
#include "client/http.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include "client/event_loop.h"
#include "client/system_error.h"
#include "text/ascii.h"
#include "text/numbers.h"

namespace tubed::client {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kHeadEnd = "\r\n\r\n";

Error not_http(std::string_view part) {
  return Error{fmt::format("the answer is not HTTP: {}", part)};
}

Result<int> status_of(std::string_view line) {
  constexpr std::string_view kVersion = "HTTP/1.1 ";
  const auto status = line.starts_with(kVersion.substr(0, 7)) && line.size() > kVersion.size()
                          ? parse_number<unsigned>(line.substr(kVersion.size(), 3))
                          : std::nullopt;
  if (!status || *status < 100) return not_http("it has no status line");
  return static_cast<int>(*status);
}

Result<std::size_t> length_of(std::string_view head) {
  constexpr std::string_view kField = "\r\ncontent-length: ";
  const std::string lower = ascii_lower(head);
  const auto field = lower.find(kField);
  if (field == lower.npos) return not_http("it has no Content-Length");
  const auto value = std::string_view(lower).substr(field + kField.size());
  const auto length = parse_number<std::size_t>(value.substr(0, value.find(kLineEnd)));
  if (!length) return not_http("its Content-Length is no number");
  return *length;
}

// The answer that `input` begins with. Nothing: a part of it is missing.
Result<std::optional<HttpAnswer>> parse_answer(std::string_view input, const HttpLimits& limits) {
  const auto line_end = input.find(kLineEnd);
  const auto head_end = input.find(kHeadEnd);
  if (std::min(head_end, input.size()) > limits.head_bytes)
    return Error{"the head of the answer is too large"};
  HttpAnswer answer;
  if (line_end != input.npos) answer.status = TRY(status_of(input.substr(0, line_end)));
  if (head_end == input.npos) return std::optional<HttpAnswer>();
  const std::size_t length = TRY(length_of(input.substr(0, head_end)));
  if (length > limits.body_bytes)
    return Error{fmt::format("the answer is larger than {} bytes", limits.body_bytes)};
  const std::string_view body = input.substr(head_end + kHeadEnd.size());
  if (body.size() < length) return std::optional<HttpAnswer>();
  answer.body = body.substr(0, length);
  return std::optional(std::move(answer));
}

// Appends to `input`. False: the server has closed the connection.
Result<bool> receive(int socket, TimePoint end, std::string& input) {
  std::array<char, 16 * 1024> buffer;
  for (;;) {
    const auto ready = wait_for(socket, POLLIN, std::max(end - Clock::now(), Duration::zero()));
    if (!ready) return system_error("cannot wait for the server");
    if (!*ready) return Error{"the server did not answer in time"};
    const ssize_t got = ::recv(socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got >= 0) {
      input.append(buffer.data(), static_cast<std::size_t>(got));
      return got > 0;
    }
    if (errno == ECONNRESET) return false;
    if (errno != EAGAIN && errno != EINTR) return system_error("cannot receive");
  }
}

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
  std::string input;
  for (;;) {
    if (auto answer = TRY(parse_answer(input, limits))) return std::move(*answer);
    if (!TRY(receive(connection.number(), end, input))) return Error{std::string(kHttpClosed)};
  }
}

}  // namespace tubed::client
