#include "os/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include <doctest/doctest.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/loop/loopback.h"

namespace tubed::os_test {

using namespace loop_test;

using namespace std::chrono_literals;
using namespace os;

namespace {

Socket accepted(const Socket& listener) {
  return Socket(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

struct stat file_status_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status;
}

std::string failure_of(const Result<Socket>& result) {
  REQUIRE_FALSE(result.ok());
  return result.error().message;
}

}  // namespace

TEST_CASE("port 0 is any free port, and the local address has its number") {
  const Socket socket = listening();
  const std::string address = local_address(socket);
  CHECK(address.starts_with("127.0.0.1:"));
  CHECK(address != "127.0.0.1:0");
  const Socket client = connect_to(address);
  CHECK(client);
  CHECK(accepted(socket));
}

TEST_CASE("an IPv6 address is in brackets, and its port remains free for IPv4") {
  if (!has_ipv6()) return;
  // Another process may use the port for IPv4, but hardly in every attempt.
  bool left_it = false;
  for (int tries = 0; tries < 20 && !left_it; ++tries) {
    const auto socket = listen_tcp("::", 0, 16);
    REQUIRE(socket.ok());
    const std::string address = local_address(socket.value());
    REQUIRE(address.starts_with("[::]:"));
    const std::string port = address.substr(5);
    CHECK(connect_to("[::1]:" + port));
    left_it = listen_tcp("127.0.0.1", static_cast<std::uint16_t>(std::stoi(port)), 16).ok();
  }
  CHECK(left_it);
}

TEST_CASE("the error of a port in use, or of an address that is not numeric, names the address") {
  const Socket socket = listening();
  const std::string address = local_address(socket);
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(10)));
  CHECK(failure_of(listen_tcp("127.0.0.1", port, 16)) ==
        "cannot listen on " + address + ": Address already in use");
  CHECK(failure_of(listen_tcp("localhost", 1, 16)) == "localhost:1: not a numeric address");
  CHECK(failure_of(listen_tcp("192.0.2.1", 0, 16)).starts_with("cannot listen on 192.0.2.1:0: "));
}

