// Input: on_ready() or resume() calls handle(), which reads once and passes the bytes to the
// conversation; the commands run there. Output: the scheduler calls write() and then
// update_interest() at the end of the tick. Between the two it asks done(). The state only moves
// forward: from `open` to `stopping` and `finishing` when the server stops, to `lingering` while
// the peer still sends after the last reply, and to `broken` when the connection is lost.
#include "serving/client.h"

#include <array>

#include "base/planted.h"

namespace tubed::serving {

namespace {

// The rest of a body of at least this size is read straight into the memory of the job.
constexpr std::size_t kDirectReadBytes = 4096;
// The bound of one read. It is larger after a large body, because the next bodies are probably
// large too, and a few commands then make much input.
constexpr std::size_t kReadBytes = 64 * 1024;

// Sends text and bodies in order, without a copy; sets `wanted` to their bytes.
os::Transfer send_pieces(loop::Channel& channel, const protocol::ReplyBuffer& replies,
                         std::size_t sendable, std::size_t& wanted) {
  std::array<std::string_view, os::kMaxPieces> pieces;
  const std::size_t available = replies.pieces(pieces);
  std::size_t count = 0;
  for (; count < available && wanted < sendable; ++count) {
    pieces[count] = pieces[count].substr(0, sendable - wanted);
    wanted += pieces[count].size();
  }
  return channel.write(std::span(pieces).first(count));
}

// Sends as much as one system call takes, which is usually one piece of text.
os::Transfer send_front(loop::Channel& channel, const protocol::ReplyBuffer& replies,
                        std::size_t sendable, std::size_t& wanted) {
  const std::string_view front = replies.front();
  if (front.size() < sendable) return send_pieces(channel, replies, sendable, wanted);
  wanted = sendable;
  return channel.write(front.substr(0, sendable));
}

}  // namespace

Client::Client(std::unique_ptr<loop::Channel> channel, commands::Service& service, ClientHost& host,
               std::span<char> read_buffer, commands::Admission admission)
    : host_(host),
      service_(service),
      read_buffer_(read_buffer),
      conversation_(service, std::move(admission)),
      channel_(std::move(channel)) {
  channel_->set_owner(*this);
  update_interest();
}

void Client::on_ready(loop::Readiness ready) {
  host_.begin_tick();
  const bool lingering = state_ == State::lingering;
  if (queued.deferred || (service_.tick_budget().is_spent() && !lingering)) {
    unhandled_.add(ready);
    // The kernel reports it again in each tick: once is enough.
    if (queued.deferred) return channel_->pause();
    return host_.defer(*this);
  }
  handle(ready);
}

void Client::handle(loop::Readiness ready) {
  const bool lingering = state_ == State::lingering;
  if (ready.readable) {
    lingering ? discard_input() : read_input();
  }
  if (ready.broken) {
    // Commands that arrived before the connection broke are run, as far as possible now.
    while (!lingering && read()) {
    }
    state_ = State::broken;
  }
  if (ready.half_closed) conversation_.half_close();
  host_.mark_dirty(*this);
}

void Client::resume() {
  conversation_.resume();
  loop::Readiness ready = std::exchange(unhandled_, {});
  if (state_ == State::finishing) ready.readable = false;  // nothing more is read
  handle(ready);
}

// The input of a request is in memory, and bounded: it is read at once, so that one commit stores
// the facts of a batch.
void Client::read_input() {
  while (read() && arrival == Arrival::request && channel_->has_unread()) {
    if (service_.tick_budget().is_spent()) return;
  }
}

// True if more input may be in the kernel.
bool Client::read() {
  if (!conversation_.wants_input() || !host_.takes_input()) return false;
  const std::span<char> space = conversation_.body_space();
  const bool direct = space.size() >= kDirectReadBytes;
  const std::span<char> buffer =
      read_buffer_.first(service_.read_bytes(direct ? read_buffer_.size() : kReadBytes));
  const auto transfer = direct ? channel_->read(std::array{space, buffer}) : channel_->read(buffer);
  switch (transfer.kind) {
    case os::Transfer::Kind::done: {
      service_.counters().add_received_bytes(transfer.bytes);
      received_ = true;
      received_any_ = true;
      read_all_ = transfer.bytes < buffer.size();
      const std::size_t into_body = direct ? std::min(transfer.bytes, space.size()) : 0;
      if (into_body > 0) conversation_.body_received(into_body);
      if (transfer.bytes > into_body) {
        conversation_.receive({buffer.data(), transfer.bytes - into_body});
      }
      break;
    }
    case os::Transfer::Kind::would_block:
      break;
    case os::Transfer::Kind::end:
      conversation_.end_input();
      break;
    case os::Transfer::Kind::failed:
      state_ = State::broken;
      break;
  }
  return transfer.kind == os::Transfer::Kind::done;
}

void Client::discard_input() {
  const auto kind = channel_->read(read_buffer_).kind;
  if (kind == os::Transfer::Kind::end || kind == os::Transfer::Kind::failed) state_ = State::broken;
}

bool Client::write(const FactLog& log) {
  if (state_ == State::stopping && received_any_ && !closes_last_) finish();
  bool progress = false;
  auto& replies = conversation_.replies();
  const Lsn durable = TUBED_PLANTED(replies_before_the_commit) ? log.appended() : log.durable();
  std::size_t sendable = gate_.sendable(replies.size(), log.appended(), durable);
  gated_bytes_ = replies.size() - sendable;
  while (sendable > 0 && state_ != State::broken) {
    std::size_t wanted = 0;
    const auto transfer = send_front(*channel_, replies, sendable, wanted);
    if (transfer.kind == os::Transfer::Kind::failed) state_ = State::broken;
    if (transfer.bytes == 0) break;
    service_.counters().add_sent_bytes(transfer.bytes);
    replies.take(transfer.bytes);
    gate_.sent(transfer.bytes);
    sendable -= transfer.bytes;
    progress = true;
    if (transfer.bytes < wanted) break;
  }
  return progress;
}

void Client::stop() {
  closes_last_ = conversation_.waiting();
  // A client that does not wait begins no wait either.
  conversation_.stop_waiting();
  if (state_ == State::open) state_ = State::stopping;
}

void Client::finish() {
  closes_last_ = false;
  if (state_ < State::finishing) state_ = State::finishing;
}

void Client::update_interest() {
  if (state_ == State::finishing && answered()) {
    state_ = State::lingering;
    channel_->end_output();
  }
  channel_->want(wants_input() && !is_input_paused(), has_unsent());
}

bool Client::wants_input() const {
  return finishing() ? state_ == State::lingering : conversation_.wants_input();
}

bool Client::is_input_paused() const {
  return !finishing() && conversation_.wants_input() && !host_.takes_input();
}

// True if all input that was read is answered and the replies are sent.
bool Client::answered() const {
  return conversation_.replies().empty() && !conversation_.can_resume();
}

bool Client::done() const {
  if (state_ == State::broken) return true;
  if (closes_last_) return false;
  if (finishing()) {
    return answered() && state_ != State::lingering && !channel_->has_unread();
  }
  return conversation_.replies().empty() && conversation_.finished();
}

}  // namespace tubed::serving
