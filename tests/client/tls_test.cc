// TLS below a Transport, against OpenSSL at the other end of a socket pair. The server's thread
// decides how its bytes are cut into records and when it reads. tests/tubectl/tls_test.py tests
// certificates that are refused.
#include "client/tls.h"

#include <array>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/event_loop.h"
#include "client/transport.h"
#include "os/descriptor.h"

namespace tubed::client {
namespace {

constexpr Duration kPatience = std::chrono::minutes(10);  // a last resort against a hang

template <auto kFree>
struct FreeBy {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};
template <class T, auto kFree>
using Owned = std::unique_ptr<T, FreeBy<kFree>>;

using Key = Owned<EVP_PKEY, EVP_PKEY_free>;
using Certificate = Owned<X509, X509_free>;

// A self-signed certificate for 127.0.0.1.
Certificate make_certificate(EVP_PKEY* key) {
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key);
  const Owned<X509_EXTENSION, X509_EXTENSION_free> names(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1"));
  X509_add_ext(certificate.get(), names.get(), -1);
  REQUIRE(X509_sign(certificate.get(), key, EVP_sha256()) > 0);
  return certificate;
}

// The server's side. Its functions block.
class Server {
 public:
  Server(SSL_CTX* context, int socket) : ssl_(SSL_new(context)) { SSL_set_fd(ssl_.get(), socket); }

  bool accept() { return SSL_accept(ssl_.get()) == 1; }
  void write(std::string_view bytes) {
    SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
  }
  std::string read(std::size_t size) {
    std::string bytes(size, '\0');
    std::size_t got = 0;
    while (got < size) {
      std::size_t done = 0;
      if (SSL_read_ex(ssl_.get(), bytes.data() + got, size - got, &done) != 1) break;
      got += done;
    }
    bytes.resize(got);
    return bytes;
  }
  void request_key_update() { SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED); }
  void end() { SSL_shutdown(ssl_.get()); }
  bool client_has_ended() { return read(1).empty() && SSL_get_shutdown(ssl_.get()) != 0; }

 private:
  Owned<SSL, SSL_free> ssl_;
};

// A client, and a server that runs `converse` in a thread.
class Pair {
 public:
  explicit Pair(std::function<void(Server&)> converse, int version = TLS1_3_VERSION) {
    const Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
    const Certificate certificate = make_certificate(key.get());
    trusted_ = fmt::format("/tmp/tubed-tls-test-{}.pem", ::getpid());
    std::FILE* const file = std::fopen(trusted_.c_str(), "w");
    REQUIRE(file != nullptr);
    PEM_write_X509(file, certificate.get());
    std::fclose(file);
    context_.reset(SSL_CTX_new(TLS_server_method()));
    SSL_CTX_set_max_proto_version(context_.get(), version);
    SSL_CTX_use_certificate(context_.get(), certificate.get());
    SSL_CTX_use_PrivateKey(context_.get(), key.get());

    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    transport_.emplace(os::Descriptor(ends[0]));
    thread_ = std::thread([this, end = ends[1], converse = std::move(converse)] {
      // OpenSSL's BIO raises SIGPIPE in the server; the client's BIO must not.
      sigset_t pipe;
      sigemptyset(&pipe);
      sigaddset(&pipe, SIGPIPE);
      ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
      const os::Descriptor socket(end);
      Server server(context_.get(), socket.number());
      if (server.accept()) converse(server);
    });
    const auto context =
        TlsContext::create({.ca = trusted_, .certificate = {}, .key = {}, .server_name = {}});
    REQUIRE(context);
    const auto started = transport_->start_tls(**context, Address{}, kPatience);
    CAPTURE(started.ok() ? "" : started.error().message);
    REQUIRE(started);
  }
  ~Pair() {
    transport_.reset();
    thread_.join();
    ::unlink(trusted_.c_str());
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  Transport& client() { return *transport_; }
  void end_client() { transport_.reset(); }

  void wait(short events) {
    const auto ready = wait_for(transport_->number(), events, kPatience);
    REQUIRE(ready);
    REQUIRE(*ready);
  }
  // Waits as an event loop does: for the socket, and only if no other input is left.
  Result<std::string> receive(std::size_t size, std::size_t buffer_bytes) {
    std::vector<char> buffer(buffer_bytes);
    std::string received;
    while (received.size() < size) {
      if (!transport_->has_input()) wait(transport_->blocked() ? POLLIN | POLLOUT : POLLIN);
      if (transport_->blocked()) TRY(transport_->flush());
      received += TRY(transport_->receive(buffer));
    }
    return received;
  }

 private:
  std::string trusted_;
  Owned<SSL_CTX, SSL_CTX_free> context_;
  std::optional<Transport> transport_;
  std::thread thread_;
};

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i * i % 23);
  return text;
}

