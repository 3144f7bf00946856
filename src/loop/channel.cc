#include "loop/channel.h"

namespace tubed::loop {

namespace {

// The bytes of the connection are those of the socket.
class PlainChannel final : public Channel {
 public:
  PlainChannel(Loop& loop, os::Socket socket) : socket_(std::move(socket)), handle_(this) {
    const int refused = uv_poll_init_socket(loop.uv(), handle_.get(), socket_.descriptor());
    if (refused != 0) handle_.forget();
  }
  ~PlainChannel() override {
    // The kernel may reuse the descriptor as soon as it is closed, so the loop stops watching it
    // first.
    if (is_watched()) uv_poll_stop(handle_.get());
  }

  bool is_watched() const { return handle_.get() != nullptr; }

  os::Transfer read(std::span<char> buffer) override { return os::read_into(socket_, buffer); }
  os::Transfer read(std::span<const std::span<char>> buffers) override {
    return os::read_into(socket_, buffers);
  }
  os::Transfer write(std::string_view piece) override { return os::write_from(socket_, piece); }
  os::Transfer write(std::span<const std::string_view> pieces) override {
    return os::write_from(socket_, pieces);
  }
  bool has_unread() const override { return os::has_unread(socket_); }
  void end_output() override { os::end_output(socket_); }

  void want(bool readable, bool writable) override {
    const int events = (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0) |
                       (half_closed_ ? 0 : UV_DISCONNECT);
    if (events != events_) start(events);
  }
  void pause() override { start(0); }

 private:
  void start(int events) {
    events_ = events;
    if (events == 0) {
      uv_poll_stop(handle_.get());
    } else {
      uv_poll_start(handle_.get(), events, &PlainChannel::on_poll);
    }
  }

  static void on_poll(uv_poll_t* handle, int status, int events) {
    auto& channel = owner_of<PlainChannel>(handle);
    const Readiness ready{.readable = (events & UV_READABLE) != 0,
                          .writable = (events & UV_WRITABLE) != 0,
                          .half_closed = (events & UV_DISCONNECT) != 0,
                          .broken = status < 0};
    if (ready.half_closed) {
      // epoll would report the half-close again in each tick.
      channel.half_closed_ = true;
      channel.start(channel.events_ & ~UV_DISCONNECT);
    }
    channel.report(ready);
  }

  os::Socket socket_;
  Handle<uv_poll_t> handle_;
  int events_ = 0;
  bool half_closed_ = false;
};

}  // namespace

std::unique_ptr<Channel> open_channel(Loop& loop, os::Socket socket, const ListenerInfo&) {
  auto channel = std::make_unique<PlainChannel>(loop, std::move(socket));
  if (!channel->is_watched()) return nullptr;
  return channel;
}

void refuse_connection(os::Socket socket, const ListenerInfo&, std::string_view line) {
  os::refuse_connection(std::move(socket), line);
}

}  // namespace tubed::loop
