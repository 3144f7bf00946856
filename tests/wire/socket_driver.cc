#include "tests/wire/socket_driver.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tubed::wire {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kRetry{2};
constexpr std::chrono::minutes kStart{10};  // limit for the start of a server; the last resort

Error system_error(const std::string& what) {
  return Error{what + ": " + std::generic_category().message(errno)};
}

int milliseconds_until(Clock::time_point until) {
  const auto left = std::chrono::ceil<milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

Result<std::vector<std::string>> beanstalkd_arguments(const Options& options) {
  if (options.tubes || options.job_memory || options.watches || options.policies) {
    return Error{"beanstalkd has no such option; the transcript lacks `needs: tubed`"};
  }
  std::vector<std::string> arguments;
  if (options.job_bytes) arguments = {"-z", std::to_string(*options.job_bytes)};
  return arguments;
}

std::vector<std::string> tubed_arguments(const Options& options) {
  std::vector<std::string> arguments;
  const auto add = [&](const char* flag, const std::optional<std::uint64_t>& value) {
    if (value) arguments.push_back(std::string(flag) + '=' + std::to_string(*value));
  };
  add("--limits-job-bytes", options.job_bytes);
  add("--limits-tubes", options.tubes);
  add("--limits-job-memory", options.job_memory);
  add("--limits-watches", options.watches);
  add("--limits-policies", options.policies);
  return arguments;
}

// Runs in the child of a process with threads, so it may only call functions that are safe after
// fork.
[[noreturn]] void become_server(char* const* arguments, char* const* environment, const char* log,
                                pid_t parent) {
  // The kernel ends the server when the test is killed.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  const int in = ::open("/dev/null", O_RDONLY);
  const int out = ::open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (in < 0 || out < 0) ::_exit(127);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::execve(arguments[0], arguments, environment);
  ::_exit(127);
}

// Returns the array of pointers that execve() takes.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(const std::string& library, const std::string& clock) {
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) variables.emplace_back(*each);
  if (library.empty()) return variables;
  const char* asan = std::getenv("ASAN_OPTIONS");
  std::erase_if(variables, [](const std::string& one) { return one.starts_with("ASAN_OPTIONS="); });
  variables.push_back("LD_PRELOAD=" + library);
  variables.push_back("TUBED_STOPPED_CLOCK=" + clock);
  variables.push_back("ASAN_OPTIONS=" + std::string(asan == nullptr ? "" : asan) +
                      ":verify_asan_link_order=0");
  return variables;
}

}  // namespace

Result<std::unique_ptr<SocketDriver>> SocketDriver::start(const ServerProgram& program,
                                                          const Options& options) {
  std::unique_ptr<SocketDriver> driver(new SocketDriver(program));
  const auto made = driver->make_directory();
  if (!made) return made.error();
  const std::string address = "unix:" + driver->directory_ + "/socket";
  std::vector<std::string> arguments = {program.binary};
  if (program.kind == ServerKind::beanstalkd) {
    const auto extra = beanstalkd_arguments(options);
    if (!extra) return extra.error();
    arguments.insert(arguments.end(), {"-l", address});
    arguments.insert(arguments.end(), extra.value().begin(), extra.value().end());
  } else {
    const auto extra = tubed_arguments(options);
    arguments.insert(arguments.end(), {"--listen", address});
    if (program.tls) {
      arguments.resize(1);
      arguments.insert(arguments.end(),
                       {"--config", driver->write_settings(address, *program.tls)});
    }
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    if (program.kind == ServerKind::test_mode) {
      arguments.insert(arguments.end(), {"--test-mode", "--no-stdin"});
    }
  }
  const auto stopped = driver->write_clock();
  if (!stopped) return stopped.error();
  const auto spawned = driver->spawn(arguments);
  if (!spawned) return spawned.error();
  const auto listening = driver->wait_until_it_listens();
  if (!listening) return listening.error();
  if (program.kind == ServerKind::test_mode) {
    const auto reset = driver->use_and_reset();
    if (!reset) return reset.error();
  }
  return driver;
}

