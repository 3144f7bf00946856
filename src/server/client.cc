#include "server/client.h"

#include <array>

namespace tubed::server {

namespace {

// From this size on, the rest of a body is read straight into the job's memory.
constexpr std::size_t kDirectReadBytes = 4096;
// One read brings so much at most, and more only behind a large body: then what follows are large
// ones too, most likely, so that few commands make much input.
constexpr std::size_t kReadBytes = 64 * 1024;

// Text and bodies in turn, gathered from where they lie; `wanted` says how much that was.
os::Transfer send_pieces(const os::Socket& socket, const protocol::ReplyBuffer& replies,
                         std::size_t sendable, std::size_t& wanted) {
  std::array<std::string_view, os::kMaxPieces> pieces;
  const std::size_t available = replies.pieces(pieces);
  std::size_t count = 0;
  for (; count < available && wanted < sendable; ++count) {
    pieces[count] = pieces[count].substr(0, sendable - wanted);
    wanted += pieces[count].size();
  }
  return os::write_from(socket, std::span(pieces).first(count));
}

// The same for as much as one system call takes; mostly all of it is one piece of text.
os::Transfer send_front(const os::Socket& socket, const protocol::ReplyBuffer& replies,
                        std::size_t sendable, std::size_t& wanted) {
  const std::string_view front = replies.front();
  if (front.size() < sendable) return send_pieces(socket, replies, sendable, wanted);
  wanted = sendable;
  return os::write_from(socket, front.substr(0, sendable));
}

}  // namespace

Client::Client(loop::Loop& loop, os::Socket socket, commands::Service& service, ClientHost& host)
    : last_active(service.now()),
      host_(host),
      service_(service),
      conversation_(service),
      stream_(loop, std::move(socket), *this) {
  update_interest();
}

void Client::on_ready(loop::Readiness ready) {
  host_.begin_tick();
  if (deferred || (service_.tick_budget().is_spent() && !lingering_)) {
    unhandled_.add(ready);
    // The kernel says it again in each tick: once is enough.
    if (deferred) return stream_.pause();
    return host_.defer(*this);
  }
  handle(ready);
}

void Client::handle(loop::Readiness ready) {
  if (ready.readable && lingering_) discard_input();
  if (ready.readable && !lingering_) read();
  if (ready.broken) {
    // What arrived before the connection broke was sent to be acted on, as far as it can be now.
    while (!lingering_ && read()) {
    }
    broken_ = true;
  }
  if (ready.half_closed) conversation_.half_close();
  host_.look_after(*this);
}

void Client::go_on() {
  conversation_.resume();
  loop::Readiness ready = std::exchange(unhandled_, {});
  if (finishing_ && !lingering_) ready.readable = false;  // nothing more is read
  handle(ready);
}

// True if there may be more to read.
bool Client::read() {
  if (!conversation_.wants_input() || !host_.takes_input()) return false;
  const std::span<char> space = conversation_.body_space();
  const bool direct = space.size() >= kDirectReadBytes;
  const std::span<char> whole = host_.read_buffer();
  const std::span<char> buffer =
      whole.first(service_.read_bytes(direct ? whole.size() : kReadBytes));
  const auto transfer = direct ? os::read_into(stream_.socket(), std::array{space, buffer})
                               : os::read_into(stream_.socket(), buffer);
  switch (transfer.kind) {
    case os::Transfer::Kind::done: {
      service_.counters().add_received_bytes(transfer.bytes);
      received_ = true;
      spoken_ = true;
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
      broken_ = true;
      break;
  }
  return transfer.kind == os::Transfer::Kind::done;
}

void Client::discard_input() {
  const auto transfer = os::read_into(stream_.socket(), host_.read_buffer());
  const bool gone =
      transfer.kind == os::Transfer::Kind::end || transfer.kind == os::Transfer::Kind::failed;
  if (gone) broken_ = true;
}

bool Client::write(const FactLog& log) {
  bool progress = false;
  auto& replies = conversation_.replies();
  std::size_t sendable = gate_.sendable(replies.size(), log.appended(), log.durable());
  held_bytes_ = replies.size() - sendable;
  while (sendable > 0 && !broken_) {
    std::size_t wanted = 0;
    const auto transfer = send_front(stream_.socket(), replies, sendable, wanted);
    if (transfer.kind == os::Transfer::Kind::failed) broken_ = true;
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

void Client::update_interest() {
  if (finishing_ && answered() && !lingering_) {
    lingering_ = true;
    os::end_output(stream_.socket());
  }
  stream_.want(wants_input() && !is_held_back(), owes_taking());
}

bool Client::wants_input() const {
  return finishing_ ? lingering_ : conversation_.wants_input();
}

bool Client::is_held_back() const {
  return !finishing_ && conversation_.wants_input() && !host_.takes_input();
}

// Everything that was read, and the answers are sent.
bool Client::answered() const {
  return conversation_.replies().empty() && !conversation_.can_resume();
}

bool Client::done() const {
  if (broken_) return true;
  if (waits_to_the_end) return false;
  if (finishing_) return answered() && !lingering_ && !os::has_unread(stream_.socket());
  return conversation_.replies().empty() && conversation_.finished();
}

}  // namespace tubed::server
