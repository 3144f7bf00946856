#include "tubectl/exchange.h"

#include <array>
#include <cerrno>
#include <charconv>

#include <fmt/format.h>
#include <sys/socket.h>

#include "tubectl/system_error.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr std::string_view kOk = "OK ";

Error exchange_failed(std::string_view command) {
  if (errno == EAGAIN) errno = ETIMEDOUT;
  return system_error(fmt::format("{} was not answered", command));
}

Result<void> send_all(int descriptor, std::string_view command, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (done < 0 && errno != EINTR) return exchange_failed(command);
    if (done > 0) bytes.remove_prefix(static_cast<std::size_t>(done));
  }
  return {};
}

Result<void> receive_more(int descriptor, std::string_view command, std::string& input) {
  std::array<char, 4096> buffer;
  const ssize_t got = ::recv(descriptor, buffer.data(), buffer.size(), 0);
  if (got == 0) return Error{fmt::format("{} was not answered: the server hung up", command)};
  if (got < 0 && errno != EINTR) return exchange_failed(command);
  if (got > 0) input.append(buffer.data(), static_cast<std::size_t>(got));
  return {};
}

}  // namespace

Result<Exchanged> ask(int descriptor, std::string_view command) {
  const auto sent = send_all(descriptor, command, fmt::format("{}\r\n", command));
  if (!sent) return sent.error();
  std::string input;
  std::size_t end = 0;
  while ((end = input.find(kLineEnd)) == input.npos) {
    if (auto more = receive_more(descriptor, command, input); !more) return more.error();
  }
  Exchanged reply{input.substr(0, end), {}};
  if (!reply.line.starts_with(kOk)) return reply;
  std::size_t bytes = 0;
  std::from_chars(reply.line.data() + kOk.size(), reply.line.data() + reply.line.size(), bytes);
  const std::size_t begin = end + kLineEnd.size();
  while (input.size() < begin + bytes + kLineEnd.size()) {
    if (auto more = receive_more(descriptor, command, input); !more) return more.error();
  }
  reply.body = input.substr(begin, bytes);
  return reply;
}

}  // namespace tubed::tubectl
