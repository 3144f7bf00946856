#include "loop/channel.h"

#include "loop/polled_socket.h"

namespace tubed::loop {

namespace {

// A channel whose bytes pass through the socket unchanged.
class PlainChannel final : public PolledSocket {
 public:
  PlainChannel(Loop& loop, os::Socket socket) : PolledSocket(loop, std::move(socket)) {}

  os::Transfer read(std::span<char> buffer) override { return os::read_into(socket(), buffer); }
  os::Transfer read(std::span<const std::span<char>> buffers) override {
    return os::read_into(socket(), buffers);
  }
  os::Transfer write(std::string_view piece) override { return os::write_from(socket(), piece); }
  os::Transfer write(std::span<const std::string_view> pieces) override {
    return os::write_from(socket(), pieces);
  }
  bool has_unread() const override { return os::has_unread(socket()); }
  void end_output() override { os::end_output(socket()); }
  os::Socket release_socket() override { return release(); }
};

}  // namespace

std::unique_ptr<Channel> open_channel(Loop& loop, os::Socket socket, const ListenerInfo&) {
  auto channel = std::make_unique<PlainChannel>(loop, std::move(socket));
  if (!channel->is_watched()) return nullptr;
  return channel;
}

}  // namespace tubed::loop
