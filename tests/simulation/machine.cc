#include "tests/simulation/machine.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/secret_file.h"
#include "os/socket.h"
#include "tests/simulation/net.h"
#include "tests/simulation/uv.h"

namespace tubed::simulation {

namespace {

using std::chrono::microseconds;

// Two reads of a clock without an event in between show that time passes.
constexpr Duration kClockRead = std::chrono::nanoseconds(100);

Machine* current_machine = nullptr;

}  // namespace

Machine::Machine(World& world)
    : world_(world),
      chance_(world.seed(), "disk"),
      process_chance_(world.seed(), "process"),
      random_(world.seed()) {
  TUBED_ASSERT(current_machine == nullptr);
  current_machine = this;
  if (chance_.percent(50)) disk_.shuffle(chance_.number());
}

Machine::~Machine() {
  current_machine = nullptr;
}

Machine& Machine::current() {
  TUBED_ASSERT(current_machine != nullptr);
  return *current_machine;
}

void Machine::schedule() {
  if (scheduled_ || disk_.pending() == 0 || disk_.off()) return;
  scheduled_ = true;
  const bool is_slow = chance_.percent(3);
  const std::uint64_t most = is_slow && !is_calm_ ? 30'000 : 600;
  world_.after(microseconds(30 + chance_.below(most)), [this, life = life_] {
    if (life != life_) return;
    scheduled_ = false;
    report(DiskEvent::written);
    if (life != life_) return;
    run_one();
    schedule();
  });
}

void Machine::run_one() {
  disk_.run_one();
  note_call();
}

void Machine::report(DiskEvent event) {
  if (event_) event_(event);
}

void Machine::report_write(journal::FileId file) {
  const bool is_other = std::exchange(last_file_, file) != file;
  report(is_other ? DiskEvent::other_file : DiskEvent::write);
}

void Machine::end_process(journal::Fate fate) {
  ++life_;
  event_ = {};
  clock_watches_.clear();
  if (fate == journal::Fate::power_loss) ++boot_;
  next_disk_ = std::make_unique<journal::TestDisk>(disk_.after_crash(random_, fate));
}

void Machine::begin_process() {
  ++life_;
  if (next_disk_ != nullptr) disk_ = std::move(*std::exchange(next_disk_, nullptr));
  scheduled_ = false;
  last_file_ = 0;
  schedule();
}

void Machine::step_wall_clock(Duration by) {
  world_.step_wall_clock(by);
  for (const int watch : clock_watches_) ::eventfd_write(watch, 1);
}

}  // namespace tubed::simulation

using namespace tubed::simulation;

// --- The clock of libmicrohttpd

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const bool is_monotonic = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE;
  if (!is_monotonic || !World::exists())
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  const auto now = World::current().now().time_since_epoch().count();
  constexpr std::int64_t kSecond = 1'000'000'000;
  *time = {.tv_sec = now / kSecond, .tv_nsec = now % kSecond};
  return 0;
}

// --- The timers of loop/clock_watch.cc, which only a step of the wall clock makes readable

extern "C" {

int timerfd_create(int, int) noexcept {
  const int descriptor = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  Machine::current().add_clock_watch(descriptor);
  return descriptor;
}

int timerfd_settime(int, int, const itimerspec*, itimerspec*) noexcept {
  return 0;
}

}  // extern "C"

// --- os/clock.h, os/process.h

