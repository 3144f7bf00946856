// FrameChannel: a connection that carries whole frames in both directions (cluster/message.h).
//
// It splits the input into frames by their length; the owner checks the CRC when it decodes a
// frame. Output is buffered without a bound until the kernel takes it: the owner checks unsent()
// after send().
//
// Bounds: an event of the loop reads at most kReadBytes and writes once. No more is read than the
// longest frame that may arrive has, beyond what was delivered. The input buffer grows to at most
// twice the received bytes of an incomplete frame, plus kReadBytes or twice the longest frame: a
// peer takes memory only for bytes that it has sent. A byte is copied O(1) times, however long its
// frame is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/message.h"
#include "loop/channel.h"
#include "loop/idle_call.h"

namespace tubed::node {

// Both functions may destroy the channel.
class FrameChannelOwner {
 public:
  // `frame` is valid during the call, and has at least the header of a frame.
  virtual void on_frame(std::string_view frame) = 0;
  // The connection is closed; no further function is called. `reason` is for the log.
  virtual void on_closed(std::string_view reason) = 0;

 protected:
  ~FrameChannelOwner() = default;
};

class FrameChannel final : public loop::ChannelOwner {
 public:
  static constexpr std::size_t kReadBytes = 256 * 1024;
  static constexpr std::size_t kAnyFrame = cluster::kMostFrameBytes + sizeof(std::uint32_t);
  // A reason of on_closed(): the input begins as TLS does, which no frame of the length that may
  // arrive does.
  static constexpr std::string_view kTls = "the other node speaks TLS";

  // A connection, and the bytes that were read from it but not delivered.
  struct Released {
    loop::Connection connection;
    std::string read_ahead;
  };

  // Starts reading. A frame of more than `most_frame_bytes` closes the connection. `loop` and
  // `owner` outlive the channel.
  FrameChannel(loop::Loop& loop, std::unique_ptr<loop::Channel> channel, FrameChannelOwner& owner,
               std::size_t most_frame_bytes = kAnyFrame);
  ~FrameChannel();
  FrameChannel(const FrameChannel&) = delete;
  FrameChannel& operator=(const FrameChannel&) = delete;

  // Replaces the owner.
  void set_owner(FrameChannelOwner& owner) { owner_ = &owner; }
  // At least the header of a frame. Precondition: read_ahead() is less.
  void set_most_frame_bytes(std::size_t bytes) { most_frame_bytes_ = bytes; }

  // Queues a frame. Never calls the owner: a failure is reported later. No effect if the connection
  // is closed.
  void send(std::string frame);
  // The bytes of frames that the kernel has not taken.
  std::size_t unsent() const { return unsent_; }

  // True if the peer will send nothing beyond what has arrived. The channel may have reported that
  // to an earlier owner, so it is asked. At most one system call.
  bool peer_has_ended() const {
    return peer_has_ended_ || (channel_ != nullptr && channel_->has_ended());
  }
  // Bytes that were read but not delivered. In on_frame(): bytes after the frame.
  std::size_t read_ahead() const { return end_ - begin_; }
  std::string peer() const { return channel_ == nullptr ? "?" : channel_->peer(); }

  // Gives up the connection; afterwards the channel can only be destroyed. Precondition: unsent()
  // is 0. The connection is empty if the connection was closed.
  Released release();

 private:
  void on_ready(loop::Readiness ready) override;
  void read();
  void deliver();
  bool write();
  std::size_t most_read() const { return std::min(kReadBytes, most_frame_bytes_); }
  void make_room();
  void update_interest();
  void close(std::string_view reason);
  void lose();
  std::string_view input() const { return {buffer_.get() + begin_, end_ - begin_}; }

  std::unique_ptr<loop::Channel> channel_;  // null: closed or released
  FrameChannelOwner* owner_;
  std::size_t most_frame_bytes_;

  // Shared with deliver(): a frame stays valid if the channel is destroyed.
  std::shared_ptr<char[]> buffer_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;  // start of the bytes not yet delivered
  std::size_t end_ = 0;
  bool peer_has_ended_ = false;
  bool* destroyed_ = nullptr;  // while deliver() runs

  std::deque<std::string> output_;
  std::size_t sent_ = 0;  // bytes sent of the front of output_
  std::size_t unsent_ = 0;
  bool write_failed_ = false;

  // The loop has no event for a write that has failed.
  loop::IdleCall after_failed_write_;
};

}  // namespace tubed::node
