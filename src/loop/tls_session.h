// TlsSession: one end of a TLS connection over a non-blocking socket, by OpenSSL.
//
// It reads and writes the socket, which it does not own, and waits for nothing: after would_block,
// the caller waits until the socket is ready. Several threads may use a session in turn.
//
// A stream that ends without close_notify counts as ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loop/tls_context.h"
#include "os/socket.h"

struct ssl_st;

namespace tubed::loop {

// The other end of a session.
struct TlsPeer {
  // Of its certificate, which is signed by the CA: "CN=mailer,O=example" [RFC 2253]; empty: it has
  // presented none.
  std::string subject;
  std::vector<std::string> names = {};  // alternative names: "DNS:…", "email:…", "URI:…"
  // 32 bytes that both ends of this session have, and no other session. [RFC 9266] Only with a
  // mutual context.
  std::string binding = {};
};

class TlsSession {
 public:
  enum class Side : std::uint8_t { server, client };
  // The failure() of a peer whose first bytes are not TLS. Only with a mutual context.
  static constexpr std::string_view kNoTls = "the first bytes are not TLS";
  // The failure() of a handshake that the other end has broken off without a reason.
  static constexpr std::string_view kClosedByClient = "the client closed the connection";
  static constexpr std::string_view kClosedByServer = "the server closed the connection";

  TlsSession() = default;  // empty: no TLS
  // Empty if memory is exhausted. The descriptor of the socket stays open longer than the session.
  TlsSession(const os::Socket& socket, std::shared_ptr<const TlsContext> context, Side side);
  // Sends a close_notify, unless end_output() has sent it.
  ~TlsSession();
  TlsSession(TlsSession&&) noexcept = default;
  TlsSession& operator=(TlsSession&& other) noexcept;

  explicit operator bool() const { return ssl_ != nullptr; }

  enum class Handshake : std::uint8_t {
    done,
    reads,   // continues when the socket is readable
    writes,  // continues when the socket is writable
    failed,
  };
  // Takes the next step of the handshake, which may use the private key. Precondition: the
  // handshake is neither done nor failed.
  Handshake shake_hands();
  bool established() const { return established_; }
  // True after a failure: of the handshake, or of the connection.
  bool broken() const { return broken_; }
  // Returns OpenSSL's reason for the failure; empty if the connection was lost after the handshake.
  const std::string& failure() const { return failure_; }
  // Precondition: the handshake is done.
  TlsPeer peer() const;

  // Each reads or writes at most one record. `bytes` is how many, if the result is done.
  os::Transfer::Kind read(std::span<char> buffer, std::size_t& bytes);
  os::Transfer::Kind write(std::string_view piece, std::size_t& bytes);
  // Finds out whether data, the end or a failure comes next, without taking it.
  os::Transfer::Kind peek();
  // True if a read moves bytes without the kernel.
  bool has_decrypted() const;
  // After would_block: true if the socket must be writable, false if it must be readable.
  bool waits_to_write() const;
  // Sends a close_notify if the socket takes it.
  void end_output();

 private:
  os::Transfer::Kind kind_of(int result);
  bool begins_with_tls() const;

  struct FreeSsl {
    void operator()(ssl_st* ssl) const;
  };

  std::shared_ptr<const TlsContext> context_;
  std::unique_ptr<ssl_st, FreeSsl> ssl_;
  std::string failure_;
  Side side_ = Side::server;
  bool established_ = false;
  bool output_ended_ = false;
  bool starved_ = false;  // the last read or step of the handshake found no complete record
  bool broken_ = false;
};

}  // namespace tubed::loop
