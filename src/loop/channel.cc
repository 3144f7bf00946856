#include "loop/channel.h"

#include <utility>

#include "loop/polled_socket.h"
#include "loop/tls_channel.h"

namespace tubed::loop {

namespace {

// A channel whose bytes pass through the socket unchanged.
class PlainChannel : public PolledSocket {
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
  Connection release_connection() override { return release(); }
};

// The client of a proxy. A class of its own: other connections need no memory for an address.
class ProxiedChannel final : public PlainChannel {
 public:
  ProxiedChannel(Loop& loop, os::Socket socket, ProxiedClient client)
      : PlainChannel(loop, std::move(socket)), client_(std::move(client)) {}

  std::string peer() const override { return client_.address; }
  std::string tls_name() const override { return client_.tls_name; }

 private:
  const ProxiedClient client_;
};

}  // namespace

std::unique_ptr<Channel> open_channel(Loop& loop, Connection connection, const ListenerInfo&,
                                      ProxiedClient proxied) {
  if (connection.tls) return TlsChannel::open(loop, std::move(connection), std::move(proxied));
  std::unique_ptr<PlainChannel> channel;
  if (proxied.address.empty()) {
    channel = std::make_unique<PlainChannel>(loop, std::move(connection.socket));
  } else {
    channel =
        std::make_unique<ProxiedChannel>(loop, std::move(connection.socket), std::move(proxied));
  }
  if (!channel->is_watched()) return nullptr;
  return channel;
}

}  // namespace tubed::loop
