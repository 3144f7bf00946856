// Connection: a socket that does not block, and what it could not take yet.
//
// It knows no protocol, no time and no loop: who owns it waits until the socket is ready.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/descriptor.h"

namespace tubed::tubectl {

class Connection {
 public:
  // Makes `descriptor` one that does not block.
  explicit Connection(os::Descriptor descriptor);

  int number() const { return descriptor_.number(); }
  // Some of what was to be sent waits for the socket to take it.
  bool blocked() const { return sent_ < unsent_.size(); }

  // Precondition: !blocked(). What the socket does not take is kept.
  Result<void> send(std::string_view bytes);
  // Sends what was kept, or as much as the socket takes.
  Result<void> flush();
  // One read, into `buffer`, which connections may share. Empty: nothing was there.
  Result<std::string_view> receive(std::span<char> buffer);

 private:
  // How many bytes the socket took; it may take none.
  Result<std::size_t> send_some(std::string_view bytes);

  os::Descriptor descriptor_;
  std::string unsent_;
  std::size_t sent_ = 0;  // of unsent_
};

}  // namespace tubed::tubectl
