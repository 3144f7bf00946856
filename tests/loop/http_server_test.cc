#include "loop/http_server.h"

#include <filesystem>
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "tests/loop/http_site.h"

namespace tubed::loop_test {

using loop::HttpServer;

TEST_CASE("a request is answered, and the connection is closed") {
  TestServer test;
  const auto answer = test.ask(get("/here?and=there"));
  CHECK(status_in(answer) == "HTTP/1.1 200 OK");
  CHECK(has_line(answer, "Content-Type: text/plain; charset=utf-8"));
  CHECK(has_line(answer, "Content-Length: 21"));
  CHECK(has_line(answer, "Connection: close"));
  CHECK(body_of(answer) == "it is /here?and=there");
  CHECK(test.site.asked == std::vector<std::string>{"/here?and=there"});
}

TEST_CASE("a HEAD is answered with the header only") {
  TestServer test;
  test.site.pages["/long"] = 100'000;
  auto answer = test.ask("HEAD /here HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(has_line(answer, "Content-Length: 11"));
  CHECK(body_of(answer).empty());
  answer = test.ask("HEAD /long HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(status_in(answer) == "HTTP/1.1 200 OK");
  CHECK(body_of(answer).empty());
  CHECK(test.site.open_pages == 0);
}

TEST_CASE("the owner sees the request as the client has sent it") {
  TestServer test;
  std::string seen;
  test.site.answer = [&](const loop::HttpRequest& request) {
    seen = std::string(request.method()) + ' ' + std::string(request.target()) + ' ' +
           std::string(request.header("x-by").value_or("none")) + ' ' +
           std::to_string(request.count_headers("X-BY")) + ' ' +
           (request.body_bytes() ? std::to_string(*request.body_bytes()) : "unknown") + ' ' +
           (request.is_head() ? "is_head" : "");
    return loop::HttpResponse{};
  };
  const auto sees = [&](const std::string& request) {
    seen.clear();
    test.ask(request);
    return seen;
  };
  CHECK(sees("get /a%2Fb//../%zz?c=d%20e+f&&=#g HTTP/1.1\r\nHost: x\r\n\r\n") ==
        "get /a%2Fb//../%zz?c=d%20e+f&&=#g none 0 0 ");
  CHECK(sees("HEAD * HTTP/1.1\r\nHost: x\r\nx-By: 1\r\nX-by:2\r\n\r\n") == "HEAD * 1 2 0 is_head");
  CHECK(sees("PUT http://x/y HTTP/1.1\r\nHost: x\r\nX-By:\r\nContent-Length: 12\r\n\r\n") ==
        "PUT http://x/y  1 12 ");
  CHECK(sees("X / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n") ==
        "X / none 0 unknown ");
  CHECK(sees("GET /\xff\x01 HTTP/1.0\r\n\r\n") == "GET /\xff\x01 none 0 0 ");
}

TEST_CASE("a response has its headers, and a persistent text is not copied") {
  TestServer test;
  static const std::string page(1'000'000, 'x');
  test.site.answer = [](const loop::HttpRequest&) {
    return loop::HttpResponse{.status = 201,
                              .content_type = "text/html",
                              .persistent = page,
                              .headers = {{"Cache-Control", "no-store"}, {"X-A", "b"}}};
  };
  const auto answer = test.ask(get("/"));
  CHECK(status_in(answer) == "HTTP/1.1 201 Created");
  CHECK(has_line(answer, "Content-Type: text/html"));
  CHECK(has_line(answer, "Cache-Control: no-store"));
  CHECK(has_line(answer, "X-A: b"));
  CHECK(body_of(answer) == page);
}

TEST_CASE("a streamed response arrives in parts, and complete" * doctest::test_suite("slow")) {
  for (const std::size_t bytes : {std::size_t{1}, HttpServer::kBytesPerTick,
                                  HttpServer::kBytesPerTick + 1, std::size_t{3'000'000}}) {
    CAPTURE(bytes);
    TestServer test;
    test.site.pages["/long"] = bytes;
    auto answer = test.ask(get("/long"));
    CHECK(has_line(answer, "Content-Type: text/long"));
    CHECK(has_line(answer, "Transfer-Encoding: chunked"));
    CHECK(without_chunks(body_of(answer)) == text_of_page(bytes));
    answer = test.ask("GET /long HTTP/1.0\r\n\r\n");
    CHECK(body_of(answer) == text_of_page(bytes));
    CHECK(test.site.open_pages == 0);
  }
}

TEST_CASE("one tick makes at most kBytesPerTick bytes" * doctest::test_suite("slow")) {
  TestServer test;
  test.site.pages["/long"] = 10'000'000;
  const os::Socket client = test.connect();
  write_all(client, get("/long"));
  std::size_t got = 0;
  std::size_t most = 0;
  REQUIRE(run_until(test.loop, [&] {
    const std::size_t before = test.site.made;
    run_ticks(test.loop);
    most = std::max(most, test.site.made - before);
    got += read_some(client).size();
    return test.site.made == 10'000'000 && test.site.open_pages == 0;
  }));
  CHECK(most > 0);
  CHECK(most <= HttpServer::kBytesPerTick);
  CHECK(got > 0);
}

TEST_CASE("a client that does not read delays no other client, and is closed when idle" *
          doctest::test_suite("slow")) {
  TestServer test;
  test.site.pages["/long"] = 100'000'000;
  const os::Socket idle = test.connect();
  const os::Socket half = test.connect();
  write_all(half, "GET /here HTTP/1.1\r\nHo");
  const os::Socket client = test.connect();
  write_all(client, get("/long"));
  std::size_t made = 0;
  REQUIRE(run_until(test.loop, [&] {
    const bool is_blocked = test.site.made > 0 && made == test.site.made;
    made = test.site.made;
    run_ticks(test.loop, 10);
    return is_blocked;
  }));
  CHECK(made < 50'000'000);
  CHECK(body_of(test.ask(get("/here"))) == "it is /here");
  // No more parts are requested, and the loop sleeps until the idle timeout.
  test.server->set_timeouts(std::chrono::seconds(1), std::chrono::hours(1));
  CHECK(run_until(test.loop, [&] { return test.site.open_pages == 0; }));
  CHECK(test.site.made == made);
  CHECK(test.take_all(idle).empty());
  test.take_all(half);
}

TEST_CASE("a slow client is closed after the total timeout" * doctest::test_suite("slow")) {
  TestServer test;
  std::vector<os::Socket> clients;
  for (std::size_t i = 0; i < HttpServer::kMaxConnections; ++i) {
    clients.push_back(test.connect());
    write_all(clients.back(), "GET /he");
  }
  run_ticks(test.loop, 20);
  CHECK(body_of(test.ask(get("/here"))) == "it is /here");
  test.server->set_timeouts(std::chrono::hours(1), std::chrono::milliseconds(200));
  for (const os::Socket& client : clients) CHECK(test.take_all(client).empty());
  CHECK(uv_backend_timeout(test.loop.uv()) == -1);
}

TEST_CASE("the loop sleeps while no work is pending" * doctest::test_suite("slow")) {
  TestServer test;
  const os::Socket client = test.connect();
  write_all(client, "GET /he");
  run_ticks(test.loop, 20);
  CHECK(uv_backend_timeout(test.loop.uv()) > 1000);
  const os::Socket silent = test.connect();
  write_all(silent, std::string_view("\0\r\n\r\n", 5));
  half_close(silent);
  run_ticks(test.loop, 20);
  CHECK(uv_backend_timeout(test.loop.uv()) > 1000);
  write_all(client, "re HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(body_of(test.take_all(client)) == "it is /here");
  test.server->set_timeouts(std::chrono::seconds(1), std::chrono::hours(1));
  test.take_all(silent);
  run_ticks(test.loop, 20);
  CHECK(uv_backend_timeout(test.loop.uv()) == -1);
}

TEST_CASE("clients beyond kMaxConnections wait in the kernel, and all are answered") {
  TestServer test;
  std::vector<os::Socket> clients;
  for (int i = 0; i < 300; ++i) {
    clients.push_back(test.connect());
    write_all(clients.back(), get("/crowd"));
  }
  for (const os::Socket& client : clients) CHECK(body_of(test.take_all(client)) == "it is /crowd");
  CHECK(test.site.asked.size() == 300);
}

TEST_CASE("clients without a request stay connected, and delay no other client") {
  TestServer test;
  std::vector<os::Socket> clients;
  for (std::size_t i = 0; i + 2 < HttpServer::kMaxConnections; ++i) {
    clients.push_back(test.connect());
  }
  run_ticks(test.loop, 20);
  CHECK(body_of(test.ask(get("/last"))) == "it is /last");
  for (const os::Socket& client : clients) {
    write_all(client, get("/crowd"));
    CHECK(body_of(test.take_all(client)) == "it is /crowd");
  }
}

TEST_CASE("incomplete requests, however many, do not keep a complete request from its answer" *
          doctest::test_suite("slow")) {
  TestServer test;
  std::vector<os::Socket> halves(2 * HttpServer::kMaxConnections);
  std::size_t closed = 0;
  const auto keep_up = [&] {
    for (os::Socket& half : halves) {
      char bytes[100];
      const bool ended = half && os::read_into(half, bytes).kind != os::Transfer::Kind::would_block;
      if (half && !ended) continue;
      closed += ended ? 1 : 0;
      half = test.connect();
      write_all(half, "GET /he");
    }
    run_ticks(test.loop);
  };
  for (int i = 0; i < 20; ++i) keep_up();
  for (int i = 0; i < 6; ++i) {
    const os::Socket client = test.connect();
    write_all(client, get("/here"));
    std::string got;
    std::size_t turns = 0;
    for (bool ended = false; !ended; ++turns) {
      REQUIRE(turns < 5'000);
      keep_up();
      char bytes[1000];
      const auto transfer = os::read_into(client, bytes);
      got.append(bytes, transfer.bytes);
      ended = transfer.kind == os::Transfer::Kind::end;
    }
    CHECK(body_of(got) == "it is /here");
  }
  CHECK(closed > 0);
}

TEST_CASE("clients that do not read delay neither a text nor a streamed response" *
          doctest::test_suite("slow")) {
  TestServer test;
  test.site.pages["/long"] = 50'000'000;
  test.site.pages["/page"] = 100'000;
  std::vector<os::Socket> slow;
  for (std::size_t i = 0; i < 2 * HttpServer::kMaxStreams; ++i) {
    slow.push_back(test.connect());
    write_all(slow.back(), get("/long"));
    run_ticks(test.loop, 20);
    CHECK(test.site.open_pages <= static_cast<int>(HttpServer::kMaxStreams) + 1);
  }
  CHECK(body_of(test.ask(get("/here"))) == "it is /here");
  CHECK(without_chunks(body_of(test.ask(get("/page")))) == text_of_page(100'000));
}

TEST_CASE("input that is not HTTP ends its connection" * doctest::test_suite("slow")) {
  TestServer test;
  const std::string long_line(100'000, 'x');
  for (const std::string& request :
       {std::string("put 0 0 60 5\r\nhello\r\n"), std::string("\0\1\2\r\n\r\n", 7),
        "GET /" + long_line + " HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nX: " + long_line + "\r\n\r\n", long_line}) {
    CAPTURE(request.substr(0, 30));
    const os::Socket client = test.connect();
    write_all(client, request);
    half_close(client);
    run_ticks(test.loop, 20);
    test.server->set_timeouts(std::chrono::seconds(1), std::chrono::hours(1));
    CHECK(test.take_all(client).find(" 200 ") == std::string::npos);
  }
  CHECK(test.site.asked.empty());
  test.server->set_timeouts(std::chrono::hours(1), std::chrono::hours(1));
  CHECK(body_of(test.ask(get("/here"))) == "it is /here");
}

TEST_CASE("without a descriptor a connection is refused, and accepted again later") {
  TestServer test;
  const os::Socket client = test.connect();
  {
    const NoDescriptors none;
    CHECK(status_in(test.take_all(client)) == "HTTP/1.1 503 Service Unavailable");
  }
  CHECK(test.site.errors == std::vector<std::string>{"Too many open files"});
  CHECK(body_of(test.ask(get("/here"))) == "it is /here");
}

TEST_CASE("the server can be destroyed with requests and responses under way") {
  const Directory directory;
  const std::string path = directory.file("socket");
  TestServer test;
  test.listen_on(path);
  test.site.pages["/long"] = 10'000'000;
  const os::Socket idle = test.connect();
  const os::Socket half = test.connect();
  write_all(half, "GET /here HT");
  const os::Socket local = connect_to("unix:" + path);
  write_all(local, get("/long"));
  REQUIRE(run_until(test.loop, [&] { return test.site.open_pages == 1; }));
  std::vector<os::Socket> others;
  for (int i = 0; i < 20; ++i) others.push_back(test.connect());
  run_ticks(test.loop, 5);
  test.server.reset();
  CHECK(test.site.open_pages == 0);
  CHECK_FALSE(std::filesystem::exists(path));
}

}  // namespace tubed::loop_test
