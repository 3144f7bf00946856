#include "hosted_server.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "client/reply_parser.h"

namespace tubed::instructions {

namespace {

// Much longer than any step takes.
constexpr int kTimeoutMs = 30'000;

Settings listening_on(Settings settings, const std::string& path) {
  settings.listeners.resize(1);
  settings.listeners.front().kind = Listen::Kind::unix_socket;
  settings.listeners.front().path = path;
  return settings;
}

// True if every other thread waits for work.
bool pool_is_idle() {
  const std::string self = std::to_string(::gettid());
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == self) continue;
    std::ifstream file(task.path() / "syscall");
    if (!file) fail("the kernel does not report the system calls of threads");
    long call = 0;
    file >> call;  // fails while the thread runs
    if (!file || call != SYS_futex) return false;
  }
  return true;
}

}  // namespace

void fail(std::string_view what) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(what.size()), what.data());
  std::exit(1);
}

int connect_to(const std::string& path) {
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) fail("the socket's path is too long");
  std::ranges::copy(path, address.sun_path);
  if (::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    fail("cannot connect");
  }
  return descriptor;
}

void send_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(descriptor, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) fail("cannot send");
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

HostedServer::HostedServer(Settings settings, const std::string& path)
    : log_([](std::string_view) { return true; }, [] { return Duration(); }),
      settings_(listening_on(std::move(settings), path)),
      server_(loop_, log_, settings_, [this] { return Result<Settings>(settings_); }) {
  if (auto loaded = server_.load_access(); !loaded) fail(loaded.error().message);
  if (auto listening = server_.listen({}); !listening) fail(listening.error().message);
  if (auto recovered = server_.recover(); !recovered) fail(recovered.error().message);
}

void HostedServer::run_once(Collect collect) {
  if (collect == Collect::no) {
    uv_run(loop_.uv(), UV_RUN_ONCE);
    return;
  }
  wait_for_event();
  CALLGRIND_TOGGLE_COLLECT;
  uv_run(loop_.uv(), UV_RUN_ONCE);
  CALLGRIND_TOGGLE_COLLECT;
}

// A pool thread that has just notified the loop may still be in the notifying call. The loop would
// spin until the call returns, for as long as the scheduler decides.
void HostedServer::wait_for_event() {
  const bool has_more_to_do = uv_backend_timeout(loop_.uv()) == 0;  // the loop would not block
  pollfd events{.fd = uv_backend_fd(loop_.uv()), .events = POLLIN, .revents = 0};
  if (!has_more_to_do && ::poll(&events, 1, kTimeoutMs) != 1) fail("the server has nothing to do");
  while (!pool_is_idle()) ::sched_yield();
}

void HostedServer::stop() {
  std::raise(SIGTERM);
  if (server_.run() != 0) fail("the journal has failed");
}

Client::Client(HostedServer& server) : server_(server), descriptor_(connect_to(server.path())) {}

Client::~Client() {
  ::close(descriptor_);
}

std::string Client::ask(std::string_view commands, std::size_t replies, Collect collect) {
  send_all(descriptor_, commands);
  std::string text;
  client::ReplyParser parser({});
  client::ReplyView reply;
  for (std::size_t seen = 0; seen < replies;) {
    server_.run_once(collect);
    const std::string received = take();
    std::string_view input = received;
    for (;;) {
      const auto whole = parser.next(input, reply);
      if (!whole) fail(whole.error().message);
      if (!*whole) break;
      ++seen;
    }
    text += received;
  }
  return text;
}

void Client::send(std::string_view commands, Collect collect) {
  send_all(descriptor_, commands);
  server_.run_once(collect);
}

std::string Client::take() {
  std::string text;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t got = ::recv(descriptor_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got == 0) fail("the server closed the connection");
    if (got < 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace tubed::instructions