TEST_CASE("an accepted connection has the options of its listener") {
  const Socket socket = listening();
  tune_connection(socket, 100s);
  const Socket client = connect_to(local_address(socket));
  const Socket connection = accepted(socket);
  REQUIRE(connection);
  CHECK(option_of(connection, IPPROTO_TCP, TCP_NODELAY) == 1);
  CHECK(option_of(connection, SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK(option_of(connection, IPPROTO_TCP, TCP_KEEPIDLE) == 100);
  CHECK(option_of(connection, IPPROTO_TCP, TCP_KEEPINTVL) == 25);
  CHECK(option_of(connection, IPPROTO_TCP, TCP_KEEPCNT) == 4);
}

TEST_CASE("a keepalive is whole seconds, at least 1, and is ignored for a unix socket") {
  const Socket socket = listening();
  tune_connection(socket, 1ms);
  CHECK(option_of(socket, IPPROTO_TCP, TCP_KEEPIDLE) == 1);
  CHECK(option_of(socket, IPPROTO_TCP, TCP_KEEPINTVL) == 1);
  const auto [one, other] = connected_pair();
  tune_connection(one, 100s);
  CHECK(option_of(one, SOL_SOCKET, SO_KEEPALIVE) == 0);
}

TEST_CASE("a unix socket gets the configured mode and group") {
  const Directory directory;
  const std::string path = directory.file("socket");
  for (const unsigned mode : {0600U, 0660U, 0666U, 0620U}) {
    const auto socket = listen_unix(path, {.mode = mode, .group = {}}, 16);
    REQUIRE(socket.ok());
    CHECK((file_status_of(path).st_mode & 07777U) == mode);
    CHECK(local_address(socket.value()) == "unix:" + path);
    CHECK(connect_to("unix:" + path));
  }
  const group* own = ::getgrgid(::getegid());
  REQUIRE(own != nullptr);
  const auto socket = listen_unix(path, {.mode = {}, .group = own->gr_name}, 16);
  REQUIRE(socket.ok());
  CHECK(file_status_of(path).st_gid == ::getegid());
}

TEST_CASE("without a mode the umask applies, and it remains unchanged") {
  const Directory directory;
  const mode_t before = ::umask(027);
  const auto by_umask = listen_unix(directory.file("one"), {}, 16);
  const auto by_mode = listen_unix(directory.file("two"), {.mode = 0666, .group = {}}, 16);
  const mode_t after = ::umask(before);
  CHECK(after == 027);
  CHECK((file_status_of(directory.file("one")).st_mode & 0777U) == 0750);
  CHECK((file_status_of(directory.file("two")).st_mode & 0777U) == 0666);
}

TEST_CASE("a unix socket is replaced if no process serves it") {
  const Directory directory;
  const std::string path = directory.file("socket");
  { const auto stale = listen_unix(path, {}, 16); }
  REQUIRE(std::filesystem::exists(path));
  const auto served = listen_unix(path, {}, 16);
  REQUIRE(served.ok());
  CHECK(failure_of(listen_unix(path, {}, 16)) == "unix:" + path + ": another server listens there");
  CHECK(connect_to("unix:" + path));
}

TEST_CASE("a unix socket whose backlog is full counts as served") {
  const Directory directory;
  const std::string path = directory.file("socket");
  const auto served = listen_unix(path, {}, 0);
  REQUIRE(served.ok());
  const Socket fills_the_backlog = connect_to("unix:" + path);
  REQUIRE(fills_the_backlog);
  CHECK(failure_of(listen_unix(path, {}, 16)) == "unix:" + path + ": another server listens there");
}

TEST_CASE("a file that is not a socket is not replaced, and an unusable path is an error") {
  const Directory directory;
  const std::string path = directory.file("file");
  std::ofstream(path) << "precious";
  CHECK(failure_of(listen_unix(path, {}, 16)) == "unix:" + path + ": exists and is not a socket");
  CHECK(std::filesystem::file_size(path) == 8);
  CHECK(failure_of(listen_unix("/" + std::string(107, 'x'), {}, 16)).find("too long") !=
        std::string::npos);
  CHECK(
      failure_of(listen_unix(directory.file("none/socket"), {}, 16)).starts_with("cannot listen"));
}

TEST_CASE("a unix socket whose group does not exist is removed") {
  const Directory directory;
  const std::string path = directory.file("socket");
  CHECK(failure_of(listen_unix(path, {.mode = {}, .group = "no-such-group"}, 16)) ==
        path + ": no group no-such-group");
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a file that replaces a unix socket keeps its mode and its group") {
  const Directory directory;
  const std::string path = directory.file("socket");
  const std::string precious = directory.file("precious");
  const auto socket = listen_unix(path, {}, 16);
  REQUIRE(socket.ok());
  std::ofstream(precious) << "precious";
  REQUIRE(::chmod(precious.c_str(), 0600) == 0);
  const auto other = listen_unix(directory.file("other"), {.mode = 0600, .group = {}}, 16);
  REQUIRE(other.ok());
  // Root can give a file any group, so a change would show.
  const group* wanted = ::geteuid() == 0 ? ::getgrnam("daemon") : ::getgrgid(::getegid());
  REQUIRE(wanted != nullptr);
  const UnixAccess access{.mode = 0666, .group = wanted->gr_name};

  const auto check_refused = [&](const std::string& victim) {
    const struct stat before = file_status_of(victim);
    const auto granted = grant_access(path, access);
    REQUIRE_FALSE(granted.ok());
    CHECK(granted.error().message == path + ": another file has taken the socket's place");
    CHECK(file_status_of(victim).st_mode == before.st_mode);
    CHECK(file_status_of(victim).st_gid == before.st_gid);
    std::filesystem::remove(path);
  };
  std::filesystem::remove(path);
  std::filesystem::create_symlink(precious, path);
  check_refused(precious);
  std::filesystem::create_symlink(directory.file("other"), path);
  check_refused(directory.file("other"));
  std::filesystem::create_hard_link(directory.file("other"), path);
  check_refused(directory.file("other"));
  std::filesystem::rename(precious, path);
  check_refused(path);
  CHECK_FALSE(grant_access(path, access).ok());  // the path does not exist
}

TEST_CASE("a default ACL of the directory does not change the configured mode") {
  const Directory directory;
  const std::string inside = directory.file("shared");
  std::filesystem::create_directory(inside);
  // In the kernel's format: rwx for the owner, r for the group, nothing for others.
  const std::array<std::uint16_t, 14> acl = {2, 0,      1,      7,    0xffff, 0xffff, 4,
                                             4, 0xffff, 0xffff, 0x20, 0,      0xffff, 0xffff};
  if (::setxattr(inside.c_str(), "system.posix_acl_default", acl.data(), sizeof acl, 0) != 0) {
    REQUIRE(errno == ENOTSUP);
    MESSAGE("this file system has no ACLs");
    return;
  }
  const auto socket = listen_unix(inside + "/socket", {.mode = 0666, .group = {}}, 16);
  REQUIRE(socket.ok());
  CHECK((file_status_of(inside + "/socket").st_mode & 07777U) == 0666);
}

TEST_CASE("a path is removed only by its own socket") {
  const Directory directory;
  const std::string path = directory.file("socket");
  const auto first = listen_unix(path, {}, 16);
  REQUIRE(first.ok());
  std::filesystem::remove(path);
  const auto second = listen_unix(path, {}, 16);
  REQUIRE(second.ok());
  remove_unix_path(first.value(), path);
  CHECK(std::filesystem::exists(path));
  remove_unix_path(second.value(), path);
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("a refused connection receives the line and the end, whatever it has sent") {
  const Socket socket = listening();
  for (const std::string& sent :
       {std::string(), std::string("stats\r\n"), std::string(4000, 'x')}) {
    const Socket client = connect_to(local_address(socket));
    if (!sent.empty()) write_all(client, sent);
    refuse_connection(accepted(socket), "OUT_OF_MEMORY");
    CHECK(read_to_end(client) == "OUT_OF_MEMORY\r\n");
  }
}

TEST_CASE("a read fills the buffers in order, and reports an empty or ended stream") {
  auto [one, other] = connected_pair();
  std::array<char, 3> first{};
  std::array<char, 10> second{};
  const std::array buffers = {std::span<char>(first), std::span<char>(second)};
  CHECK(read_into(one, buffers).kind == Transfer::Kind::would_block);
  write_all(other, "abcdefg");
  const Transfer transfer = read_into(one, buffers);
  CHECK(transfer.kind == Transfer::Kind::done);
  CHECK(transfer.bytes == 7);
  CHECK(std::string_view(first.data(), 3) == "abc");
  CHECK(std::string_view(second.data(), 4) == "defg");
  half_close(other);
  CHECK(read_into(one, buffers).kind == Transfer::Kind::end);
}

TEST_CASE("a write sends the pieces in order, and at most kMaxPieces of them") {
  const auto [one, other] = connected_pair();
  const std::array<std::string_view, 3> pieces = {"ab", "", "cde"};
  CHECK(write_from(one, pieces).bytes == 5);
  CHECK(read_some(other) == "abcde");
  const std::vector<std::string_view> many(kMaxPieces + 10, "x");
  CHECK(write_from(one, many).bytes == kMaxPieces);
}

TEST_CASE("a write to a closed connection fails without a signal") {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  auto [one, other] = connected_pair();
  other = Socket();
  const std::array<std::string_view, 1> pieces = {"x"};
  CHECK(write_from(one, pieces).kind == Transfer::Kind::failed);
  std::signal(SIGPIPE, before);
}

TEST_CASE("a write to a full connection would block") {
  const auto [one, other] = connected_pair();
  const std::string much(1 << 20, 'x');
  const std::array<std::string_view, 1> pieces = {much};
  std::size_t written = 0;
  for (;;) {
    const Transfer transfer = write_from(one, pieces);
    if (transfer.kind == Transfer::Kind::would_block) break;
    REQUIRE(transfer.kind == Transfer::Kind::done);
    written += transfer.bytes;
  }
  CHECK(written > 0);
  CHECK(read_exactly(other, written).size() == written);
}

TEST_CASE("bytes that have arrived are unread until they are read") {
  const auto [one, other] = connected_pair();
  CHECK_FALSE(has_unread(one));
  write_all(other, "abc");
  CHECK(has_unread(one));
  read_some(one);
  CHECK_FALSE(has_unread(one));
  half_close(other);
  CHECK_FALSE(has_unread(one));  // the end is not a byte
}

TEST_CASE("the end of the output leaves the input open") {
  const auto [one, other] = connected_pair();
  const std::array<std::string_view, 1> pieces = {"last"};
  write_from(one, pieces);
  end_output(one);
  CHECK(read_to_end(other) == "last");
  write_all(other, "abc");
  CHECK(read_exactly(one, 3) == "abc");
}

TEST_CASE("the address of a peer as one word") {
  CHECK(peer_word("127.0.0.1:50312") == "127.0.0.1:50312");
  CHECK(peer_word("[fe80::1%eth0]:7") == "[fe80::1%eth0]:7");
  CHECK(peer_word("unix uid 1000 pid 4711") == "unix:1000:4711");
  CHECK(peer_word("unix") == "unix");
  CHECK(peer_word("?") == "-");
  CHECK(peer_word("standard input") == "standard-input");
  const auto [one, other] = connected_pair();
  CHECK(peer_word(peer_address(one)) ==
        "unix:" + std::to_string(::getuid()) + ":" + std::to_string(::getpid()));
}

TEST_CASE("the credentials of a unix peer are its process, its user and all its groups") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const Socket socket(ends[0]);
  const Socket peer(ends[1]);
  const auto credentials = peer_credentials(socket);
  REQUIRE(credentials);
  CHECK(credentials->process == ::getpid());
  CHECK(credentials->user == ::getuid());
  std::vector<gid_t> groups(static_cast<std::size_t>(::getgroups(0, nullptr)));
  REQUIRE(::getgroups(static_cast<int>(groups.size()), groups.data()) ==
          static_cast<int>(groups.size()));
  groups.push_back(::getgid());
  for (const gid_t group : groups)
    CHECK(std::ranges::find(credentials->groups, group) != credentials->groups.end());
  CHECK_FALSE(peer_credentials(listening()));  // a TCP socket
}

TEST_CASE("a socket has one owner") {
  auto [one, other] = connected_pair();
  const int descriptor = one.descriptor();
  Socket moved(std::move(one));
  CHECK(moved.descriptor() == descriptor);
  CHECK_FALSE(one);
  moved = Socket();
  CHECK(read_to_end(other).empty());
}

TEST_CASE("a connection is made when the socket is writable") {
  const Socket listener = listening();
  const std::string address = local_address(listener);
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  const auto client = connect_tcp("127.0.0.1", port);
  REQUIRE(client.ok());
  const Socket server = accepted(listener);
  REQUIRE(server);
  CHECK(finish_connect(*client).ok());
  CHECK(peer_address(*client) == address);
  CHECK(failure_of(connect_tcp("example.org", 80)) == "example.org:80: not a numeric address");
  CHECK(failure_of(connect_tcp("1:2", 80)) == "[1:2]:80: not a numeric address");
}

TEST_CASE("a socket that the kernel has connected to itself is not connected") {
  // Dials its own port.
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof name;
  const Socket self(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(self.descriptor(), reinterpret_cast<sockaddr*>(&name), sizeof name) == 0);
  REQUIRE(::getsockname(self.descriptor(), reinterpret_cast<sockaddr*>(&name), &bytes) == 0);
  REQUIRE(::connect(self.descriptor(), reinterpret_cast<sockaddr*>(&name), sizeof name) == 0);
  const auto made = finish_connect(self);
  REQUIRE_FALSE(made.ok());
  CHECK(made.error().message == "Connection refused");
}

TEST_CASE("the user timeout is in milliseconds, and at least 1") {
  const Socket socket = listening();
  set_user_timeout(socket, 1500ms);
  CHECK(option_of(socket, IPPROTO_TCP, TCP_USER_TIMEOUT) == 1500);
  set_user_timeout(socket, Duration(1));
  CHECK(option_of(socket, IPPROTO_TCP, TCP_USER_TIMEOUT) == 1);
  set_user_timeout(socket, Duration::max());
  CHECK(option_of(socket, IPPROTO_TCP, TCP_USER_TIMEOUT) > 1'000'000'000);
}

}  // namespace tubed::os_test
