// The client of HTTP, with a server at the other end of a socket pair that sends prepared bytes.
#include "client/http.h"

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/socket.h>

namespace tubed::client {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLong = 10min;  // a last resort against a hang

std::pair<os::Descriptor, os::Descriptor> socket_pair() {
  std::array<int, 2> numbers{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, numbers.data()) == 0);
  return {os::Descriptor(numbers[0]), os::Descriptor(numbers[1])};
}

void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (done <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(done));
  }
}

// The request up to its empty line, and its body.
std::string receive_request(int socket, std::size_t body_bytes) {
  std::string request;
  std::array<char, 1> byte{};
  while (!request.ends_with("\r\n\r\n") && ::recv(socket, byte.data(), 1, 0) == 1) {
    request += byte[0];
  }
  for (; body_bytes > 0 && ::recv(socket, byte.data(), 1, 0) == 1; --body_bytes) request += byte[0];
  return request;
}

// Sends `answer` in pieces of that size, and closes the connection unless `stays`.
Result<HttpAnswer> ask(const std::string& answer, std::size_t piece = 1U << 20,
                       const HttpLimits& limits = {.timeout = kLong}, bool stays = false) {
  auto [ours, theirs] = socket_pair();
  std::thread server([&answer, piece, stays, socket = std::ref(theirs)] {
    receive_request(socket.get().number(), 0);
    for (std::size_t at = 0; at < answer.size(); at += piece) {
      send_all(socket.get().number(), std::string_view(answer).substr(at, piece));
    }
    if (!stays) os::Descriptor closed(std::move(socket.get()));
  });
  auto got = exchange_http(std::move(ours), {.path = "/cluster"}, limits);
  server.join();
  return got;
}

std::string reason(const std::string& answer, const HttpLimits& limits = {.timeout = kLong}) {
  const auto got = ask(answer, 1U << 20, limits);
  REQUIRE_FALSE(got);
  return got.error().message;
}

}  // namespace

TEST_CASE("a request has what HTTP/1.1 demands") {
  for (const std::string& json : {std::string(), std::string(R"({"name":"b"})")}) {
    auto [ours, theirs] = socket_pair();
    std::string request;
    std::thread server([&, socket = theirs.number()] {
      request = receive_request(socket, json.size());
      send_all(socket, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    });
    const auto got = exchange_http(
        std::move(ours),
        {.method = json.empty() ? "GET" : "POST", .path = "/cluster/remove", .json = json},
        {.timeout = kLong});
    server.join();
    REQUIRE(got);
    CHECK(got->body == "{}");
    const std::string common =
        "/cluster/remove HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    CHECK(request == (json.empty() ? "GET " + common + "\r\n"
                                   : "POST " + common + "Content-Type: application/json\r\n" +
                                         "Content-Length: 12\r\n\r\n" + json));
  }
}

TEST_CASE("the body ends with its length, however the answer is cut") {
  struct Case {
    const char* answer;
    int status;
    const char* body;
  };
  for (const Case& one :
       {Case{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhellomore", 200, "hello"},
        Case{"HTTP/1.0 404 Not Found\r\ncontent-length: 0\r\n\r\n", 404, ""},
        Case{"HTTP/1.1 503\r\nA: b\r\nContent-Length: 6\r\nC: d\r\n\r\na\r\n\r\nb", 503,
             "a\r\n\r\nb"}}) {
    CAPTURE(one.answer);
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1000}}) {
      const auto got = ask(one.answer, piece);
      REQUIRE(got);
      CHECK(got->status == one.status);
      CHECK(got->body == one.body);
    }
  }
}

TEST_CASE("the end of the connection is not waited for") {
  const auto got =
      ask("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 1000, {.timeout = kLong}, true);
  REQUIRE(got);
  CHECK(got->body == "{}");
}

TEST_CASE("an answer that is not HTTP with a length is refused") {
  for (const char* const answer :
       {"hello\r\n\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 20\r\n\r\n", "HTTP/1.1 -20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n", "\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"}) {
    CAPTURE(answer);
    CHECK(reason(answer).starts_with("the answer is not HTTP: "));
  }
}

TEST_CASE("an answer that ends early is an error") {
  const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
  for (std::size_t bytes = 0; bytes < answer.size(); ++bytes) {
    CAPTURE(bytes);
    CHECK(reason(answer.substr(0, bytes)) == "the server closed the connection before its answer");
  }
  CHECK(ask(answer));
}

TEST_CASE("an answer that is too large is refused") {
  const HttpLimits limits{.timeout = kLong, .head_bytes = 100, .body_bytes = 10};
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  CHECK(ask(ok + "Content-Length: 10\r\n\r\n" + std::string(10, 'x'), 1000, limits)->body.size() ==
        10);
  for (const char* const length : {"11", "18446744073709551615"}) {
    CHECK(reason(ok + "Content-Length: " + length + "\r\n\r\n", limits) ==
          "the answer is larger than 10 bytes");
  }
  for (const std::string& answer : {std::string(101, 'x'), std::string(100'000, 'x'),
                                    ok + std::string(100, 'x') + "\r\n\r\n"}) {
    CHECK(reason(answer, limits) == "the head of the answer is too large");
  }
}

TEST_CASE("a server that is silent, or too slow, does not hold the caller up") {
  for (const char* const answer :
       {"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"}) {
    CAPTURE(answer);
    const auto got = ask(answer, 1000, {.timeout = 20ms}, true);
    REQUIRE_FALSE(got);
    CHECK(got.error().message == "the server did not answer in time");
  }
}

TEST_CASE("bytes that drop in one by one do not extend the time") {
  auto [ours, theirs] = socket_pair();
  std::thread server([socket = theirs.number()] {
    // Ends when the client has closed.
    while (::send(socket, "x", 1, MSG_NOSIGNAL) == 1) std::this_thread::yield();
  });
  const auto got =
      exchange_http(std::move(ours), {}, {.timeout = 20ms, .head_bytes = std::size_t{1} << 40});
  server.join();
  REQUIRE_FALSE(got);
  CHECK(got.error().message == "the server did not answer in time");
}

TEST_CASE("an answer that comes before the request was read is taken") {
  auto [ours, theirs] = socket_pair();
  send_all(theirs.number(), "HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\n{}");
  { const os::Descriptor closed(std::move(theirs)); }
  const auto got =
      exchange_http(std::move(ours), {.method = "POST", .json = "{}"}, {.timeout = kLong});
  REQUIRE(got);
  CHECK(got->status == 503);
}

TEST_CASE("a request that is not taken ends in time") {
  auto [ours, theirs] = socket_pair();
  const auto got = exchange_http(
      std::move(ours), {.method = "POST", .json = std::string(std::size_t{16} << 20, 'x')},
      {.timeout = 20ms});
  REQUIRE_FALSE(got);
  CHECK(got.error().message == "the server did not take the request in time");
}

}  // namespace tubed::client