namespace tubed::os {

Time monotonic_now() {
  World::current().pass(kClockRead);
  return World::current().now();
}

Time boot_time_now() {
  return monotonic_now();
}

Duration wall_time() {
  return monotonic_now().time_since_epoch() + World::current().wall_offset();
}

Duration wall_offset() {
  return World::current().wall_offset();
}

MachineNames machine_names() {
  return {.hostname = "simulated", .os = "none", .platform = "none"};
}

std::string boot_id() {
  return fmt::format("boot {}", Machine::current().boot());
}

std::uint64_t process_id() {
  return 1;
}

ProcessTimes process_times() {
  return {};
}

std::uint64_t resident_bytes() {
  return 0;
}

std::uint64_t random_number() {
  return Machine::current().random_number();
}

std::string random_instance_id() {
  return fmt::format("{:016x}", random_number());
}

void exit_now(int code) {
  throw EndedAtOnce{code};
}

void trim_heap() {}

std::uint64_t open_descriptors(const char*) {
  return 16;
}

std::uint64_t descriptor_limit() {
  return 1024;
}

Result<void> expect_descriptors(std::size_t) {
  return {};
}

Result<OtherProcess> OtherProcess::open(std::uint64_t id) {
  return Error{fmt::format("process {}: the simulation has no other processes", id)};
}

Result<void> OtherProcess::signal(int) const {
  return Error{fmt::format("process {}: the simulation has no other processes", id_)};
}

Result<bool> OtherProcess::ends_within(std::chrono::milliseconds) const {
  return Error{"the simulation has no other processes"};
}

// The only user of the simulated machine is root.
Result<void> become_user(const std::string& user) {
  if (user == "root") return {};
  return Error{fmt::format("no user {}", user)};
}

std::optional<std::uint32_t> user_id(const std::string& name) {
  return name == "root" ? std::optional<std::uint32_t>(0) : std::nullopt;
}

std::optional<std::uint32_t> group_id(const std::string& name) {
  return user_id(name);
}

bool sees_all_users() {
  return true;
}

// --- os/secret_file.h

Result<void> check_secret(const std::string& file) {
  TRY(read_secret(file, SIZE_MAX));
  return {};
}

// No simulated server is in a cluster.
Result<std::string> read_own_secret(const std::string& file, std::size_t most) {
  return read_secret(file, most);
}

Result<std::string> read_secret(const std::string& file, std::size_t most) {
  const auto& secrets = Machine::current().secrets();
  const auto found = secrets.find(file);
  if (found == secrets.end()) return Error{file + ": no such file"};
  if (found->second.size() > most) return Error{file + ": too large"};
  return found->second;
}

// --- os/socket.h

namespace {

Endpoint* endpoint_of(const Socket& socket) {
  return Net::current().find(socket.descriptor());
}

// True for the channels of loop/lingering_close.cc on HTTP connections.
bool is_real(const Socket& socket) {
  return socket.descriptor() >= 0 && socket.descriptor() < Net::kFirstDescriptor;
}

Transfer transfer_of(ssize_t bytes) {
  if (bytes > 0) return {Transfer::Kind::done, static_cast<std::size_t>(bytes)};
  if (bytes == 0) return {Transfer::Kind::end, 0};
  return {errno == EAGAIN ? Transfer::Kind::would_block : Transfer::Kind::failed, 0};
}

bool real_has(const Socket& socket, short events) {
  pollfd watched{.fd = socket.descriptor(), .events = events, .revents = 0};
  ::poll(&watched, 1, 0);
  return (watched.revents & (events | POLLHUP | POLLERR)) != 0;
}

}  // namespace

// A real descriptor is one that a listener keeps in reserve.
Socket::~Socket() {
  if (descriptor_ < 0) return;
  if (descriptor_ < Net::kFirstDescriptor) {
    static_cast<void>(Descriptor(descriptor_));
  } else {
    Net::current().close(descriptor_);
  }
}

Transfer read_into(const Socket& socket, std::span<const std::span<char>> buffers) {
  if (is_real(socket)) {
    const std::span<char> first = buffers.front();
    return transfer_of(::recv(socket.descriptor(), first.data(), first.size(), MSG_DONTWAIT));
  }
  Endpoint* const endpoint = endpoint_of(socket);
  if (endpoint == nullptr || endpoint->lost()) return {Transfer::Kind::failed, 0};
  if (endpoint->arrived().empty())
    return {endpoint->ended() ? Transfer::Kind::end : Transfer::Kind::would_block, 0};
  std::size_t read = 0;
  for (const std::span<char> buffer : buffers) {
    const std::string_view rest = endpoint->arrived().substr(read);
    const std::size_t bytes = std::min(buffer.size(), rest.size());
    std::copy_n(rest.data(), bytes, buffer.data());
    read += bytes;
  }
  endpoint->take(read);
  return {Transfer::Kind::done, read};
}

Transfer read_into(const Socket& socket, std::span<char> buffer) {
  return read_into(socket, std::span<const std::span<char>>(&buffer, 1));
}

Transfer peek_into(const Socket& socket, std::span<char> buffer) {
  Endpoint* const endpoint = endpoint_of(socket);
  if (endpoint == nullptr || endpoint->lost()) return {Transfer::Kind::failed, 0};
  const std::string_view arrived = endpoint->arrived().substr(0, buffer.size());
  if (arrived.empty())
    return {endpoint->ended() ? Transfer::Kind::end : Transfer::Kind::would_block, 0};
  std::ranges::copy(arrived, buffer.begin());
  return {Transfer::Kind::done, arrived.size()};
}

Transfer write_from(const Socket& socket, std::span<const std::string_view> pieces) {
  Endpoint* const endpoint = endpoint_of(socket);
  if (endpoint == nullptr || endpoint->lost()) return {Transfer::Kind::failed, 0};
  std::string bytes;
  for (const std::string_view piece : pieces.first(std::min(pieces.size(), kMaxPieces)))
    bytes.append(piece);
  const std::size_t sent = endpoint->send(bytes);
  if (sent == 0) return {Transfer::Kind::would_block, 0};
  return {Transfer::Kind::done, sent};
}

Transfer write_from(const Socket& socket, std::string_view piece) {
  return write_from(socket, std::span<const std::string_view>(&piece, 1));
}

bool has_unread(const Socket& socket) {
  if (is_real(socket)) return real_has(socket, POLLIN);
  const Endpoint* endpoint = endpoint_of(socket);
  return endpoint != nullptr && !endpoint->arrived().empty();
}

bool has_ended(const Socket& socket) {
  if (is_real(socket)) return real_has(socket, POLLRDHUP);
  const Endpoint* endpoint = endpoint_of(socket);
  return endpoint == nullptr || endpoint->ended() || endpoint->lost();
}

void end_output(const Socket& socket) {
  if (is_real(socket)) ::shutdown(socket.descriptor(), SHUT_WR);
  if (Endpoint* endpoint = endpoint_of(socket)) endpoint->end_output();
}

void tune_connection(const Socket&, Duration) {}

void set_user_timeout(const Socket&, Duration) {}

void set_nonblocking_cloexec(const Socket&) {}

void send_refusal(const Socket& socket, std::string_view line) {
  if (!line.empty()) write_from(socket, std::string(line) + "\r\n");
}

void refuse_connection(Socket socket, std::string_view line) {
  send_refusal(socket, line);
}

bool may_open_tcp() {
  return true;
}

Result<Socket> listen_tcp(const std::string&, std::uint16_t port, int) {
  return Socket(Net::current().listen(port));
}

Result<Socket> listen_unix(const std::string& path, const UnixAccess&, int) {
  return Error{path + ": the simulation has no unix sockets"};
}

Result<void> grant_access(const std::string& path, const UnixAccess&) {
  return Error{path + ": the simulation has no unix sockets"};
}

// Used by the nodes of a cluster, which the simulation does not have yet.
Result<Socket> connect_tcp(const std::string& host, std::uint16_t) {
  return Error{host + ": the simulation has no other machines"};
}

Result<void> finish_connect(const Socket&) {
  return Error{"the simulation has no other machines"};
}

Result<std::pair<Socket, Socket>> socket_pair() {
  return Error{"the simulation has no unix sockets"};
}

Socket accept_from(const Socket& listening) {
  const int accepted = Net::current().accept(listening.descriptor());
  if (accepted < 0) errno = EAGAIN;
  return Socket(accepted);
}

void remove_unix_path(const Socket&, const std::string&) {}

std::string local_address(const Socket&) {
  return "127.0.0.1:11300";
}

std::string peer_address(const Socket& socket) {
  // Real numbers depend on the process that runs the simulation.
  if (is_real(socket)) return "127.0.0.1:1";
  return fmt::format("127.0.0.1:{}", socket.descriptor() - Net::kFirstDescriptor);
}

std::optional<PeerCredentials> peer_credentials(const Socket&) {
  return std::nullopt;
}

}  // namespace tubed::os
