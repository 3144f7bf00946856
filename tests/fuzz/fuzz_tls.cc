// Fuzzes a TLS connection. A script makes an OpenSSL client and the owner of a TlsChannel take
// steps: handshakes, records of any size, ends, key updates, and bytes that are not TLS. Each end
// must receive the bytes that the other has sent, in order; if nothing has broken the connection,
// all bytes must arrive.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <sys/socket.h>

#include "base/assert.h"
#include "loop/signal.h"
#include "tests/loop/tls_peer.h"

namespace {

using namespace tubed;
using loop_test::TlsPeerClient;

constexpr std::size_t kMaxSent = 200'000;  // by one end; more than the sockets hold

// Returns `bytes` bytes of the stream that both ends send, starting at position `from`.
std::string stream(std::size_t from, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((from + i) * 7 / 3);
  return text;
}

const loop::TlsOptions& options() {
  static const loop_test::Directory directory;
  static const loop::TlsOptions made = [] {
    const auto files = loop_test::make_certificate(directory, "fuzz");
    loop::TlsOptions result;
    result.certificates = {{files.certificate, files.key}};
    result.alpn = "beanstalk";
    return result;
  }();
  return made;
}

struct Server final : loop::TlsOwner, loop::ChannelOwner {
  void on_secured(std::unique_ptr<loop::Channel> secured, const loop::TlsPeer&) override {
    channel = std::move(secured);
    channel->set_owner(*this);
    update();
  }
  void on_handshake_failed(const std::string&, std::string_view reason) override {
    TUBED_ASSERT(!reason.empty());
    broken = true;
  }
  void on_ready(loop::Readiness ready) override {
    broken |= ready.broken;
    if (ready.readable) read();
    if (ready.writable) write();
    update();
  }
  void read() {
    std::string buffer(read_bytes, '\0');
    const std::size_t half = buffer.size() / 2;
    const std::array<std::span<char>, 2> parts = {std::span(buffer).first(half),
                                                  std::span(buffer).subspan(half)};
    const os::Transfer got = channel->read(parts);
    broken |= got.kind == os::Transfer::Kind::failed;
    ended |= got.kind == os::Transfer::Kind::end;
    TUBED_ASSERT(got.bytes <= buffer.size());
    TUBED_ASSERT(std::string_view(buffer).substr(0, got.bytes) == stream(received, got.bytes));
    received += got.bytes;
  }
  void write() {
    const std::string text = stream(sent, unsent);
    const std::string_view all = text;
    // Three pieces, like replies.
    const std::array<std::string_view, 3> pieces = {all.substr(0, unsent / 3), "",
                                                    all.substr(unsent / 3)};
    const os::Transfer done = channel->write(pieces);
    broken |= done.kind == os::Transfer::Kind::failed;
    TUBED_ASSERT(done.bytes <= unsent);
    sent += done.bytes;
    unsent -= done.bytes;
  }
  void update() {
    if (channel != nullptr && !broken) channel->want(reads && !ended, unsent > 0);
  }

  std::unique_ptr<loop::Channel> channel;
  std::size_t read_bytes = 65536;
  std::size_t received = 0;
  std::size_t sent = 0;
  std::size_t unsent = 0;
  bool reads = true;
  bool ended = false;
  bool output_ended = false;
  bool broken = false;
};

class Run {
 public:
  Run() {
    auto ends = os::socket_pair();
    TUBED_ASSERT(ends.ok());
    TUBED_ASSERT(handshakes_.begin(std::move(ends->first), context(), server_));
    client_.emplace(std::move(ends->second));
  }

  void step(unsigned what, std::size_t amount) {
    switch (what % 12) {
      case 0:
        client_->shake_hands();
        break;
      case 1:
        client_sends(amount * 97, 1 + amount % 16384);
        break;
      case 2:
        if (!server_.output_ended)
          server_.unsent = std::min(server_.unsent + amount * 97, kMaxSent);
        server_.update();
        break;
      case 3:
        client_receives();
        break;
      case 4:
        if (client_->shake_hands()) {
          SSL_shutdown(client_->ssl());
          client_ended_ = true;
        }
        break;
      case 5:
        ::shutdown(client_->socket().descriptor(), SHUT_WR);
        client_ended_ = true;
        break;
      case 6:
        // A full socket or a closed end accepts nothing.
        os::write_from(client_->socket(), stream(amount, amount % 40));
        disturbed_ = true;
        break;
      case 7:
        if (server_.channel != nullptr && server_.unsent == 0 && !server_.broken) {
          server_.channel->end_output();
          server_.output_ended = true;
        }
        break;
      case 8:
        server_.reads = !server_.reads;
        server_.update();
        break;
      case 9:
        server_.read_bytes = 2 + amount * 300;
        break;
      case 10:
        if (client_->shake_hands()) SSL_key_update(client_->ssl(), SSL_KEY_UPDATE_REQUESTED);
        break;
      case 11:
        client_sends(amount, 1);
        break;
    }
    loop_test::run_ticks(loop_, 2);
  }

  // Lets everything arrive that both ends have sent.
  void finish() {
    server_.reads = true;
    server_.update();
    for (int i = 0; i < 5'000 && !is_done(); ++i) {
      client_->shake_hands();
      if (server_.channel != nullptr) client_receives();
      loop_test::run_ticks(loop_);
    }
    const bool broken = server_.broken || client_->failed() || disturbed_ || client_ended_;
    TUBED_ASSERT(broken || is_done());
  }

 private:
  static std::shared_ptr<const loop::TlsContext> context() {
    static const auto loaded = loop::TlsContext::load(options());
    TUBED_ASSERT(loaded.ok());
    return *loaded;
  }

  bool is_done() const {
    return server_.channel != nullptr && server_.received == client_sent_ && server_.unsent == 0 &&
           client_->input().size() == server_.sent;
  }
  void client_sends(std::size_t bytes, std::size_t record) {
    if (client_ended_ || !client_->shake_hands()) return;
    bytes = std::min(bytes, kMaxSent - client_sent_);
    // A write that did not fit must be repeated with the same bytes, and at least as many.
    bytes = std::max(bytes, retried_);
    if (bytes == 0) return;
    const std::size_t sent = client_->send(stream(client_sent_, bytes), std::max(record, retried_));
    retried_ = sent < bytes ? std::min(std::max(record, retried_), bytes - sent) : 0;
    client_sent_ += sent;
  }
  void client_receives() {
    if (!client_->shake_hands()) return;
    client_->receive();
    const std::string& input = client_->input();
    TUBED_ASSERT(input == stream(0, input.size()));
  }

  loop::Loop loop_;
  Server server_;
  loop::TlsHandshakes handshakes_{loop_};
  std::optional<TlsPeerClient> client_;
  std::size_t client_sent_ = 0;
  std::size_t retried_ = 0;
  bool client_ended_ = false;
  bool disturbed_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMaxSteps = 200;
  static const bool ignored = [] {
    loop::ignore_broken_pipes();
    return true;
  }();
  static_cast<void>(ignored);
  Run run;
  for (std::size_t i = 0; i + 1 < size && i < 2 * kMaxSteps; i += 2) run.step(data[i], data[i + 1]);
  run.finish();
  return 0;
}
