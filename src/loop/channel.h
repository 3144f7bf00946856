// Channel: one connection in the loop, over any transport.
//
// A channel reports when it can be read or written. Its owner then reads or writes with one call,
// directly to or from the place where the bytes are. The owner knows neither the socket nor how the
// bytes are transformed: a new transport is a new implementation of this class and a new case in
// open_channel().
//
// Readiness comes from uv_poll rather than uv_stream, for two reasons. A half-close must be
// reported even while nothing is read (a client that waits in reserve). And a connection costs one
// system call to read and one to write per tick, without a copy.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "loop/connection.h"
#include "loop/loop.h"
#include "loop/proxy_header.h"
#include "os/socket.h"

namespace tubed::loop {

// The protocol of a listener's connections.
enum class Protocol : std::uint8_t { beanstalk, http };

// The listener that accepted a connection.
struct ListenerInfo {
  Protocol protocol = Protocol::beanstalk;
  std::string inherited;  // socket name from the service manager; empty: opened by this process
};

struct Readiness {
  bool readable = false;
  bool writable = false;
  bool half_closed = false;  // the peer will send nothing more; reported once
  bool broken = false;       // the connection is lost

  void add(const Readiness& other) {
    readable |= other.readable;
    writable |= other.writable;
    half_closed |= other.half_closed;
    broken |= other.broken;
  }
};

class ChannelOwner {
 public:
  virtual void on_ready(Readiness ready) = 0;

 protected:
  ~ChannelOwner() = default;
};

class Channel {
 public:
  // Closes the connection. Written bytes are still delivered, unless input is left unread: then the
  // kernel resets the connection.
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // Makes `owner` receive the reports of readiness. Precondition of want(). The owner outlives the
  // channel or owns it, and may destroy it in on_ready().
  void set_owner(ChannelOwner& owner) { owner_ = &owner; }

  // Fills the buffer, or the buffers in order, with one system call. `end`: the peer will send
  // nothing more.
  virtual os::Transfer read(std::span<char> buffer) = 0;
  virtual os::Transfer read(std::span<const std::span<char>> buffers) = 0;
  // Writes the piece, or the pieces in order, with one system call; possibly only part of the
  // bytes. At most os::kMaxPieces pieces.
  virtual os::Transfer write(std::string_view piece) = 0;
  virtual os::Transfer write(std::span<const std::string_view> pieces) = 0;
  // True if unread bytes have arrived.
  virtual bool has_unread() const = 0;
  // True if the peer sends nothing more or the connection is lost, reported or not. One system
  // call.
  virtual bool has_ended() const { return false; }
  // Returns the address of the peer for the log: "192.0.2.1:50312", or "unix uid 1000 pid 4711".
  // Behind a proxy, this is the client's address as the proxy reports it.
  virtual std::string peer() const = 0;
  // Returns ProxiedClient::tls_name; empty without a proxy.
  virtual std::string tls_name() const { return {}; }
  // Ends the output after the bytes that were written; input can still be read.
  virtual void end_output() = 0;

  // Hands over the connection, or returns an empty one if the channel has none. Afterwards the
  // channel can only be destroyed, which does not close the connection.
  virtual Connection release_connection() { return {}; }
  // Returns why the connection is lost, if the transport knows it; otherwise nothing.
  virtual std::string failure() const { return {}; }

  // Enables the given reports. A half-close and a broken connection are always reported. No system
  // call if nothing changes.
  virtual void want(bool readable, bool writable) = 0;
  // Disables all reports until the next want().
  virtual void pause() = 0;

 protected:
  Channel() = default;
  void report(Readiness ready) { owner_->on_ready(ready); }

 private:
  ChannelOwner* owner_ = nullptr;
};

// Returns the channel of a connection. Null: the kernel refuses to watch another descriptor
// (fs.epoll.max_user_watches), and the connection is closed. `loop` outlives the channel.
// `proxied`: what a proxy has reported.
std::unique_ptr<Channel> open_channel(Loop& loop, Connection connection, const ListenerInfo& info,
                                      ProxiedClient proxied = {});

}  // namespace tubed::loop
