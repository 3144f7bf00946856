// bench_do_nothing: the minimal work of a server on libuv, and so the lower bound for any other.
//
// It parses commands and answers each, but has no queue: a put is answered INSERTED and forgotten,
// a reserve is answered at once with a body of the last put's size. One read, its replies, one
// write.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <uv.h>

#include "bench/command_line.h"

namespace {

struct Server {
  uv_loop_t loop{};
  uv_tcp_t listener{};
  uv_signal_t terminated{};
  std::uint64_t jobs = 0;
  std::string body;      // a body of the last put's size, with its line end
  std::string replies;   // replies to the input of one read
  char buffer[65536]{};  // shared by all clients
};

struct Client {
  explicit Client(Server& its_server) : server(its_server) {}

  Server& server;
  uv_tcp_t socket{};
  uv_write_t write{};
  std::string begun;       // a line without its end
  std::uint64_t skip = 0;  // bytes of a body that have not arrived
  std::uint64_t watching = 1;
  std::string unsent;  // while `write` is in progress; the client is not read from
};

void answer_put(Client& client, std::string_view line) {
  const std::size_t digits = line.find_last_of(' ') + 1;
  std::uint32_t bytes = 0;
  std::from_chars(line.data() + digits, line.data() + line.size(), bytes);
  client.skip = std::uint64_t{bytes} + 2;
  Server& server = client.server;
  if (server.body.size() != client.skip) server.body = std::string(bytes, 'x') + "\r\n";
  fmt::format_to(std::back_inserter(server.replies), "INSERTED {}\r\n", ++server.jobs);
}

void answer(Client& client, std::string_view line) {
  Server& server = client.server;
  const auto reply = std::back_inserter(server.replies);
  if (line.starts_with("put ")) {
    answer_put(client, line);
  } else if (line.starts_with("reserve")) {
    const std::size_t bytes = server.body.size() - 2;
    fmt::format_to(reply, "RESERVED {} {}\r\n", ++server.jobs, bytes);
    server.replies += server.body;
  } else if (line.starts_with("delete ")) {
    server.replies += "DELETED\r\n";
  } else if (line.starts_with("use ")) {
    fmt::format_to(reply, "USING {}\r\n", line.substr(4));
  } else if (line.starts_with("watch ")) {
    fmt::format_to(reply, "WATCHING {}\r\n", ++client.watching);
  } else if (line.starts_with("ignore ") && client.watching == 1) {
    server.replies += "NOT_IGNORED\r\n";
  } else if (line.starts_with("ignore ")) {
    fmt::format_to(reply, "WATCHING {}\r\n", --client.watching);
  } else {
    server.replies += "UNKNOWN_COMMAND\r\n";
  }
}

void take(Client& client, std::string_view input) {
  while (!input.empty()) {
    const auto skipped = std::min<std::uint64_t>(client.skip, input.size());
    input.remove_prefix(static_cast<std::size_t>(skipped));
    client.skip -= skipped;
    const std::size_t end = input.find('\n');
    if (end == input.npos) {
      client.begun += input;
      return;
    }
    std::string_view line = input.substr(0, end);
    if (!client.begun.empty()) line = client.begun += line;
    if (line.ends_with('\r')) line.remove_suffix(1);
    answer(client, line);
    client.begun.clear();
    input.remove_prefix(end + 1);
  }
}

uv_stream_t* stream_of(uv_tcp_t& socket) {
  return reinterpret_cast<uv_stream_t*>(&socket);
}

uv_handle_t* handle_of(uv_tcp_t& socket) {
  return reinterpret_cast<uv_handle_t*>(&socket);
}

void close_client(Client& client) {
  if (uv_is_closing(handle_of(client.socket))) return;
  uv_close(handle_of(client.socket),
           [](uv_handle_t* handle) { delete static_cast<Client*>(handle->data); });
}

void start_reading(Client& client);

void send_replies(Client& client) {
  std::string& replies = client.server.replies;
  uv_buf_t all = uv_buf_init(replies.data(), static_cast<unsigned>(replies.size()));
  const int sent = uv_try_write(stream_of(client.socket), &all, 1);
  if (sent < 0 && sent != UV_EAGAIN) return close_client(client);
  const auto done = static_cast<std::size_t>(std::max(0, sent));
  if (done == replies.size()) return;
  client.unsent.assign(replies, done);
  uv_read_stop(stream_of(client.socket));
  uv_buf_t rest = uv_buf_init(client.unsent.data(), static_cast<unsigned>(client.unsent.size()));
  const auto written = [](uv_write_t* write, int status) {
    auto& whose = *static_cast<Client*>(write->data);
    if (status == 0) return start_reading(whose);
    close_client(whose);
  };
  if (uv_write(&client.write, stream_of(client.socket), &rest, 1, written) != 0) {
    close_client(client);
  }
}

void start_reading(Client& client) {
  const auto allocate = [](uv_handle_t* handle, std::size_t, uv_buf_t* buffer) {
    Server& server = static_cast<Client*>(handle->data)->server;
    *buffer = uv_buf_init(server.buffer, sizeof server.buffer);
  };
  const auto read = [](uv_stream_t* stream, ssize_t count, const uv_buf_t* buffer) {
    auto& whose = *static_cast<Client*>(stream->data);
    if (count < 0) return close_client(whose);
    whose.server.replies.clear();
    take(whose, std::string_view(buffer->base, static_cast<std::size_t>(count)));
    if (!whose.server.replies.empty()) send_replies(whose);
  };
  if (uv_read_start(stream_of(client.socket), allocate, read) != 0) close_client(client);
}

void accept_client(uv_stream_t* listener, int status) {
  if (status != 0) return;
  auto& server = *static_cast<Server*>(listener->data);
  auto* const client = new Client(server);
  uv_tcp_init(&server.loop, &client->socket);
  client->socket.data = client->write.data = client;
  if (uv_accept(listener, stream_of(client->socket)) != 0) return close_client(*client);
  uv_tcp_nodelay(&client->socket, 1);
  start_reading(*client);
}

// Returns the port of the listener, or 0 after an error.
int listen_on(Server& server, int port) {
  sockaddr_in address{};
  int size = sizeof address;
  uv_ip4_addr("127.0.0.1", port, &address);
  uv_tcp_init(&server.loop, &server.listener);
  server.listener.data = &server;
  const auto* const wanted = reinterpret_cast<const sockaddr*>(&address);
  if (uv_tcp_bind(&server.listener, wanted, 0) != 0 ||
      uv_listen(stream_of(server.listener), 4096, accept_client) != 0 ||
      uv_tcp_getsockname(&server.listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return 0;
  }
  return ntohs(address.sin_port);
}

void serve(Server& server) {
  uv_signal_init(&server.loop, &server.terminated);
  uv_signal_start(
      &server.terminated, [](uv_signal_t* handle, int) { uv_stop(handle->loop); }, SIGTERM);
  uv_run(&server.loop, UV_RUN_DEFAULT);
  const auto close_each = [](uv_handle_t* handle, void* theirs) {
    auto& its_server = *static_cast<Server*>(theirs);
    const bool is_client = handle->type == UV_TCP && handle != handle_of(its_server.listener);
    if (is_client) return close_client(*static_cast<Client*>(handle->data));
    uv_close(handle, nullptr);
  };
  uv_walk(&server.loop, close_each, &server);
  uv_run(&server.loop, UV_RUN_DEFAULT);
  uv_loop_close(&server.loop);
}

struct Options {
  int port = 0;
};

constexpr std::array kRows{
    tubed::options::kHelpOption,
    tubed::options::option<&Options::port>({.names = "--port",
                                            .type = tubed::options::count(0, 65535),
                                            .help = "of 127.0.0.1; 0 is any that is free",
                                            .shows_default = true}),
};

}  // namespace

int main(int argc, char** argv) {
  Options given;
  const auto exit_code = tubed::bench::take_command_line(
      "bench_do_nothing", "A server that answers beanstalk commands and does nothing else.", kRows,
      argc, argv, &given);
  if (exit_code) return *exit_code;
  const auto server = std::make_unique<Server>();
  server->body = "\r\n";
  uv_loop_init(&server->loop);
  const int got = listen_on(*server, given.port);
  if (got == 0) {
    fmt::print(stderr, "bench_do_nothing: cannot listen on port {}\n", given.port);
    return 1;
  }
  fmt::print(stderr, "listening address=127.0.0.1:{}\n", got);
  serve(*server);
  return 0;
}
