#include "loop/connector.h"

#include <fmt/format.h>

namespace tubed::loop {

Connector::Connector(Loop& loop, const std::string& host, std::uint16_t port,
                     const ConnectOptions& options, Done done)
    : loop_(loop),
      options_(options),
      done_(std::move(done)),
      timer_(
          loop,
          [this] { finish(failed_.empty() ? failure("no answer") : Error{std::move(failed_)}); }),
      handle_(this) {
  const bool is_v6 = host.find(':') != std::string::npos;
  address_ = is_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
  attempt(host, port);
  timer_.arm(failed_.empty() ? options_.limit : Duration());
}

Connector::~Connector() {
  stop_watching();
}

void Connector::attempt(const std::string& host, std::uint16_t port) {
  auto socket = os::connect_tcp(host, port);
  if (!socket) {
    failed_ = socket.error().message;
  } else if (uv_poll_init_socket(loop_.uv(), handle_.get(), socket->descriptor()) != 0) {
    failed_ = failure("the kernel does not watch the connection").message;
  } else {
    socket_ = std::move(*socket);
    os::tune_connection(socket_, options_.keepalive_idle);
    if (options_.user_timeout > Duration()) os::set_user_timeout(socket_, options_.user_timeout);
    uv_poll_start(handle_.get(), UV_WRITABLE, &Connector::on_poll);
    return;
  }
  handle_.forget();
}

void Connector::on_poll(uv_poll_t* handle, int, int) {
  auto& connector = owner_of<Connector>(handle);
  connector.stop_watching();
  if (const auto made = os::finish_connect(connector.socket_); !made)
    return connector.finish(connector.failure(made.error().message));
  auto channel = open_channel(connector.loop_, std::move(connector.socket_), {});
  if (channel == nullptr)
    return connector.finish(connector.failure("the kernel does not watch the connection"));
  connector.finish(std::move(channel));
}

void Connector::finish(Result<std::unique_ptr<Channel>> result) {
  timer_.disarm();
  stop_watching();
  const Done done = std::move(done_);  // may destroy the connector
  done(std::move(result));
}

Error Connector::failure(const std::string& reason) const {
  return {fmt::format("cannot connect to {}: {}", address_, reason)};
}

// A socket can have only one watcher, and the channel will be the next.
void Connector::stop_watching() {
  if (handle_.get() == nullptr) return;
  uv_poll_stop(handle_.get());
  handle_.close();
}

}  // namespace tubed::loop
