// Frames between nodes, and the other end of their connections, for the tests of server/.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "cluster/control.h"
#include "cluster/message.h"
#include "os/socket.h"
#include "tests/loop/loopback.h"

namespace tubed::server_test {

// A message with this number, and an entry of `bytes` bytes.
inline std::string frame_of(cluster::Index index, std::size_t bytes = 0) {
  cluster::Message message;
  message.cluster = 7;
  message.index = index;
  if (bytes != 0) {
    const std::string data(bytes, static_cast<char>('a' + index % 26));
    message.entries.push_back(
        {.term = 1, .type = cluster::EntryType::facts, .data = Bytes::copy_of(data)});
  }
  return encode(message);
}

// The number of a message, whose entry has `bytes` bytes; 0 if it is damaged.
inline cluster::Index index_of(std::string_view frame, std::size_t bytes = 0) {
  const auto message = cluster::decode(frame);
  if (!message || message->entries.empty() != (bytes == 0)) return 0;
  if (bytes != 0 && message->entries[0].data.size() != bytes) return 0;
  return message->index;
}

// A socket that speaks to a node under test in the same loop.
struct RawPeer {
  loop::Loop& loop;
  os::Socket socket;
  std::string input = {};
  bool ended = false;

  void read() {
    std::string bytes(65536, '\0');
    const auto transfer = os::read_into(socket, std::span(bytes.data(), bytes.size()));
    if (transfer.kind == os::Transfer::Kind::done) input.append(bytes, 0, transfer.bytes);
    ended |=
        transfer.kind == os::Transfer::Kind::end || transfer.kind == os::Transfer::Kind::failed;
  }
  // The next frame; empty if the connection ended before.
  std::string take_frame() {
    std::optional<std::size_t> bytes;
    const bool whole = loop_test::run_until(loop, [&] {
      bytes = cluster::frame_bytes(input);
      if (bytes && input.size() >= *bytes) return true;
      if (ended) bytes = 0;
      read();
      return bytes == 0;
    });
    if (!whole || !bytes) return {};
    std::string frame = input.substr(0, *bytes);
    input.erase(0, *bytes);
    return frame;
  }
  // True once the connection has ended, and nothing was sent before.
  bool is_closed() {
    return loop_test::run_until(loop,
                                [&] {
                                  read();
                                  return ended || !input.empty();
                                }) &&
           input.empty();
  }
  void send(std::string_view bytes) const { loop_test::write_all(socket, bytes); }
};

}  // namespace tubed::server_test
