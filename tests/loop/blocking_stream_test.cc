// A connection that leaves the loop for a thread, with and without TLS.
#include "loop/blocking_stream.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <doctest/doctest.h>
#include <sys/socket.h>

#include "loop/signal.h"
#include "tests/loop/loopback.h"
#include "tests/loop/tls_peer.h"

namespace tubed::loop_test {

using loop::BlockingStream;
using loop::Connection;
using loop::TlsContext;
using loop::TlsSession;

namespace {

constexpr Duration kLong = std::chrono::hours(1);

std::shared_ptr<const TlsContext> mutual(const TestAuthority& authority, const std::string& name) {
  const CertificateFiles files = authority.sign(name);
  loop::TlsOptions options;
  options.certificates.push_back({files.certificate, files.key});
  options.client_ca = authority.file;
  options.mutual = true;
  return TlsContext::load(options).value();
}

// Accepts the connection of another thread, and makes the handshake.
Connection accepted(const os::Socket& listener, const std::shared_ptr<const TlsContext>& context) {
  loop::Loop loop;
  Connection connection;
  REQUIRE(run_until(loop, [&] {
    connection = Connection(os::accept_from(listener));
    return static_cast<bool>(connection);
  }));
  REQUIRE(connection.begin_tls(context, TlsSession::Side::server));
  REQUIRE(
      run_until(loop, [&] { return connection.tls.shake_hands() == TlsSession::Handshake::done; }));
  return connection;
}

std::uint16_t port_of_listener(const os::Socket& socket) {
  const std::string address = os::local_address(socket);
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

}  // namespace

TEST_CASE("blocking streams carry bytes both ways over TLS, and both ends have the same binding") {
  loop::ignore_broken_pipes();
  const Directory directory;
  const TestAuthority authority(directory, "one");
  const auto of_client = mutual(authority, "a");
  const auto of_server = mutual(authority, "b");
  const os::Socket listener = listening();
  const std::string bytes(3'000'000, 'x');
  std::string client_binding;
  std::string answer(bytes.size(), '\0');
  bool complete = false;
  std::thread client([&] {
    BlockingStream stream(kLong);
    if (!stream.connect("127.0.0.1", port_of_listener(listener))) return;
    const auto peer = stream.secure(of_client);
    if (!peer) return;
    client_binding = peer->binding;
    complete = stream.write(bytes).ok() && stream.read(answer).ok() &&
               peer->names == std::vector<std::string>{"DNS:b"};
  });
  Connection connection = accepted(listener, of_server);
  const loop::TlsPeer peer = connection.tls.peer();
  BlockingStream stream(std::move(connection), kLong);
  std::string got(bytes.size(), '\0');
  CHECK(stream.read(got).ok());
  CHECK(stream.write(got).ok());
  client.join();
  CHECK(complete);
  CHECK(answer == bytes);
  CHECK(peer.names == std::vector<std::string>{"DNS:a"});
  CHECK(peer.binding.size() == 32);
  CHECK(peer.binding == client_binding);
  CHECK(stream.read(std::span(got.data(), 1)).error().message == "the connection was closed");
}

TEST_CASE("a blocking stream over TLS is interrupted at once, in its handshake too") {
  loop::ignore_broken_pipes();
  const Directory directory;
  const TestAuthority authority(directory, "one");
  const auto of_client = mutual(authority, "a");
  const auto of_server = mutual(authority, "b");
  const os::Socket listener = listening();
  for (const bool in_handshake : {false, true}) {
    BlockingStream stream(kLong);
    std::string error;
    std::thread client([&] {
      if (!stream.connect("127.0.0.1", port_of_listener(listener))) return;
      const auto peer = stream.secure(of_client);
      char byte = 0;
      error = peer ? stream.read(std::span(&byte, 1)).error().message : peer.error().message;
    });
    Connection connection;
    if (!in_handshake) connection = accepted(listener, of_server);
    stream.interrupt();
    client.join();
    CHECK((error == "stopped" || error.empty()));
  }
}

TEST_CASE("the time limit of a blocking stream is for the whole handshake of TLS") {
  loop::ignore_broken_pipes();
  const Directory directory;
  const TestAuthority authority(directory, "one");
  const os::Socket listener = listening();
  const auto context = mutual(authority, "a");
  std::atomic<bool> ended = false;
  std::string error;
  std::thread client([&] {
    BlockingStream stream(std::chrono::milliseconds(100));
    if (stream.connect("127.0.0.1", port_of_listener(listener)))
      error = stream.secure(context).error().message;
    ended = true;
  });
  loop::Loop loop;
  os::Socket socket;
  CHECK(run_until(loop, [&] {
    if (ended) return true;
    socket = os::accept_from(listener);
    return static_cast<bool>(socket);
  }));
  // The first bytes of a record of 16 KiB, one at a time.
  const std::string begin("\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03", 11);
  const std::string bytes = begin + std::string(2'000, 'r');
  std::size_t sent = 0;
  CHECK(run_until(loop, [&] {
    if (sent < bytes.size() && ::send(socket.descriptor(), &bytes[sent], 1, MSG_NOSIGNAL) == 1)
      ++sent;
    return ended.load();
  }));
  client.join();
  CHECK(error == "the handshake has taken too long");
}

TEST_CASE("two sessions between the same ends have different bindings") {
  const Directory directory;
  const TestAuthority authority(directory, "one");
  const auto context = mutual(authority, "a");
  std::vector<std::string> bindings;
  for (int i = 0; i < 2; ++i) {
    auto [one, other] = connected_pair();
    Connection client(std::move(one));
    Connection server(std::move(other));
    REQUIRE(client.begin_tls(context, TlsSession::Side::client));
    REQUIRE(server.begin_tls(context, TlsSession::Side::server));
    loop::Loop loop;
    REQUIRE(run_until(loop, [&] {
      for (Connection* end : {&client, &server}) {
        if (!end->tls.established()) end->tls.shake_hands();
      }
      return client.tls.established() && server.tls.established();
    }));
    CHECK(client.tls.peer().binding == server.tls.peer().binding);
    bindings.push_back(client.tls.peer().binding);
  }
  CHECK(bindings[0] != bindings[1]);
}

}  // namespace tubed::loop_test
