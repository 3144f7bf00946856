// Fuzzes the byte stream of a TLS connection below the level of records, which fuzz_tls leaves
// intact. The input drives an OpenSSL client whose bytes pass through `wire`. Operations send some
// of them to the socket, cut them, insert garbage or flip bits; the owner of the channel reads,
// pauses, writes and ends its output. Each side must receive a prefix of what the other has sent.
// Without damage and ends of the socket it must receive everything, and an announced end must be
// reported even while the owner does not read.
//
// The first byte chooses the version of TLS and whether the handshake is done before the rest.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "loop/loop.h"
#include "loop/signal.h"
#include "loop/tls_handshakes.h"

namespace {

using namespace tubed;
using os::Transfer;

template <class Write>
void write_file(const std::string& path, const Write& write) {
  std::FILE* stream = std::fopen(path.c_str(), "w");
  TUBED_ASSERT(stream != nullptr && ::fchmod(::fileno(stream), 0600) == 0);
  TUBED_ASSERT(write(stream) == 1);
  std::fclose(stream);
}

// A self-signed certificate, which no client here verifies.
std::shared_ptr<const loop::TlsContext> make_context() {
  char curve[] = "P-256";
  EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", curve);
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 365L * 86400);
  X509_set_pubkey(certificate, key);
  TUBED_ASSERT(X509_sign(certificate, key, EVP_sha256()) > 0);
  std::string directory = std::filesystem::temp_directory_path() / "fuzz_tls_records.XXXXXX";
  TUBED_ASSERT(::mkdtemp(directory.data()) != nullptr);
  loop::TlsOptions options;
  options.alpn = "beanstalk";
  options.certificates = {{directory + "/certificate", directory + "/key"}};
  write_file(options.certificates[0].certificate,
             [&](std::FILE* stream) { return PEM_write_X509(stream, certificate); });
  write_file(options.certificates[0].key, [&](std::FILE* stream) {
    return PEM_write_PrivateKey(stream, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
  X509_free(certificate);
  EVP_PKEY_free(key);
  auto context = loop::TlsContext::load(options);
  TUBED_ASSERT(context.ok());
  std::filesystem::remove_all(directory);
  return *context;
}

// The bytes that a side sends. Each position has its own byte, so a loss or an exchange is
// detected.
char byte_at(std::size_t position) {
  return static_cast<char>((position * 2654435761U) >> 13);
}
std::string bytes_from(std::size_t position, std::size_t count) {
  std::string bytes(count, '\0');
  for (char& one : bytes) one = byte_at(position++);
  return bytes;
}
// Checks and counts the received bytes.
void check(std::string_view received, std::size_t& position, std::size_t sent) {
  for (const char one : received) TUBED_ASSERT(one == byte_at(position++));
  TUBED_ASSERT(position <= sent);
}

class Server final : public loop::TlsOwner, public loop::ChannelOwner {
 public:
  explicit Server(loop::Loop& loop) : handshakes_(loop) {}

  void begin(os::Socket socket, const std::shared_ptr<const loop::TlsContext>& context) {
    TUBED_ASSERT(handshakes_.begin(std::move(socket), context, *this));
  }
  void want() {
    if (channel_ != nullptr) channel_->want(reads && !ended, sent > taken);
  }
  void pause() {
    if (channel_ != nullptr) channel_->pause();
  }
  void end_output() {
    if (channel_ == nullptr || sent > taken) return;
    channel_->end_output();
    output_ended = true;
  }
  void close() { channel_.reset(); }
  bool is_open() const { return channel_ != nullptr; }
  bool pending() const { return handshakes_.pending() > 0; }

  std::size_t received = 0;
  std::size_t client_sent = 0;
  std::size_t sent = 0;   // by the owner
  std::size_t taken = 0;  // by the channel
  std::size_t read_bytes = 4096;
  bool reads = true;
  bool failed = false;
  bool ended = false;
  bool half_closed = false;
  bool output_ended = false;

 private:
  void on_secured(std::unique_ptr<loop::Channel> channel, const loop::TlsPeer& peer) override {
    TUBED_ASSERT(peer.subject.empty() && peer.names.empty());
    channel_ = std::move(channel);
    channel_->set_owner(*this);
    want();
  }
  void on_handshake_failed(const std::string&, std::string_view reason) override {
    TUBED_ASSERT(!reason.empty());
    failed = true;
  }
  void on_ready(loop::Readiness ready) override {
    TUBED_ASSERT(!ready.readable || reads);
    half_closed |= ready.half_closed;
    failed |= ready.broken;
    if (ready.readable && !ended) read();
    if (ready.writable) write();
    if (failed) return channel_.reset();
    want();
  }
  void read() {
    // Two buffers, as for a body that is read directly into its job.
    std::string first(read_bytes / 3, '\0');
    std::string second(read_bytes - first.size(), '\0');
    const std::array<std::span<char>, 2> buffers = {first, second};
    const Transfer got = channel_->read(buffers);
    failed |= got.kind == Transfer::Kind::failed;
    ended |= got.kind == Transfer::Kind::end;
    if (got.kind != Transfer::Kind::done) return;
    TUBED_ASSERT(got.bytes > 0 && got.bytes <= read_bytes);
    check((first + second).substr(0, got.bytes), received, client_sent);
  }
  void write() {
    if (output_ended || sent == taken) return;
    const std::string bytes = bytes_from(taken, sent - taken);
    const std::string_view all = bytes;
    // Pieces of several sizes, one of them empty.
    const std::array<std::string_view, 4> pieces = {
        all.substr(0, all.size() / 7), std::string_view(), all.substr(all.size() / 7, 3),
        all.substr(std::min(all.size(), all.size() / 7 + 3))};
    const Transfer done = channel_->write(pieces);
    failed |= done.kind == Transfer::Kind::failed;
    TUBED_ASSERT(done.bytes <= bytes.size());
    taken += done.bytes;
  }

  loop::TlsHandshakes handshakes_;
  std::unique_ptr<loop::Channel> channel_;
};

class Client {
 public:
  Client(os::Socket socket, int version) : socket_(std::move(socket)) {
    static SSL_CTX* const context = [] {
      SSL_CTX* made = SSL_CTX_new(TLS_client_method());
      // Some partial and many small records.
      SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
      return made;
    }();
    ssl_ = SSL_new(context);
    SSL_set_max_proto_version(ssl_, version);
    SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(ssl_);
    step();
  }
  ~Client() { SSL_free(ssl_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool secured() const { return SSL_is_init_finished(ssl_) == 1; }

  // Takes the bytes that have arrived.
  void receive() {
    std::array<char, 16384> buffer;
    while (socket_) {
      const ssize_t got = ::recv(socket_.descriptor(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got <= 0) break;
      BIO_write(SSL_get_rbio(ssl_), buffer.data(), static_cast<int>(got));
    }
    step();
    std::size_t got = 0;
    while (secured() && SSL_read_ex(ssl_, buffer.data(), buffer.size(), &got) == 1)
      check({buffer.data(), got}, received, server_sent);
    ended = (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0;
    step();
  }
  // Encrypts `count` bytes as records of `record` bytes.
  void write(std::size_t count, std::size_t record) {
    while (secured() && count > 0 && !output_ended) {
      const std::string bytes = bytes_from(sent, std::min(count, record));
      std::size_t done = 0;
      if (SSL_write_ex(ssl_, bytes.data(), bytes.size(), &done) != 1) break;
      sent += done;
      count -= done;
    }
    step();
  }
  void end_output() {
    if (!secured() || output_ended) return;
    SSL_shutdown(ssl_);
    output_ended = true;
    step();
  }
  void update_key(bool also_server) {
    if (!secured() || output_ended || SSL_version(ssl_) != TLS1_3_VERSION) return;
    SSL_key_update(ssl_, also_server ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
    SSL_do_handshake(ssl_);
    step();
  }
  // Sends bytes of the wire to the socket.
  void deliver(std::size_t count) {
    if (!socket_) return;
    const ssize_t sent_now = ::send(socket_.descriptor(), wire.data(), std::min(count, wire.size()),
                                    MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent_now > 0) wire.erase(0, static_cast<std::size_t>(sent_now));
  }
  void half_close() {
    if (socket_) ::shutdown(socket_.descriptor(), SHUT_WR);
    socket_ended = true;
  }
  void close() {
    socket_ = os::Socket();
    socket_ended = true;
  }

  std::string wire;
  std::size_t received = 0;
  std::size_t server_sent = 0;
  std::size_t sent = 0;
  bool ended = false;
  bool output_ended = false;
  bool socket_ended = false;

 private:
  // Continues the handshake, and moves OpenSSL's output to the wire.
  void step() {
    if (!secured()) SSL_do_handshake(ssl_);
    ERR_clear_error();
    std::array<char, 16384> buffer;
    int got = 0;
    while ((got = BIO_read(SSL_get_wbio(ssl_), buffer.data(), buffer.size())) > 0)
      wire.append(buffer.data(), static_cast<std::size_t>(got));
  }

  os::Socket socket_;
  SSL* ssl_ = nullptr;
};

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  std::uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  // Returns a small number, sometimes a large one.
  std::size_t number() {
    const std::size_t one = byte();
    return one < 128 ? one : (one - 127) * 301;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

struct Run {
  Run(Input from, const std::shared_ptr<const loop::TlsContext>& context)
      : input(from), server(loop) {
    auto ends = os::socket_pair();
    TUBED_ASSERT(ends.ok());
    const std::uint8_t kind = input.byte();
    client = std::make_unique<Client>(std::move(ends->second),
                                      (kind & 1) != 0 ? TLS1_2_VERSION : TLS1_3_VERSION);
    server.begin(std::move(ends->first), context);
    if ((kind & 2) != 0) return;
    settle([&] { return client->secured() && server.is_open(); });
    TUBED_ASSERT(server.is_open());
  }

  void tick() { uv_run(loop.uv(), UV_RUN_NOWAIT); }
  // Lets everything arrive.
  template <class Condition>
  void settle(Condition condition) {
    for (int i = 0; i < 2000 && !condition(); ++i) {
      client->deliver(client->wire.size());
      tick();
      client->receive();
    }
  }

  void operate() {
    const std::uint8_t operation = input.byte();
    switch (operation % 16) {
      case 0:
      case 1: {
        const std::size_t count = input.number();
        client->write(count, 1 + input.number() % 16384);
        server.client_sent = client->sent;
        break;
      }
      case 2:
      case 3:
        client->deliver(input.number());
        break;
      case 4:
        tick();
        break;
      case 5:
        if (!server.output_ended) server.sent += input.number();
        client->server_sent = server.sent;
        server.want();
        break;
      case 6:
        client->receive();
        break;
      case 7:
        server.reads = !server.reads;
        server.want();
        break;
      case 8:
        server.read_bytes = 3 + input.number();
        break;
      case 9:
        server.pause();
        break;
      case 10:
        // After it has sent close_notify, OpenSSL reads no update: the connection breaks.
        if (!server.output_ended) client->update_key((input.byte() & 1) != 0);
        updated_keys = true;
        break;
      case 11:
        client->end_output();
        break;
      case 12:
        if (!updated_keys) server.end_output();
        break;
      case 13: {  // garbage
        const std::size_t place = input.number();
        const std::size_t count = input.byte() % 32;
        std::string bytes;
        for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(input.byte());
        client->wire.insert(std::min(place, client->wire.size()), bytes);
        corrupt |= !bytes.empty();
        break;
      }
      case 14: {
        const std::size_t place = input.number();
        const auto bits = static_cast<char>(input.byte());
        if (place >= client->wire.size()) break;
        client->wire[place] = static_cast<char>(client->wire[place] ^ bits);
        corrupt |= bits != 0;
        break;
      }
      case 15: {
        // Ends are rare, so much happens before them.
        const std::uint8_t which = input.byte();
        if (which == 1) client->half_close();
        if (which == 2) client->close();
        if (which == 3) server.close();
        closed |= which == 3;
        break;
      }
    }
  }

  void finish() {
    if (corrupt || closed || client->socket_ended) return tick();
    // If nothing precedes the end, it must be reported even though the owner does not read.
    if (client->output_ended && server.received == client->sent && server.is_open()) {
      server.reads = false;
      server.want();
      settle([&] { return server.half_closed || server.ended; });
      TUBED_ASSERT(server.half_closed || server.ended);
    }
    server.reads = true;
    server.read_bytes = 65536;
    server.want();
    settle([&] {
      return server.received == client->sent && client->received == server.sent &&
             server.ended == client->output_ended && client->ended == server.output_ended &&
             !server.pending();
    });
    TUBED_ASSERT(!server.failed && server.is_open());
    TUBED_ASSERT(server.received == client->sent);
    TUBED_ASSERT(server.ended == client->output_ended);
    TUBED_ASSERT(client->received == server.sent);
    TUBED_ASSERT(client->ended == server.output_ended);
  }

  loop::Loop loop;
  Input input;
  Server server;
  std::unique_ptr<Client> client;
  bool corrupt = false;
  bool closed = false;
  bool updated_keys = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto context = [] {
    loop::ignore_broken_pipes();
    return make_context();
  }();
  Run run({data, std::min<std::size_t>(size, 400)}, context);
  while (!run.input.empty()) run.operate();
  run.finish();
  TUBED_ASSERT(ERR_peek_error() == 0);
  return 0;
}