SocketDriver::~SocketDriver() {
  for (Connection& connection : clients_) {
    if (connection.fd >= 0) ::close(connection.fd);
  }
  if (own_.fd >= 0) ::close(own_.fd);
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

Result<void> SocketDriver::make_directory() {
  // A short name, because the address of a Unix socket has room for 107 bytes.
  std::string name = "/tmp/tubed-wire-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) return system_error("cannot create " + name);
  directory_ = name;
  return {};
}

Result<void> SocketDriver::write_clock() {
  const std::string path = directory_ + "/clock";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return system_error("cannot open " + path);
  const std::int64_t now = advanced_.count();
  const bool written = ::pwrite(file, &now, sizeof now, 0) == sizeof now;
  ::close(file);
  if (!written) return system_error("cannot write " + path);
  return {};
}

std::string SocketDriver::write_settings(const std::string& address, const TlsFiles& tls) const {
  const std::string path = directory_ + "/settings";
  std::ofstream(path) << "[[listen]]\naddress = \"" << address << "\"\ntls.certificate = \""
                      << tls.certificate << "\"\ntls.key = \"" << tls.key << "\"\n";
  return path;
}

Result<void> SocketDriver::spawn(const std::vector<std::string>& arguments) {
  std::vector<std::string> copies = arguments;
  std::vector<std::string> variables = environment_with(clock_, directory_ + "/clock");
  const auto argument_pointers = pointers_to(copies);
  const auto variable_pointers = pointers_to(variables);
  const std::string log = directory_ + "/log";
  const pid_t parent = ::getpid();
  process_ = ::fork();
  if (process_ < 0) return system_error("cannot fork");
  if (process_ == 0) {
    become_server(argument_pointers.data(), variable_pointers.data(), log.c_str(), parent);
  }
  return {};
}

Result<void> SocketDriver::wait_until_it_listens() {
  const auto until = Clock::now() + kStart;
  while (Clock::now() < until) {
    if (connect_once(own_)) {
      barrier();
      return {};
    }
    if (has_exited()) return Error{"the server ended at once: " + printed()};
    std::this_thread::sleep_for(kRetry);
  }
  return Error{"the server does not listen: " + printed()};
}

bool SocketDriver::connect_once(Connection& connection) const {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = directory_ + "/socket";
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    if (is_tls_) connection.tls = TlsStream::open(fd, Clock::now() + limit_);
    if (!is_tls_ || connection.tls != nullptr) {
      connection.fd = fd;
      return true;
    }
  }
  ::close(fd);
  return false;
}

bool SocketDriver::has_exited() {
  if (process_ > 0 && ::waitpid(process_, nullptr, WNOHANG) == process_) process_ = -1;
  return process_ < 0;
}

