// TlsChannel: a channel whose bytes are encrypted on the socket.
//
// It begins with a handshake: the owner calls shake_hands() until it is done, then uses it like any
// channel. OpenSSL reads and writes the socket. If a read leaves decrypted bytes in OpenSSL's
// buffer, the channel reports readiness again, because the kernel cannot. An idle connection has no
// buffers.
//
// While the owner does not read, the channel examines the input until it finds a record of data. It
// can thus report a close_notify as a half-close, which the kernel does not see.
//
// A stream that ends without close_notify counts as ended: a command that was cut short has no line
// end and does not run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "loop/polled_socket.h"
#include "loop/timer.h"
#include "loop/tls_context.h"

struct ssl_st;

namespace tubed::loop {

// The certificate that a client has presented, signed by its CA.
struct TlsPeer {
  std::string subject;                  // "CN=mailer,O=example" [RFC 2253]; empty: no certificate
  std::vector<std::string> names = {};  // alternative names: "DNS:…", "email:…", "URI:…"
};

class TlsChannel final : public PolledSocket {
 public:
  // Returns null if the kernel refuses to watch the descriptor or memory is exhausted. `loop`
  // outlives the channel. `proxied`: what a proxy has reported.
  static std::unique_ptr<TlsChannel> open(Loop& loop, os::Socket socket,
                                          std::shared_ptr<const TlsContext> context,
                                          ProxiedClient proxied = {});
  ~TlsChannel() override;

  enum class Handshake : std::uint8_t {
    done,
    reads,   // continues when the channel is readable
    writes,  // continues when the channel is writable
    failed,
  };
  // Takes the next step of the handshake, which may use the private key. Precondition: the
  // handshake is neither done nor failed.
  Handshake shake_hands();
  // Returns OpenSSL's reason for a failed handshake.
  const std::string& failure() const { return failure_; }
  // Precondition: the handshake is done.
  TlsPeer peer_certificate() const;

  os::Transfer read(std::span<char> buffer) override;
  os::Transfer read(std::span<const std::span<char>> buffers) override;
  os::Transfer write(std::string_view piece) override;
  os::Transfer write(std::span<const std::string_view> pieces) override;
  bool has_unread() const override;
  std::string peer() const override;
  std::string tls_name() const override { return proxied_.tls_name; }
  void end_output() override;
  void want(bool readable, bool writable) override;
  void pause() override;

 protected:
  void on_events(Readiness ready) override;

 private:
  TlsChannel(Loop& loop, os::Socket socket, std::shared_ptr<const TlsContext> context,
             ProxiedClient proxied);

  os::Transfer::Kind read_record(std::span<char> buffer, std::size_t& got);
  os::Transfer::Kind write_record(std::string_view bytes, std::size_t& sent);
  os::Transfer::Kind kind_of(int result);
  bool has_decrypted() const;
  bool may_find_end() const;
  void look_for_end(Readiness& ready);

  struct FreeSsl {
    void operator()(ssl_st* ssl) const;
  };

  Loop& loop_;
  const ProxiedClient proxied_;
  std::shared_ptr<const TlsContext> context_;
  std::unique_ptr<ssl_st, FreeSsl> ssl_;
  std::unique_ptr<Timer> decrypted_;  // reports readiness that the kernel does not; made on demand
  std::string failure_;
  bool established_ = false;
  bool output_ended_ = false;
  bool starved_ = false;      // the last read found no complete record
  bool end_follows_ = false;  // of the stream or the connection; not reported by the kernel
  bool end_reported_ = false;
  bool data_follows_ = false;  // a record of data precedes the end, if the end has arrived
  bool wants_readable_ = false;
  bool wants_writable_ = false;
  bool broken_ = false;
};

}  // namespace tubed::loop
