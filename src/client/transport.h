// Transport: a connected non-blocking socket, with or without TLS, and the bytes that the kernel
// has not accepted yet.
//
// It knows no protocol, no clock and no event loop. The owner waits until the socket is ready and
// then calls flush() or receive(). It does not wait while has_input() is true: that input is no
// longer in the socket. An Error means that the connection is lost.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "client/address.h"
#include "client/tls.h"
#include "os/descriptor.h"

namespace tubed::client {

class Transport {
 public:
  // Sets O_NONBLOCK on `descriptor`.
  explicit Transport(os::Descriptor descriptor);
  // Starts TLS, and waits for the handshake for at most `timeout`. Precondition: nothing has been
  // sent or received.
  Result<void> start_tls(const TlsContext& context, const Address& server, Duration timeout);

  int number() const { return descriptor_.number(); }
  // True while unsent bytes, or an answer of TLS, wait for room in the socket's send buffer.
  bool blocked() const { return sent_ < unsent_.size() || (tls_ && tls_->wants_room()); }
  // True if receive() may return input although the socket is empty.
  bool has_input() const { return tls_ && tls_->has_input(); }

  // Sends as much as the socket accepts and keeps a copy of the rest. Precondition: !blocked().
  Result<void> send(std::string_view bytes);
  // Sends as many of the kept bytes as the socket accepts.
  Result<void> flush();
  // Reads into `buffer`, which connections may share, and returns the bytes read. Empty: no input
  // is available now.
  Result<std::string_view> receive(std::span<char> buffer);

 private:
  // Returns the number of bytes that the socket accepted, possibly 0.
  Result<std::size_t> send_some(std::string_view bytes);

  os::Descriptor descriptor_;
  std::string unsent_;
  std::size_t sent_ = 0;          // prefix of unsent_ that was sent
  bool answered_ = false;         // something was received
  std::optional<TlsStream> tls_;  // destroyed before descriptor_, which it uses
};

}  // namespace tubed::client
