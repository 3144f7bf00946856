#include "node/byte_pipe.h"

#include <array>
#include <string_view>
#include <utility>

namespace tubed::node {

// One of the connections.
class BytePipe::Side final : public loop::ChannelOwner {
 public:
  Side(BytePipe& pipe, std::unique_ptr<loop::Channel> from)
      : channel(std::move(from)), pipe_(pipe) {
    channel->set_owner(*this);
  }

  void on_ready(loop::Readiness ready) override {
    if (ready.broken && this == pipe_.server_.get()) pipe_.server_broke();
    pipe_.broken_ |= ready.broken;
    if (ready.writable) pipe_.flush(*this);
    // A half-close is found by the read that comes to it.
    if (ready.readable || ready.half_closed) pipe_.transfer(*this, other());
    pipe_.go_on();
  }

  std::unique_ptr<loop::Channel> channel;
  std::string unsent;         // to this connection
  bool input_ended = false;   // nothing more is read from this connection
  bool output_ended = false;  // nothing more is sent to it

 private:
  Side& other() { return pipe_.client_.get() == this ? *pipe_.server_ : *pipe_.client_; }

  BytePipe& pipe_;
};

BytePipe::BytePipe(loop::Loop& loop, std::unique_ptr<loop::Channel> client,
                   std::unique_ptr<loop::Channel> server, std::string from_server, Duration stall,
                   Ended ended)
    : stall_(stall),
      client_(std::make_unique<Side>(*this, std::move(client))),
      server_(std::make_unique<Side>(*this, std::move(server))),
      ended_(std::move(ended)),
      stall_timer_(loop,
                   [this] {
                     broken_ = true;
                     go_on();
                   }),
      end_timer_(loop, [this] {
        const Ended last = std::move(ended_);  // may destroy the pipe
        last(broken_ ? End::broken : End::complete);
      }) {
  client_->unsent = std::move(from_server);
  flush(*client_);
  go_on();
}

BytePipe::~BytePipe() = default;

void BytePipe::end_input() {
  client_->input_ended = true;
  go_on();
}

std::unique_ptr<loop::Channel> BytePipe::release_client() {
  return std::move(client_->channel);
}

// Returns true if bytes were read.
bool BytePipe::transfer(Side& from, Side& to) {
  if (from.input_ended || !to.unsent.empty() || broken_) return false;
  static std::array<char, kReadBytes> buffer;
  const os::Transfer read = from.channel->read(std::span(buffer));
  switch (read.kind) {
    case os::Transfer::Kind::done:
      to.unsent.assign(buffer.data(), read.bytes);
      flush(to);
      return true;
    case os::Transfer::Kind::would_block:
      break;
    case os::Transfer::Kind::end:
      from.input_ended = true;
      break;
    case os::Transfer::Kind::failed:
      broken_ = true;
      break;
  }
  return false;
}

void BytePipe::flush(Side& side) {
  if (side.unsent.empty()) return;
  const os::Transfer written = side.channel->write(side.unsent);
  if (written.kind == os::Transfer::Kind::failed) broken_ = true;
  if (written.kind == os::Transfer::Kind::done) {
    side.unsent.erase(0, written.bytes);
    if (&side == client_.get()) stalled_ = false;
  }
  // A connection that carries nothing takes no memory.
  if (side.unsent.empty()) side.unsent.shrink_to_fit();
}

// A reset may follow replies that are not read yet: the client gets what it takes of them at once.
void BytePipe::server_broke() {
  while (transfer(*server_, *client_)) {
  }
}

// The end of the input of `from`, once the bytes before it are sent.
void BytePipe::pass_end(const Side& from, Side& to) {
  if (!from.input_ended || !to.unsent.empty() || broken_) return;
  if (!std::exchange(to.output_ended, true)) to.channel->end_output();
}

// Ends what is to be ended, and waits for the next events.
void BytePipe::go_on() {
  pass_end(*client_, *server_);
  pass_end(*server_, *client_);
  if (broken_ || client_->output_ended) {
    client_->channel->pause();
    server_->channel->pause();
    stall_timer_.disarm();
    return end_timer_.arm({});
  }
  if (client_->unsent.empty()) {
    stall_timer_.disarm();
    stalled_ = false;
  } else if (!std::exchange(stalled_, true)) {
    stall_timer_.arm(stall_);
  }
  client_->channel->want(!client_->input_ended && server_->unsent.empty(),
                         !client_->unsent.empty());
  server_->channel->want(!server_->input_ended && client_->unsent.empty(),
                         !server_->unsent.empty());
}

}  // namespace tubed::node
