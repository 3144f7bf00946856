// Input is in one buffer, from begin_ to end_. An event reads to end_ and then delivers each whole
// frame from begin_, directly from the buffer. If less than most_read() is free after end_, the
// rest of an incomplete frame moves to the front, or to a new buffer of about twice its size, so
// moving costs O(1) per byte. A buffer that a long frame has enlarged is replaced by a small buffer
// when it runs out of room.
#include "node/frame_channel.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

namespace tubed::node {

namespace {

constexpr std::string_view kEnded = "the other node has closed the connection";
constexpr std::string_view kLost = "the connection is lost";
constexpr std::string_view kNoFrame = "the other node has sent something that is no frame";

// The type of a record of the handshake, and the first two of its version.
bool begins_tls(std::string_view bytes) {
  return bytes.starts_with(std::string_view("\x16\x03"));
}

}  // namespace

FrameChannel::FrameChannel(loop::Loop& loop, std::unique_ptr<loop::Channel> channel,
                           FrameChannelOwner& owner, std::size_t most_frame_bytes)
    : channel_(std::move(channel)),
      owner_(&owner),
      most_frame_bytes_(most_frame_bytes),
      after_failed_write_(loop, [this] { lose(); }) {
  channel_->set_owner(*this);
  update_interest();
}

FrameChannel::~FrameChannel() {
  if (destroyed_ != nullptr) *destroyed_ = true;
}

void FrameChannel::send(std::string frame) {
  if (channel_ == nullptr || write_failed_) return;
  unsent_ += frame.size();
  output_.push_back(std::move(frame));
  if (output_.size() > 1) return;  // the channel reports when the kernel takes more
  if (write()) return;
  write_failed_ = true;
  after_failed_write_.arm();
}

FrameChannel::Released FrameChannel::release() {
  TUBED_ASSERT(unsent_ == 0);
  Released released;
  if (channel_ == nullptr) return released;
  released.connection = channel_->release_connection();
  released.read_ahead = input();
  channel_.reset();
  after_failed_write_.disarm();
  return released;
}

void FrameChannel::on_ready(loop::Readiness ready) {
  peer_has_ended_ |= ready.half_closed;
  if (ready.broken) return lose();
  if (ready.writable && !write()) return lose();
  if (ready.readable) read();
}

void FrameChannel::read() {
  make_room();
  const std::size_t most = std::min(most_read(), most_frame_bytes_ - (end_ - begin_));
  const os::Transfer transfer =
      channel_->read(std::span(buffer_.get() + end_, std::min(capacity_ - end_, most)));
  switch (transfer.kind) {
    case os::Transfer::Kind::done:
      end_ += transfer.bytes;
      return deliver();
    case os::Transfer::Kind::would_block:
      return;
    case os::Transfer::Kind::end:
      return close(kEnded);
    case os::Transfer::Kind::failed:
      return lose();
  }
}

void FrameChannel::deliver() {
  const std::shared_ptr<char[]> keep = buffer_;
  bool destroyed = false;
  destroyed_ = &destroyed;
  while (channel_ != nullptr) {
    const auto bytes = cluster::frame_bytes(input());
    if (!bytes) break;
    if (*bytes < cluster::kFrameHeaderBytes || *bytes > most_frame_bytes_) {
      destroyed_ = nullptr;
      return close(begins_tls(input()) ? kTls : kNoFrame);
    }
    if (*bytes > end_ - begin_) break;
    const std::string_view frame = input().substr(0, *bytes);
    begin_ += *bytes;
    owner_->on_frame(frame);
    if (destroyed) return;
  }
  destroyed_ = nullptr;
  update_interest();  // TLS may have more that is decrypted
}

void FrameChannel::make_room() {
  const std::size_t most = most_read();
  if (capacity_ - end_ >= most) return;
  const std::size_t rest = end_ - begin_;
  const std::size_t frame = std::max(cluster::frame_bytes(input()).value_or(rest), rest);
  const std::size_t capacity = std::max(most, std::min(2 * rest, frame)) + most;
  if (capacity_ >= capacity && capacity_ <= 2 * capacity) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, rest);
  } else {
    const std::shared_ptr<char[]> larger(new char[capacity]);
    if (rest != 0) std::memcpy(larger.get(), buffer_.get() + begin_, rest);
    buffer_ = larger;
    capacity_ = capacity;
  }
  begin_ = 0;
  end_ = rest;
}

// Makes one system call. Returns false if the connection is lost.
bool FrameChannel::write() {
  if (output_.empty()) return true;
  std::array<std::string_view, os::kMaxPieces> pieces;
  const std::size_t count = std::min(output_.size(), pieces.size());
  std::copy_n(output_.begin(), count, pieces.begin());
  pieces[0].remove_prefix(sent_);
  const os::Transfer transfer =
      count == 1 ? channel_->write(pieces[0])
                 : channel_->write(std::span<const std::string_view>(pieces.data(), count));
  if (transfer.kind == os::Transfer::Kind::failed) return false;
  std::size_t taken = transfer.kind == os::Transfer::Kind::done ? transfer.bytes : 0;
  unsent_ -= taken;
  taken += sent_;
  while (!output_.empty() && taken >= output_.front().size()) {
    taken -= output_.front().size();
    output_.pop_front();
  }
  sent_ = taken;
  update_interest();
  return true;
}

void FrameChannel::update_interest() {
  if (channel_ != nullptr) channel_->want(true, !output_.empty());
}

void FrameChannel::lose() {
  const std::string why = channel_ == nullptr ? std::string() : channel_->failure();
  close(why.empty() ? std::string(kLost) : fmt::format("{}: {}", kLost, why));
}

void FrameChannel::close(std::string_view reason) {
  channel_.reset();
  after_failed_write_.disarm();
  output_.clear();
  unsent_ = 0;
  owner_->on_closed(reason);  // may destroy the channel
}

}  // namespace tubed::node
