// TlsChannel: a channel whose bytes are encrypted on the socket.
//
// Unless the handshake is done, it begins with it: the owner calls shake_hands() until it is done,
// then uses it like any channel. OpenSSL reads and writes the socket (tls_session.h). If a read
// leaves decrypted bytes in OpenSSL's buffer, the channel reports readiness again, because the
// kernel cannot. An idle connection has no buffers.
//
// While the owner does not read, the channel examines the input until it finds a record of data. It
// can thus report a close_notify as a half-close, which the kernel does not see.
//
// A stream that ends without close_notify counts as ended: a command that was cut short has no line
// end and does not run.
#pragma once

#include <memory>
#include <string>

#include "loop/connection.h"
#include "loop/polled_socket.h"
#include "loop/timer.h"

namespace tubed::loop {

class TlsChannel final : public PolledSocket {
 public:
  // Returns null if the kernel refuses to watch the descriptor. Precondition: the connection has a
  // session. `loop` outlives the channel. `proxied`: what a proxy has reported.
  static std::unique_ptr<TlsChannel> open(Loop& loop, Connection connection,
                                          ProxiedClient proxied = {});

  using Handshake = TlsSession::Handshake;
  // Takes the next step of the handshake, which may use the private key. Precondition: the
  // handshake is neither done nor failed.
  Handshake shake_hands() { return session_.shake_hands(); }
  // Precondition: the handshake is done.
  TlsPeer peer_of_session() const { return session_.peer(); }

  os::Transfer read(std::span<char> buffer) override;
  os::Transfer read(std::span<const std::span<char>> buffers) override;
  os::Transfer write(std::string_view piece) override;
  os::Transfer write(std::span<const std::string_view> pieces) override;
  bool has_unread() const override;
  std::string peer() const override;
  std::string tls_name() const override { return proxied_.tls_name; }
  void end_output() override;
  Connection release_connection() override;
  std::string failure() const override { return session_.failure(); }
  void want(bool readable, bool writable) override;
  void pause() override;

 protected:
  void on_events(Readiness ready) override;

 private:
  TlsChannel(Loop& loop, Connection connection, ProxiedClient proxied);

  bool may_find_end() const;
  void look_for_end(Readiness& ready);

  Loop& loop_;
  const ProxiedClient proxied_;
  TlsSession session_;                // destroyed before the socket
  std::unique_ptr<Timer> decrypted_;  // reports readiness that the kernel does not; made on demand
  bool end_follows_ = false;          // of the stream or the connection; not reported by the kernel
  bool end_reported_ = false;         // after the handshake
  bool ended_early_ = false;          // half-closed during the handshake; to be reported after it
  bool data_follows_ = false;         // a record of data precedes the end, if the end has arrived
  bool wants_readable_ = false;
  bool wants_writable_ = false;
};

}  // namespace tubed::loop
