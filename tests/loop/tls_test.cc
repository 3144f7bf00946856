// TLS channels and handshakes, with an OpenSSL client at the other end of a TCP connection.
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <sys/socket.h>

#include "loop/signal.h"
#include "os/clock.h"
#include "tests/loop/loopback.h"
#include "tests/loop/tls_peer.h"

namespace tubed::loop_test {

using loop::Channel;
using loop::Loop;
using loop::Readiness;
using loop::TlsContext;
using loop::TlsHandshakes;
using loop::TlsOptions;
using os::Socket;
using os::Transfer;

namespace {

std::string pattern(std::size_t bytes) {
  std::string text(bytes, '\0');
  std::iota(text.begin(), text.end(), '\1');
  return text;
}

// The server's end of a connection from a TLS listener. Collects the bytes that arrive.
struct Server final : loop::TlsOwner, loop::ChannelOwner {
  explicit Server(const TlsOptions& options) {
    loop::ignore_broken_pipes();
    auto loaded = TlsContext::load(options);
    REQUIRE(loaded.ok());
    context = *loaded;
    handshakes.set_limits({.timeout = 2 * kLastResort});
  }

  void on_secured(std::unique_ptr<Channel> secured, const loop::TlsPeer& its_peer) override {
    channel = std::move(secured);
    peer = its_peer;
    channel->set_owner(*this);
    channel->want(true, false);
  }
  void on_handshake_failed(const std::string& from, std::string_view reason) override {
    failures.emplace_back(reason);
    addresses.push_back(from);
  }
  void on_ready(Readiness ready) override {
    ++reports;
    half_closed |= ready.half_closed;
    if (ready.readable && reads) read();
    if (ready.writable) flush();
    channel->want(reads && !ended, !output.empty());
  }
  void read() {
    std::vector<char> buffer(read_bytes);
    const Transfer got = channel->read(std::span<char>(buffer));
    if (got.kind == Transfer::Kind::done) input.append(buffer.data(), got.bytes);
    ended |= got.kind == Transfer::Kind::end;
    failed |= got.kind == Transfer::Kind::failed;
  }
  void flush() {
    const Transfer sent = channel->write(std::string_view(output));
    output.erase(0, sent.bytes);
  }

  // Returns the client of a new connection whose handshake has begun.
  TlsPeerClient connect(int version = 0) {
    const auto listener = os::listen_tcp("127.0.0.1", 0, 1);
    REQUIRE(listener.ok());
    Socket client = connect_to(os::local_address(*listener));
    Socket accepted(::accept4(listener->descriptor(), nullptr, nullptr, SOCK_NONBLOCK));
    REQUIRE(handshakes.begin(std::move(accepted), context, *this));
    return TlsPeerClient(std::move(client), version);
  }
  // Runs until both ends have done their handshake. Returns false if either has failed.
  bool secure(TlsPeerClient& client) {
    const std::size_t before = failures.size();
    return run_until(loop,
                     [&] {
                       const bool done = client.shake_hands();
                       return (done && channel != nullptr) || failures.size() > before;
                     }) &&
           failures.size() == before;
  }

  Loop loop;
  TlsHandshakes handshakes{loop};
  std::shared_ptr<const TlsContext> context;
  std::unique_ptr<Channel> channel;
  loop::TlsPeer peer;
  std::vector<std::string> failures;
  std::vector<std::string> addresses;
  std::string input;
  std::string output;
  std::size_t read_bytes = 65536;
  bool reads = true;
  bool ended = false;
  bool failed = false;
  bool half_closed = false;
  int reports = 0;
};

struct Files {
  Directory directory;
  CertificateFiles server = make_certificate(directory, "queue.example");
  TlsOptions options() const {
    TlsOptions options;
    options.certificates = {{server.certificate, server.key}};
    options.alpn = "beanstalk";
    return options;
  }
};

}  // namespace

TEST_CASE("bytes pass both ways in either version of TLS") {
  const Files files;
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Server server(files.options());
    TlsPeerClient client = server.connect(version);
    REQUIRE(server.secure(client));
    CHECK(SSL_version(client.ssl()) == version);
    CHECK(server.peer.subject.empty());
    CHECK(client.send("hello") == 5);
    REQUIRE(run_until(server.loop, [&] { return server.input == "hello"; }));
    server.output = "world";
    server.flush();
    REQUIRE(run_until(server.loop, [&] {
      client.receive();
      return client.input() == "world";
    }));
  }
}

