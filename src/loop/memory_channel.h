// MemoryChannel: a channel whose peer is in this process. It carries HTTP requests to a
// conversation and the answers back.
//
// Both directions are bounded: the peer sends at most room() bytes, and the channel takes no more
// output while kBufferBytes are untaken. Its owner is notified later, never within a call of the
// peer; the peer is notified within calls of the owner.
//
// All channels share a MemoryReports. It notifies owners for kReportTime in each iteration of the
// loop and the others in the next, so these channels cannot delay other connections, however many
// of them are ready.
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <string_view>

#include "loop/channel.h"
#include "loop/idle_call.h"

namespace tubed::loop {

class MemoryChannel;

class MemoryReports {
 public:
  static constexpr Duration kReportTime = std::chrono::microseconds(500);

  // `loop` outlives it, and it outlives its channels.
  explicit MemoryReports(Loop& loop);

 private:
  friend class MemoryChannel;

  void report();

  std::list<MemoryChannel*> due_;  // the first is notified first
  IdleCall next_;
};

class MemoryPeer {
 public:
  // The channel has output, or room for input.
  virtual void on_channel() = 0;
  // The owner of the channel has destroyed it.
  virtual void on_channel_closed() = 0;

 protected:
  ~MemoryPeer() = default;
};

class MemoryChannel final : public Channel {
 public:
  static constexpr std::size_t kBufferBytes = 256 * 1024;

  // `name` names the peer in the log. `reports` outlives the channel, and so does the peer unless
  // it has called disconnect().
  MemoryChannel(MemoryReports& reports, std::string name, MemoryPeer& peer);
  ~MemoryChannel() override;

  // --- For the peer

  // Returns how many bytes send() takes now.
  std::size_t room() const { return kBufferBytes - (input_.size() - taken_); }
  // Precondition: at most room() bytes.
  void send(std::string_view bytes);
  // Ends the input: the owner reads the bytes sent before, then the end.
  void end_input();
  // The bytes written by the owner. The peer removes them from the string and calls output_taken().
  std::string& output() { return output_; }
  void output_taken();
  // Replaces the peer. Null: the connection is lost once its owner has been notified.
  void set_peer(MemoryPeer* peer) { peer_ = peer; }
  void disconnect();

  // --- For the owner

  os::Transfer read(std::span<char> buffer) override;
  os::Transfer read(std::span<const std::span<char>> buffers) override;
  os::Transfer write(std::string_view piece) override;
  os::Transfer write(std::span<const std::string_view> pieces) override;
  bool has_unread() const override { return taken_ < input_.size(); }
  std::string peer() const override { return name_; }
  void end_output() override { end_input(); }
  void want(bool readable, bool writable) override;
  void pause() override;

 private:
  friend class MemoryReports;

  bool is_readable() const { return has_unread() || input_ended_; }
  void report_if_ready();
  void report_soon();
  void report_now();

  std::string name_;
  MemoryPeer* peer_;
  std::string input_;
  std::size_t taken_ = 0;  // bytes of input_ already read
  std::string output_;
  bool input_ended_ = false;
  bool broken_ = false;
  bool wants_readable_ = false;
  bool wants_writable_ = false;
  MemoryReports& reports_;
  std::list<MemoryChannel*> entry_;  // the element of due_; empty while the channel is due
};

}  // namespace tubed::loop
