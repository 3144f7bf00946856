#include "loop/memory_channel.h"

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "os/clock.h"

namespace tubed::loop {

MemoryReports::MemoryReports(Loop& loop) : next_(loop, [this] { report(); }) {}

// An owner may destroy its own channel or others.
void MemoryReports::report() {
  const Time end = os::monotonic_now() + kReportTime;
  while (!due_.empty()) {
    MemoryChannel& channel = *due_.front();
    channel.entry_.splice(channel.entry_.begin(), due_, due_.begin());
    channel.report_now();
    if (os::monotonic_now() >= end) break;
  }
  if (!due_.empty()) next_.arm();
}

MemoryChannel::MemoryChannel(MemoryReports& reports, std::string name, MemoryPeer& peer)
    : name_(std::move(name)), peer_(&peer), reports_(reports), entry_{this} {}

MemoryChannel::~MemoryChannel() {
  if (entry_.empty()) reports_.due_.remove(this);
  if (peer_ != nullptr) peer_->on_channel_closed();
}

void MemoryChannel::send(std::string_view bytes) {
  TUBED_ASSERT(bytes.size() <= room());
  input_.erase(0, taken_);
  taken_ = 0;
  input_.append(bytes);
  report_if_ready();
}

void MemoryChannel::end_input() {
  input_ended_ = true;
  report_if_ready();
}

void MemoryChannel::output_taken() {
  report_if_ready();
}

void MemoryChannel::disconnect() {
  peer_ = nullptr;
  broken_ = true;
  report_soon();
}

os::Transfer MemoryChannel::read(std::span<char> buffer) {
  return read(std::array{buffer, std::span<char>()});
}

os::Transfer MemoryChannel::read(std::span<const std::span<char>> buffers) {
  if (!has_unread()) {
    return {input_ended_ || broken_ ? os::Transfer::Kind::end : os::Transfer::Kind::would_block, 0};
  }
  std::size_t read = 0;
  for (const std::span<char> buffer : buffers) {
    const std::size_t bytes = std::min(buffer.size(), input_.size() - taken_);
    std::copy_n(input_.data() + taken_, bytes, buffer.data());
    taken_ += bytes;
    read += bytes;
  }
  if (peer_ != nullptr) peer_->on_channel();
  return {os::Transfer::Kind::done, read};
}

os::Transfer MemoryChannel::write(std::string_view piece) {
  return write(std::span<const std::string_view>(&piece, 1));
}

os::Transfer MemoryChannel::write(std::span<const std::string_view> pieces) {
  if (peer_ == nullptr) return {os::Transfer::Kind::failed, 0};
  std::size_t written = 0;
  for (const std::string_view piece : pieces) {
    const std::size_t room = kBufferBytes - std::min(kBufferBytes, output_.size());
    output_.append(piece.substr(0, room));
    written += std::min(piece.size(), room);
  }
  if (written == 0) return {os::Transfer::Kind::would_block, 0};
  peer_->on_channel();
  return {os::Transfer::Kind::done, written};
}

void MemoryChannel::want(bool readable, bool writable) {
  wants_readable_ = readable;
  wants_writable_ = writable;
  report_if_ready();
}

void MemoryChannel::pause() {
  wants_readable_ = wants_writable_ = false;
}

void MemoryChannel::report_if_ready() {
  const bool ready =
      (wants_readable_ && is_readable()) || (wants_writable_ && output_.size() < kBufferBytes);
  if (ready) report_soon();
}

void MemoryChannel::report_soon() {
  if (entry_.empty()) return;
  reports_.due_.splice(reports_.due_.end(), entry_, entry_.begin());
  reports_.next_.arm();
}

// The owner may no longer want what was ready.
void MemoryChannel::report_now() {
  report({.readable = wants_readable_ && is_readable(),
          .writable = wants_writable_ && output_.size() < kBufferBytes,
          .half_closed = false,
          .broken = broken_});
}

}  // namespace tubed::loop
