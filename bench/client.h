// Client: one connection that puts jobs and takes the replies, without waiting.
//
// It knows no time and no plan: who owns it says when to put more. Any reply but INSERTED ends the
// run, as what is measured would be something else.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tubed::bench {

class Client {
 public:
  // `requests` is one put after the other, each `request_bytes` long, and outlives the client.
  Client(int descriptor, std::string_view requests, std::size_t request_bytes)
      : descriptor_(descriptor), requests_(requests), request_bytes_(request_bytes) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  int descriptor() const { return descriptor_; }
  // Some of what is to be sent waits for the socket to take it.
  bool blocked() const { return unsent_ > 0; }

  // Sends so many puts more, or as much as the socket takes of them.
  Result<void> put(std::uint64_t count);
  // Sends what was left over.
  Result<void> send();
  // Makes one read into `buffer`, which clients may share; returns how many puts it answered.
  Result<std::uint64_t> receive(std::span<char> buffer);

 private:
  Result<std::uint64_t> take_lines(std::string_view input);

  int descriptor_;
  std::string_view requests_;
  std::size_t request_bytes_;
  std::uint64_t sent_ = 0;    // bytes
  std::uint64_t unsent_ = 0;  // bytes
  std::string begun_;         // a line whose end has not come
};

// Connects to a numeric IPv4 address; what comes back does not block.
Result<int> connect_to(const std::string& host, std::uint16_t port);

}  // namespace tubed::bench