std::string SocketDriver::printed() const {
  std::ifstream in(directory_ + "/log", std::ios::binary);
  std::ostringstream text;
  if (in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  return text.str();
}

void SocketDriver::open(Client client) {
  if (clients_.size() <= client) clients_.resize(client + 1);
  Connection& connection = clients_[client];
  const auto until = Clock::now() + limit_;
  while (connection.fd < 0 && Clock::now() < until) {
    // Fails briefly while the backlog is full.
    if (!connect_once(connection)) std::this_thread::sleep_for(kRetry);
  }
  connection.ended = connection.fd < 0;
  wait_until_idle();
}

void SocketDriver::send(Client client, std::string_view bytes) {
  // A server that runs one command per tick needs a tick for each line.
  pending_ticks_ += static_cast<std::size_t>(std::ranges::count(bytes, '\n'));
  pending_ticks_ += bytes.size() / 4096;
  send_on(clients_[client], bytes);
}

void SocketDriver::send_on(Connection& connection, std::string_view bytes) {
  const auto until = Clock::now() + limit_;
  while (!bytes.empty() && !connection.ended && Clock::now() < until) {
    const ssize_t sent = connection.tls != nullptr
                             ? connection.tls->send(bytes)
                             : ::send(connection.fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return;  // the server has closed
    pollfd wait{connection.fd, POLLIN | POLLOUT, 0};
    if (::poll(&wait, 1, milliseconds_until(until)) <= 0) return;
    // A server that waits for its replies to be read does not read further input.
    if ((wait.revents & POLLIN) != 0) read_on(connection, Clock::now());
  }
}

bool SocketDriver::read_on(Connection& connection, Clock::time_point until) {
  char chunk[65536];
  while (!connection.ended) {
    const ssize_t got = connection.tls != nullptr ? connection.tls->receive(chunk, sizeof chunk)
                                                  : ::recv(connection.fd, chunk, sizeof chunk, 0);
    if (got > 0) {
      connection.incoming.append(chunk, static_cast<std::size_t>(got));
      return true;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      connection.ended = true;
      return false;
    }
    const int left = milliseconds_until(until);
    if (left == 0) return false;
    pollfd wait{connection.fd, POLLIN, 0};
    ::poll(&wait, 1, left);
  }
  return false;
}

Received SocketDriver::receive(Client client, std::size_t min_bytes) {
  Connection& connection = clients_[client];
  // The reply may depend on the step of the clock.
  if (min_bytes > 0 && step_ > Duration::zero()) wait_until_idle();
  const auto until = Clock::now() + (min_bytes == 0 ? milliseconds(0) : limit_);
  while (read_on(connection, connection.incoming.size() < min_bytes ? until : Clock::now())) {
  }
  return {std::exchange(connection.incoming, {}), connection.ended};
}

void SocketDriver::half_close(Client client) {
  ++pending_ticks_;
  Connection& connection = clients_[client];
  if (connection.tls != nullptr) return connection.tls->end_output();
  ::shutdown(connection.fd, SHUT_WR);
}

void SocketDriver::close(Client client) {
  ++pending_ticks_;
  // A child forked by another thread may hold a copy of the descriptor until its exec, so close()
  // alone might not end the connection at once.
  ::shutdown(clients_[client].fd, SHUT_RDWR);
  ::close(clients_[client].fd);
  clients_[client].fd = -1;
  clients_[client].ended = true;
}

// The first round trip shows that the server has polled its sockets after it received the earlier
// bytes, the second that it has polled again after it processed them.
void SocketDriver::wait_until_idle() {
  const std::size_t trips = 2 + std::exchange(pending_ticks_, 0) * 2;
  for (std::size_t i = 0; i < trips && !own_.ended; ++i) barrier();
  if (clock_.empty() || step_ == Duration::zero()) return;
  advanced_ += step_;
  TUBED_ASSERT(write_clock());
  for (int i = 0; i < 2 && !own_.ended; ++i) barrier();
}

// Sends a word that no server knows: it is answered but not counted in stats.
void SocketDriver::barrier() {
  exchange("barrier\r\n", "UNKNOWN_COMMAND\r\n");
}

bool SocketDriver::exchange(std::string_view text, std::string_view replies) {
  send_on(own_, text);
  const auto until = Clock::now() + limit_;
  while (own_.incoming.size() < replies.size() && read_on(own_, until)) {
  }
  return std::exchange(own_.incoming, {}) == replies;
}

// Leaves jobs in every state, a pause, counts and another time, then resets the server. A
// transcript must not notice any of this.
Result<void> SocketDriver::use_and_reset() {
  const bool done = exchange(
      "use one\r\nwatch one\r\nput 5 0 60 1\r\na\r\nput 5 0 60 1\r\nb\r\nput 5 9 60 1\r\nc\r\n"
      "reserve\r\nbury 1 5\r\nreserve\r\npause-tube one 60\r\ntest-advance 7\r\nnonsense\r\n"
      "test-fault any 9 CLOSE\r\ntest-reset\r\n",
      "USING one\r\nWATCHING 2\r\nINSERTED 1\r\nINSERTED 2\r\nINSERTED 3\r\n"
      "RESERVED 1 1\r\na\r\nBURIED\r\nRESERVED 2 1\r\nb\r\nPAUSED\r\nADVANCED 7000\r\n"
      "UNKNOWN_COMMAND\r\nFAULT_SET\r\nRESET\r\n");
  if (!done) return Error{"the server cannot be reset: " + printed()};
  return {};
}

void SocketDriver::advance(Duration time) {
  if (kind_ == ServerKind::test_mode) {
    const auto span = std::chrono::duration_cast<milliseconds>(time).count();
    send_on(own_, "test-advance " + std::to_string(span) + "ms\r\n");
    const auto until = Clock::now() + limit_;
    while (!own_.incoming.ends_with('\n') && read_on(own_, until)) {
    }
    own_.incoming.clear();
    return;
  }
  advanced_ += time;
  TUBED_ASSERT(!clock_.empty() && write_clock());
  // The server reads its clock at the next event.
  wait_until_idle();
}

void SocketDriver::drain(bool on) {
  ::kill(process_, on ? SIGUSR1 : SIGUSR2);
  wait_until_idle();
}

}  // namespace tubed::wire