TEST_CASE("records of every size arrive whole, whatever the reader's buffer") {
  const Files files;
  const std::string text = pattern(100'000);
  for (const std::size_t record : {1UL, 2UL, 3UL, 1000UL, 16383UL, 16384UL}) {
    for (const std::size_t buffer : {1UL, 999UL, 65536UL}) {
      // Single bytes, in and out, take long.
      const std::string sent = text.substr(0, record * buffer < 10 ? 2'000 : text.size());
      Server server(files.options());
      server.read_bytes = buffer;
      TlsPeerClient client = server.connect();
      REQUIRE(server.secure(client));
      std::size_t done = 0;
      CHECK(run_until(server.loop, [&] {
        done += client.send(std::string_view(sent).substr(done, 20'000), record);
        return server.input.size() == sent.size();
      }));
      CHECK(server.input == sent);
    }
  }
}

TEST_CASE("pieces of all sizes are written in order, even when the socket is full") {
  const Files files;
  Server server(files.options());
  TlsPeerClient client = server.connect();
  REQUIRE(server.secure(client));
  const std::string text = pattern(16'000'000);
  // Pieces from empty to longer than a record.
  std::vector<std::string_view> pieces;
  std::string_view rest = text;
  for (std::size_t size = 0; !rest.empty(); size = (size * 7 + 3) % 40'000) {
    pieces.push_back(rest.substr(0, size));
    rest.remove_prefix(pieces.back().size());
  }
  std::size_t sent = 0;
  bool was_full = false;
  REQUIRE(run_until(server.loop, [&] {
    std::vector<std::string_view> left;
    std::size_t skip = sent;
    for (const std::string_view piece : pieces) {
      const std::size_t skipped = std::min(skip, piece.size());
      skip -= skipped;
      if (left.size() < os::kMaxPieces && (skipped < piece.size() || piece.empty()))
        left.push_back(piece.substr(skipped));
    }
    const Transfer transfer = server.channel->write(left);
    CHECK(transfer.kind != Transfer::Kind::failed);
    sent += transfer.bytes;
    // The client reads only when nothing more fits.
    if (transfer.bytes == 0 || sent == text.size()) {
      was_full |= sent < text.size();
      client.receive();
    }
    return client.input().size() == text.size();
  }));
  CHECK(was_full);
  CHECK(client.input() == text);
}

TEST_CASE("decrypted bytes in OpenSSL are reported, and part of a record is not") {
  const Files files;
  Server server(files.options());
  server.read_bytes = 10;
  TlsPeerClient client = server.connect();
  REQUIRE(server.secure(client));
  CHECK(client.send(pattern(100)) == 100);
  CHECK(run_until(server.loop, [&] { return server.input.size() == 100; }));

  // Part of a record: the first bytes of its header.
  server.reports = 0;
  const std::array<char, 3> part = {'\x17', '\x03', '\x03'};
  write_all(client.socket(), {part.data(), part.size()});
  run_until(server.loop, [&] { return server.reports > 0; });
  const int reports = server.reports;
  run_ticks(server.loop, 50);
  CHECK(server.reports == reports);
  CHECK(!server.failed);
}

TEST_CASE("a channel that wants nothing reports nothing") {
  const Files files;
  Server server(files.options());
  server.read_bytes = 10;
  TlsPeerClient client = server.connect();
  REQUIRE(server.secure(client));
  CHECK(client.send(pattern(100)) == 100);
  run_until(server.loop, [&] { return !server.input.empty(); });
  server.reads = false;
  server.channel->want(false, false);
  run_ticks(server.loop, 20);
  server.channel->pause();
  const int reports = server.reports;
  run_ticks(server.loop, 20);
  CHECK(server.reports == reports);
  CHECK(server.channel->has_unread());
  server.reads = true;
  server.channel->want(true, false);
  CHECK(run_until(server.loop, [&] { return server.input.size() == 100; }));
  CHECK(!server.channel->has_unread());
}

TEST_CASE("a client can end its side with or without close_notify") {
  const Files files;
  for (const bool notifies : {true, false}) {
    Server server(files.options());
    TlsPeerClient client = server.connect();
    REQUIRE(server.secure(client));
    CHECK(client.send("last words") == 10);
    if (notifies) SSL_shutdown(client.ssl());
    if (!notifies) half_close(client.socket());
    REQUIRE(run_until(server.loop, [&] { return server.ended; }));
    CHECK(server.input == "last words");
    // The other direction is still open.
    server.output = "reply";
    server.flush();
    REQUIRE(run_until(server.loop, [&] {
      client.receive();
      return client.input() == "reply";
    }));
  }
}

TEST_CASE("a half-close that arrives with the end of the handshake is reported after it") {
  const Files files;
  for (const bool reads : {false, true}) {
    for (const std::string_view words : {"", "last words"}) {
      Server server(files.options());
      server.reads = reads;
      TlsPeerClient client = server.connect();
      REQUIRE(run_until(server.loop, [&] { return client.shake_hands(); }));
      REQUIRE(server.channel == nullptr);
      CHECK(client.send(words) == words.size());
      half_close(client.socket());
      REQUIRE(run_until(server.loop, [&] { return server.half_closed; }));
      REQUIRE(run_until(server.loop, [&] { return server.ended || !reads; }));
      CHECK(server.input == (reads ? words : ""));
      const int reports = server.reports;
      run_ticks(server.loop, 20);
      CHECK(server.reports == reports);
    }
  }
}

TEST_CASE("the end of the output and of the connection are announced") {
  const Files files;
  Server server(files.options());
  TlsPeerClient client = server.connect();
  REQUIRE(server.secure(client));
  server.output = "bye";
  server.flush();
  server.channel->end_output();
  REQUIRE(run_until(server.loop, [&] { return client.receive(); }));
  CHECK(client.input() == "bye");
  // Input can still be read.
  CHECK(client.send("more") == 4);
  CHECK(run_until(server.loop, [&] { return server.input == "more"; }));

  TlsPeerClient other = server.connect();
  server.channel.reset();
  REQUIRE(server.secure(other));
  server.channel.reset();
  CHECK(run_until(server.loop, [&] { return other.receive(); }));
}

TEST_CASE("garbage breaks the connection") {
  const Files files;
  Server server(files.options());
  TlsPeerClient client = server.connect();
  REQUIRE(server.secure(client));
  write_all(client.socket(), "stats\r\nstats\r\n");
  REQUIRE(run_until(server.loop, [&] { return server.failed; }));
  std::array<char, 8> buffer;
  CHECK(server.channel->read(std::span<char>(buffer)).kind == Transfer::Kind::failed);
  CHECK(server.channel->write(std::string_view("x")).kind == Transfer::Kind::failed);
}

TEST_CASE("old versions, other protocols and plain text are refused") {
  const Files files;
  Server server(files.options());
  SUBCASE("TLS 1.1") {
    TlsPeerClient client = server.connect(TLS1_1_VERSION);
    CHECK(!server.secure(client));
  }
  SUBCASE("another protocol") {
    TlsPeerClient client = server.connect();
    client.offer("h2");
    CHECK(!server.secure(client));
  }
  SUBCASE("plain text") {
    TlsPeerClient client = server.connect();
    write_all(client.socket(), "stats\r\n");
    CHECK(run_until(server.loop, [&] { return !server.failures.empty(); }));
  }
  SUBCASE("the end of the connection") {
    TlsPeerClient client = server.connect();
    reset(Socket(::dup(client.socket().descriptor())));
    client.close_socket();
    CHECK(run_until(server.loop, [&] { return !server.failures.empty(); }));
  }
  CHECK(server.failures.size() == 1);
  CHECK(server.addresses.front().starts_with("127.0.0.1:"));
  CHECK(server.handshakes.pending() == 0);
}

TEST_CASE("the settings can require TLS 1.3") {
  const Files files;
  TlsOptions options = files.options();
  options.only_1_3 = true;
  Server server(options);
  TlsPeerClient old = server.connect(TLS1_2_VERSION);
  CHECK(!server.secure(old));
  TlsPeerClient client = server.connect(TLS1_3_VERSION);
  client.offer("beanstalk");
  CHECK(server.secure(client));
}

TEST_CASE("a client cannot renegotiate") {
  const Files files;
  Server server(files.options());
  TlsPeerClient client = server.connect(TLS1_2_VERSION);
  REQUIRE(server.secure(client));
  SSL_renegotiate(client.ssl());
  SSL_do_handshake(client.ssl());
  run_until(server.loop, [&] {
    client.receive();
    return client.failed() || server.failed;
  });
  CHECK(client.failed());
}

TEST_CASE("the server name of the client selects the certificate") {
  const Files files;
  const CertificateFiles other = make_certificate(files.directory, "other.example");
  TlsOptions options = files.options();
  options.certificates.push_back({other.certificate, other.key});
  const auto name_for = [&](const std::string& wish) {
    Server server(options);
    TlsPeerClient client = server.connect();
    if (!wish.empty()) client.ask_for(wish);
    REQUIRE(server.secure(client));
    return client.server_name();
  };
  CHECK(name_for("queue.example") == "queue.example");
  CHECK(name_for("other.example") == "other.example");
  CHECK(name_for("unknown.example") == "queue.example");
  CHECK(name_for("") == "queue.example");
}

TEST_CASE("clients must present a certificate of the CA") {
  const Files files;
  const CertificateFiles mailer = make_certificate(files.directory, "mailer");
  TlsOptions options = files.options();
  options.client_ca = mailer.certificate;
  Server server(options);
  SUBCASE("a certificate of the CA") {
    TlsPeerClient client = server.connect();
    client.present(mailer);
    REQUIRE(server.secure(client));
    CHECK(server.peer.subject == "CN=mailer");
    CHECK(server.peer.names == std::vector<std::string>{"DNS:mailer"});
  }
  SUBCASE("no certificate") {
    TlsPeerClient client = server.connect();
    CHECK(!server.secure(client));
  }
  SUBCASE("a certificate of another CA") {
    TlsPeerClient client = server.connect();
    client.present(make_certificate(files.directory, "stranger"));
    CHECK(!server.secure(client));
  }
}

TEST_CASE("a handshake ends in time, and the oldest of too many is closed") {
  const Files files;
  Server server(files.options());
  server.handshakes.set_limits({.timeout = kLastResort, .pending = 2});
  const TlsPeerClient first = server.connect();
  const TlsPeerClient second = server.connect();
  CHECK(server.failures.empty());
  const TlsPeerClient third = server.connect();
  REQUIRE(server.failures.size() == 1);
  CHECK(server.failures[0] == "too many handshakes at once");
  CHECK(server.handshakes.pending() == 2);
  server.handshakes.set_limits({.timeout = std::chrono::milliseconds(20), .pending = 2});
  CHECK(run_until(server.loop, [&] { return server.failures.size() == 3; }));
  CHECK(server.failures[2] == "the handshake has taken too long");
  CHECK(server.handshakes.pending() == 0);
}

TEST_CASE("a handshake that has part of a record waits for more") {
  using Handshake = loop::TlsSession::Handshake;
  struct Owner final : loop::ChannelOwner {
    void on_ready(Readiness) override {
      constexpr int kMostSteps = 100;  // a timer that expires at once may keep the loop in its turn
      if (++steps > kMostSteps) return channel->pause();
      step = channel->shake_hands();
      channel->want(step == Handshake::reads, step == Handshake::writes);
    }
    std::unique_ptr<loop::TlsChannel> channel;
    Handshake step = Handshake::writes;
    int steps = 0;
  };
  const Directory directory;
  const CertificateFiles files = make_certificate(directory, "a");
  TlsOptions options;
  options.certificates = {{files.certificate, files.key}};
  options.client_ca = files.certificate;
  options.mutual = true;  // for both sides
  const auto context = TlsContext::load(options).value();
  for (const bool is_client : {false, true}) {
    Loop loop;
    auto [end, other] = connected_pair();
    loop::Connection connection(std::move(end));
    REQUIRE(connection.begin_tls(
        context, is_client ? loop::TlsSession::Side::client : loop::TlsSession::Side::server));
    Owner owner;
    owner.channel = loop::TlsChannel::open(loop, std::move(connection));
    REQUIRE(owner.channel != nullptr);
    owner.channel->set_owner(owner);
    owner.channel->want(!is_client, is_client);
    if (is_client) REQUIRE(run_until(loop, [&] { return owner.step == Handshake::reads; }));
    for (const std::string_view part : {"\x16", "\x03"}) {
      const int before = owner.steps;
      write_all(other, part);
      REQUIRE(run_until(loop, [&] { return owner.steps > before; }));
      run_ticks(loop, 50);
      REQUIRE(owner.steps == before + 1);
      CHECK(owner.step == Handshake::reads);
    }
  }
}

TEST_CASE("forget() closes the handshakes of an owner") {
  const Files files;
  Server server(files.options());
  TlsPeerClient client = server.connect();
  client.shake_hands();
  server.handshakes.forget(server);
  CHECK(server.handshakes.pending() == 0);
  CHECK(!run_until(server.loop, [&] { return client.shake_hands() || client.failed(); }) == false);
  CHECK(server.channel == nullptr);
}

TEST_CASE("many handshakes at once leave the loop to others") {
  const Files files;
  Server server(files.options());
  std::vector<TlsPeerClient> clients;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(server.connect());
    clients.back().shake_hands();
  }
  // Each iteration uses the keys for some of the handshakes, not for all: a client's part of a
  // handshake is done once the server has signed.
  std::ptrdiff_t most = 0;
  std::ptrdiff_t before = 0;
  REQUIRE(run_until(server.loop, [&] {
    const auto done =
        std::ranges::count_if(clients, [](TlsPeerClient& client) { return client.shake_hands(); });
    most = std::max(most, done - std::exchange(before, done));
    return done == 50 && server.handshakes.pending() == 0;
  }));
  CHECK(server.failures.empty());
  CHECK(most < 40);
}

TEST_CASE("files that cannot be used are named with the reason") {
  const Files files;
  const auto error = [&](const TlsOptions& options) {
    const auto loaded = TlsContext::load(options);
    return loaded.ok() ? "" : loaded.error().message;
  };
  const CertificateFiles other = make_certificate(files.directory, "other.example");
  TlsOptions options = files.options();
  CHECK(error(options).empty());
  const std::string& certificate = files.server.certificate;
  const std::string& key = files.server.key;
  options.certificates = {{certificate, other.key}};
  CHECK(error(options) == other.key + ": not the key of " + certificate);
  options.certificates = {{key, key}};
  CHECK(error(options) == key + ": no certificate in PEM");
  options.certificates = {{certificate, certificate}};
  CHECK(error(options) == certificate + ": no private key without a passphrase in PEM");
  options.certificates = {{files.directory.file("none"), key}};
  CHECK(error(options) ==
        files.directory.file("none") + ": cannot read: No such file or directory");
  options = files.options();
  options.client_ca = key;
  CHECK(error(options) == key + ": no certificate in PEM");
  REQUIRE(::chmod(key.c_str(), 0644) == 0);
  CHECK(error(files.options()) ==
        key + ": others may use this secret (mode 0644): chmod g-w,o= " + key);
}

TEST_CASE("the validity dates of certificates are known") {
  const Duration before = os::wall_time();
  const Files files;
  const Duration now = os::wall_time();
  const auto complaints = [&](const CertificateFiles& one) {
    TlsOptions options = files.options();
    options.certificates = {{one.certificate, one.key}};
    const auto loaded = TlsContext::load(options);
    REQUIRE(loaded.ok());
    return (*loaded)->complaints(now);
  };
  CHECK(complaints(files.server).empty());
  const auto expired = complaints(make_certificate(files.directory, "old", -20'000, -10'000));
  REQUIRE(expired.size() == 1);
  CHECK(expired[0].find("old.pem: expired on ") != std::string::npos);
  const auto future = complaints(make_certificate(files.directory, "new", 50, 100));
  REQUIRE(future.size() == 1);
  CHECK(future[0].find("new.pem: not valid before ") != std::string::npos);
  const auto loaded = TlsContext::load(files.options());
  // The certificate was made between `before` and `now`, and its dates are whole seconds.
  const Duration expires = (*loaded)->expires();
  CHECK(expires >= before + std::chrono::seconds(3598));
  CHECK(expires <= now + std::chrono::seconds(3600));
}

}  // namespace tubed::loop_test
