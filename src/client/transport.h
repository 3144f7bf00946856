// Transport: a connected non-blocking socket and the bytes that the kernel has not accepted yet.
//
// It knows no protocol, no clock and no event loop. The owner waits until the socket is ready and
// then calls flush() or receive(). An Error means that the connection is lost.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/descriptor.h"

namespace tubed::client {

class Transport {
 public:
  // Sets O_NONBLOCK on `descriptor`.
  explicit Transport(os::Descriptor descriptor);

  int number() const { return descriptor_.number(); }
  // True while unsent bytes wait for room in the socket's send buffer.
  bool blocked() const { return sent_ < unsent_.size(); }

  // Sends as much as the socket accepts and keeps a copy of the rest. Precondition: !blocked().
  Result<void> send(std::string_view bytes);
  // Sends the kept bytes, or as many as the socket accepts.
  Result<void> flush();
  // Reads once into `buffer`, which connections may share, and returns the bytes read. Empty: the
  // socket has no input now.
  Result<std::string_view> receive(std::span<char> buffer);

 private:
  // Returns how many bytes the socket accepted, possibly 0.
  Result<std::size_t> send_some(std::string_view bytes);

  os::Descriptor descriptor_;
  std::string unsent_;
  std::size_t sent_ = 0;  // prefix of unsent_ that is already sent
};

}  // namespace tubed::client
