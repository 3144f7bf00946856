#include "client/connection.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>
#include <poll.h>

#include "client/event_loop.h"
#include "client/system_error.h"
#include "client/times.h"

namespace tubed::client {
namespace {

// For all connections of the process. Set once, while the command line is read.
std::uint64_t max_reply_bytes = kMaxReplyBytes;

}  // namespace

void limit_replies(std::uint64_t bytes) {
  max_reply_bytes = bytes;
}

Connection::Connection(Transport transport)
    : transport_(std::move(transport)), parser_({.max_body_bytes = max_reply_bytes}) {}

std::string to_string(const Target& server) {
  std::string text;
  for (const Address& address : server.addresses) {
    if (!text.empty()) text += ',';
    text += to_string(address);
  }
  return text;
}

Result<Connection> Connection::open(const Target& server, Duration timeout) {
  std::vector<Error> errors;
  for (const Address& address : server.addresses) {
    const bool is_last = &address == &server.addresses.back();
    auto connection = open_one(server, address, is_last ? timeout : std::min(timeout, kTryTimeout));
    if (connection) return connection;
    errors.push_back(std::move(connection).error());
  }
  // So that nothing_listens(), which reads the end, is true if it is true of all.
  std::stable_partition(errors.begin(), errors.end(), nothing_listens);
  std::string text;
  for (const Error& error : errors) {
    if (!text.empty()) text += "; ";
    text += error.message;
  }
  return Error{std::move(text)};
}

Result<Connection> Connection::open_one(const Target& server, const Address& address,
                                        Duration timeout) {
  TUBED_ASSERT(!address.tls || server.tls != nullptr);
  Transport transport(TRY(connect_to(address, timeout)));
  if (address.tls) TRY(transport.start_tls(*server.tls, address, timeout));
  Connection connection(std::move(transport));
  if (!server.token.empty()) TRY(connection.authenticate(server.token, timeout));
  if (server.addresses.size() == 1) return connection;
  if (auto serves = connection.check_that_it_serves(timeout); !serves)
    return Error{fmt::format("{}: {}", to_string(address), serves.error().message)};
  return connection;
}

// Another answer, such as UNAUTHORIZED, is the reason why it does not serve.
Result<void> Connection::check_that_it_serves(Duration timeout) {
  TRY(send("list-tube-used\r\n"));
  const auto reply = TRY(receive(timeout));
  if (reply.is("USING")) return {};
  return Error{fmt::format("the server answered \"{}\"", reply.line)};
}

// The Error contains only the server's text, never the token.
Result<void> Connection::authenticate(const std::string& token, Duration timeout) {
  TRY(send(fmt::format("auth {}\r\n", token)));
  const auto reply = TRY(receive(timeout));
  if (reply.is("AUTHENTICATED")) return {};
  if (reply.is("UNAUTHORIZED")) return Error{"the server does not accept the token"};
  if (reply.is("UNKNOWN_COMMAND")) return Error{"the server takes no tokens"};
  return Error{fmt::format("the server answered \"{}\" to a token", reply.line)};
}

Result<void> Connection::send(std::string_view commands) {
  TRY(wait_for_room());
  if (auto sent = transport_.send(commands); !sent) {
    // A server that refuses a client sends the reason, such as UNAUTHORIZED, and closes without
    // reading. receive() returns that reply.
    const auto received = receive_some();
    if (!received || !*received) return sent;
    return {};
  }
  return wait_for_room();
}

Result<void> Connection::wait_for_room() {
  while (transport_.blocked()) {
    if (!transport_.has_input()) TRY(wait(POLLIN | POLLOUT, kTimeout));
    TRY(receive_some());
    TRY(transport_.flush());
  }
  return {};
}

Result<Reply> Connection::receive(Duration timeout) {
  for (;;) {
    auto reply = TRY(parse());
    if (reply.has_value()) return std::move(*reply);
    TRY(wait_for_room());
    if (!has_input()) TRY(wait(POLLIN, timeout));
    TRY(receive_some());
  }
}

Result<std::optional<Reply>> Connection::take() {
  for (;;) {
    auto reply = parse();
    if (!reply || reply->has_value()) return reply;
    TRY(wait_for_room());
    const bool received = TRY(receive_some());
    if (!received && !transport_.blocked()) return std::optional<Reply>();
  }
}

Result<Reply> Connection::ask(std::string_view command) {
  TRY(send(fmt::format("{}\r\n", command)));
  return receive();
}

Result<Reply> Connection::ask_for_caps(std::uint32_t bits) {
  parser_.expect_bare_ok(true);
  auto reply = ask(fmt::format("set-caps {}", bits));
  parser_.expect_bare_ok(false);
  return reply;
}

Result<void> Connection::wait(short events, Duration timeout) {
  if (deadline_ != std::chrono::steady_clock::time_point::max()) {
    const auto left = deadline_ - std::chrono::steady_clock::now();
    timeout = std::clamp<Duration>(left, Duration::zero(), timeout);
  }
  const auto ready = wait_for(descriptor(), events, timeout);
  if (!ready) return system_error("cannot wait for the server");
  if (*ready) return {};
  return Error{fmt::format("the server was silent for {:.3g} s",
                           std::chrono::duration<double>(timeout).count())};
}

// Returns false if the socket has no input now.
Result<bool> Connection::receive_some() {
  std::array<char, 64 * 1024> buffer;
  const auto received = TRY(transport_.receive(buffer));
  if (taken_ == input_.size()) {
    input_.clear();
    taken_ = 0;
  }
  input_.append(received);
  return !received.empty();
}

Result<std::optional<Reply>> Connection::parse() {
  std::string_view input = std::string_view(input_).substr(taken_);
  ReplyView reply;
  const bool whole = TRY(parser_.next(input, reply));
  taken_ = input_.size() - input.size();
  if (!whole) return std::optional<Reply>();
  return std::optional<Reply>(parser_.own(reply));
}

void append_put(const NewJob& job, std::string& commands) {
  fmt::format_to(std::back_inserter(commands), "put {} {} {} {}", job.priority,
                 time_argument(job.delay), time_argument(job.ttr), job.body.size());
  if (!job.tags.empty()) commands.append(" ").append(job.tags);
  commands.append("\r\n").append(job.body).append("\r\n");
}

}  // namespace tubed::client