// Releases the server's thread.
class Gate {
 public:
  Gate() { REQUIRE(::pipe(ends_.data()) == 0); }
  ~Gate() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  void open() { REQUIRE(::write(ends_[1], "x", 1) == 1); }
  void wait() {
    char byte = 0;
    [[maybe_unused]] const auto got = ::read(ends_[0], &byte, 1);
  }

 private:
  std::array<int, 2> ends_{};
};

}  // namespace

TEST_CASE("TLS: input does not stay where the socket does not show it") {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    for (const std::size_t record : {std::size_t{1}, std::size_t{700}, std::size_t{16384}}) {
      for (const std::size_t buffer : {std::size_t{1}, std::size_t{100}, std::size_t{65536}}) {
        CAPTURE(version);
        CAPTURE(record);
        CAPTURE(buffer);
        const std::string sent = pattern(40'000 / (16384 / record + 1));
        Pair pair(
            [&](Server& server) {
              for (std::size_t at = 0; at < sent.size(); at += record) {
                server.write(std::string_view(sent).substr(at, record));
              }
              server.read(1);
            },
            version);
        CHECK(pair.receive(sent.size(), buffer).value() == sent);
        // After at most one empty read the owner may wait.
        std::array<char, 10> rest;
        CHECK(pair.client().receive(rest)->empty());
        CHECK_FALSE(pair.client().has_input());
      }
    }
  }
}

TEST_CASE("TLS: one receive returns all available records") {
  Gate sent;
  Pair pair([&](Server& server) {
    for (int i = 0; i < 50; ++i) server.write("INSERTED 1\r\n");
    sent.open();
    server.read(1);
  });
  sent.wait();
  std::vector<char> buffer(65536);
  CHECK(pair.client().receive(buffer)->size() == 50 * 12);
}

TEST_CASE("TLS: bytes that the socket does not accept are sent later") {
  const std::string large = pattern(8 << 20);
  std::string received;
  Gate read;
  Pair pair([&](Server& server) {
    read.wait();
    received = server.read(large.size());
    server.write("done");
    server.read(1);
  });
  REQUIRE(pair.client().send(large));
  CHECK(pair.client().blocked());
  REQUIRE(pair.client().flush());
  CHECK(pair.client().blocked());
  read.open();
  while (pair.client().blocked()) {
    pair.wait(POLLOUT);
    REQUIRE(pair.client().flush());
  }
  CHECK(pair.receive(4, 100).value() == "done");
  CHECK(received == large);
}

TEST_CASE("TLS: a key update, also while the socket is full") {
  const std::string large = pattern(4 << 20);
  for (const bool full : {false, true}) {
    CAPTURE(full);
    std::string received;
    Gate read;
    Pair pair([&](Server& server) {
      server.request_key_update();
      server.write("before");
      read.wait();
      received = server.read(full ? large.size() : 5);
      server.request_key_update();
      server.write("after");
      received += server.read(3);
    });
    if (full) {
      REQUIRE(pair.client().send(large));
      REQUIRE(pair.client().blocked());
    }
    std::array<char, 100> buffer;
    std::string before;
    while (before.size() < 6) {
      if (!pair.client().has_input()) pair.wait(POLLIN);
      before += pair.client().receive(buffer).value();
    }
    CHECK(before == "before");
    read.open();
    while (pair.client().blocked()) {
      pair.wait(POLLOUT);
      REQUIRE(pair.client().flush());
      const auto nothing = pair.client().receive(buffer);
      REQUIRE(nothing);
      before += *nothing;
    }
    if (!full) REQUIRE(pair.client().send("hello"));
    const std::string rest = before.substr(6);
    CHECK(rest + pair.receive(5 - rest.size(), 100).value() == "after");
    REQUIRE(pair.client().send("end"));
    while (pair.client().blocked()) {
      pair.wait(POLLOUT);
      REQUIRE(pair.client().flush());
    }
    CHECK_FALSE(pair.receive(1, 100));  // the server has read everything and closed
    CHECK(received == (full ? large : "hello") + "end");
  }
}

TEST_CASE("TLS: the ends of a connection") {
  Pair regular([](Server& server) {
    server.write("bye");
    server.end();
  });
  CHECK(regular.receive(3, 100).value() == "bye");
  CHECK(regular.receive(1, 100).error().message == "the server closed a connection");
  CHECK(regular.receive(1, 100).error().message == "the server closed a connection");

  Pair cut([](Server& server) { server.write("by"); });
  CHECK(cut.receive(2, 100).value() == "by");
  CHECK(cut.receive(1, 100).error().message ==
        "the server closed a connection without the end of TLS");
  // Neither raises SIGPIPE.
  CHECK_FALSE(cut.client().send(pattern(100)));

  bool ended = false;
  {
    Pair client([&](Server& server) { ended = server.client_has_ended(); });
    client.end_client();
  }
  CHECK(ended);
}

TEST_CASE("SHA-256") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace tubed::client
