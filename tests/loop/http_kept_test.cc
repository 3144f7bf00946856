// Connections that stay open for several requests.
#include <memory>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "tests/loop/http_site.h"

namespace tubed::loop_test {

using loop::HttpHead;
using loop::HttpServer;

namespace {

// The timeouts are longer than a slow test.
struct KeepingServer : TestServer {
  KeepingServer() { server->set_keep_alive(std::chrono::hours(1)); }

  // Reads one answer with Content-Length, and what has arrived after it.
  std::string take_answer(const os::Socket& client) {
    std::string got;
    REQUIRE(run_until(loop, [&] {
      got += read_some(client);
      return is_whole(got);
    }));
    return got;
  }

  static bool is_whole(const std::string& got) {
    const auto end = got.find("\r\n\r\n");
    const auto length = got.find("\r\nContent-Length: ");
    if (end == std::string::npos) return false;
    if (length > end) return true;  // 204 and 304
    return got.size() >= end + 4 + std::stoul(got.substr(length + 18));
  }
};

bool is_still_open(const os::Socket& client) {
  char byte = 0;
  return os::read_into(client, std::span(&byte, 1)).kind == os::Transfer::Kind::would_block;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a connection serves requests in turn: texts, exchanges, pages and HEAD") {
  KeepingServer test;
  test.site.pages["/page"] = 50'000;
  const os::Socket client = test.connect();
  Script script;
  for (int i = 0; i < 5; ++i) {
    CAPTURE(i);
    write_all(client, get("/here"));
    auto answer = test.take_answer(client);
    CHECK(status_in(answer) == "HTTP/1.1 200 OK");
    CHECK_FALSE(has_line(answer, "Connection: close"));
    CHECK(body_of(answer) == "it is /here");

    write_all(client, "HEAD /here HTTP/1.1\r\nHost: x\r\n\r\n");
    answer = test.take(client, "\r\n\r\n");
    CHECK(has_line(answer, "Content-Length: 11"));
    CHECK(body_of(answer).empty());

    write_all(client, get("/page"));
    CHECK(without_chunks(body_of(test.take(client, "\r\n0\r\n\r\n"))) == text_of_page(50'000));
    CHECK(test.site.open_pages == 0);

    script = Script();
    script.head = HttpHead{.length = 5};
    script.text = "hello";
    test.run(script);
    write_all(client, post("/p", "a body"));
    CHECK(body_of(test.take_answer(client)) == "hello");
    CHECK(script.body == "a body");
    CHECK(script.sent);
    CHECK(script.destroyed);

    script = Script();
    script.head = HttpHead{.status = 204, .content_type = nullptr, .length = 0};
    test.run(script);
    write_all(client, post("/p", ""));
    CHECK(status_in(test.take(client, "\r\n\r\n")) == "HTTP/1.1 204 No Content");
    test.site.answer = nullptr;
  }
  CHECK(is_still_open(client));
  CHECK(test.server->exchanges() == 0);
}

TEST_CASE("pipelined requests are answered in their order") {
  KeepingServer test;
  std::vector<Script> scripts(3);
  std::size_t next = 0;
  test.site.answer = [&](const loop::HttpRequest& request) -> loop::HttpReply {
    if (request.body_bytes() == 0) return loop::HttpResponse{.text = std::string(request.target())};
    return make_exchange(scripts[next++]);
  };
  for (auto& script : scripts) {
    script.head = std::nullopt;
    script.text = "done";
  }
  const os::Socket client = test.connect();
  std::string requests;
  for (int i = 0; i < 3; ++i) {
    requests += get("/before" + std::to_string(i));
    requests += post("/p", "body" + std::to_string(i));
  }
  for (int i = 0; i < 500; ++i) requests += get("/last" + std::to_string(i));
  write_all(client, requests);
  std::string got;
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    REQUIRE(run_until(test.loop, [&] { return scripts[i].heads_made > 0; }));
    CHECK(test.site.asked.size() == 2 * (i + 1));
    CHECK(scripts[i].body == "body" + std::to_string(i));
    scripts[i].head = HttpHead{.length = 4};
    scripts[i].resume();
  }
  REQUIRE(run_until(test.loop, [&] {
    got += read_some(client);
    return got.ends_with("/last499");
  }));
  CHECK(occurrences(got, "HTTP/1.1 200 OK\r\n") == 506);
  CHECK(got.find("/before2") < got.find("/last0"));
  CHECK(is_still_open(client));
}

TEST_CASE("a request that arrives byte by byte on a kept connection is answered") {
  KeepingServer test;
  const os::Socket client = test.connect();
  for (int i = 0; i < 2; ++i) {
    for (const char byte : "\r\n" + get("/here")) {
      write_all(client, std::string_view(&byte, 1));
      run_ticks(test.loop, 2);
    }
    CHECK(body_of(test.take_answer(client)) == "it is /here");
  }
}

TEST_CASE("a client decides by version and Connection whether its connection is kept") {
  KeepingServer test;
  const auto ask = [&](const std::string& rest) { return test.ask("GET /here " + rest); };
  for (const std::string rest : {"HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                                 "HTTP/1.0\r\n\r\n", "HTTP/1.0\r\nConnection: close\r\n\r\n",
                                 "HTTP/1.1\r\nHost: x\r\nConnection: x, Close\r\n\r\n"}) {
    CAPTURE(rest);
    const auto answer = ask(rest);
    CHECK(has_line(answer, "Connection: close"));
    CHECK(body_of(answer) == "it is /here");
  }
  const os::Socket client = test.connect();
  for (int i = 0; i < 3; ++i) {
    write_all(client, "GET /here HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    const auto answer = test.take_answer(client);
    CHECK(has_line(answer, "Connection: Keep-Alive"));
    CHECK(body_of(answer) == "it is /here");
  }
  CHECK(is_still_open(client));
  // A response without an announced length ends with the connection.
  test.site.pages["/page"] = 1000;
  write_all(client, "GET /page HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  CHECK(body_of(test.take_all(client)) == text_of_page(1000));
}

TEST_CASE("a client that ends its output after the request gets a text and a page") {
  KeepingServer test;
  test.site.pages["/page"] = 50'000;
  for (const std::string path : {"/here", "/page"}) {
    const os::Socket client = test.connect();
    write_all(client, get("/here") + get("/here") + get(path));
    half_close(client);
    const auto got = test.take_all(client);
    CHECK(occurrences(got, "HTTP/1.1 200 OK\r\n") == 3);
    if (path == "/page") CHECK(got.ends_with("\r\n0\r\n\r\n"));
  }
}

TEST_CASE("after a body that was refused, nothing of it is taken for a request") {
  for (const std::string framing :
       {"Content-Length: 100\r\n", "Transfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 0\r\nContent-Length: 100\r\n", "Content-Length: 0\r\nHost: y\r\n",
        "Content-Length: 0\r\nX : y\r\n", "Transfer-Encoding: gzip\r\n"}) {
    CAPTURE(framing);
    KeepingServer test;
    test.site.answer = [](const loop::HttpRequest&) {
      return loop::HttpResponse{.status = 413, .text = "no"};
    };
    const os::Socket client = test.connect();
    write_all(client, get("/first"));
    test.take_answer(client);
    write_all(client, "POST /refused HTTP/1.1\r\nHost: x\r\n" + framing + "\r\n");
    write_all(client, get("/smuggled"));
    const auto answer = test.take_all(client);
    CHECK(has_line(answer, "Connection: close"));
    CHECK(occurrences(answer, "HTTP/1.1 ") == 1);
    for (const std::string& path : test.site.asked) CHECK(path != "/smuggled");
  }
}

TEST_CASE("HTTP/1.0 has no chunks") {
  KeepingServer test;
  const auto answer = test.ask(
      "POST /p HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
      "0\r\n\r\n" +
      get("/smuggled"));
  CHECK(status_in(answer).substr(9, 3) == "400");
  CHECK(test.site.asked.empty());
}

TEST_CASE("an error without a body unread keeps the connection") {
  KeepingServer test;
  test.site.answer = [](const loop::HttpRequest&) {
    return loop::HttpResponse{.status = 404, .text = "no"};
  };
  const os::Socket client = test.connect();
  for (int i = 0; i < 3; ++i) {
    write_all(client, "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    CHECK(status_in(test.take_answer(client)) == "HTTP/1.1 404 Not Found");
  }
  CHECK(is_still_open(client));
  // The owner may close it.
  test.site.answer = [](const loop::HttpRequest&) {
    return loop::HttpResponse{.status = 503, .headers = {{"Connection", "close"}}};
  };
  write_all(client, get("/p"));
  CHECK(status_in(test.take_all(client)) == "HTTP/1.1 503 Service Unavailable");
}

TEST_CASE("a connection is closed after kMaxRequests requests") {
  KeepingServer test;
  const os::Socket client = test.connect();
  std::string got;
  for (std::uint32_t sent = 0; sent < HttpServer::kMaxRequests; sent += 100) {
    std::string requests;
    for (int i = 0; i < 100; ++i) requests += get("/here");
    write_all(client, requests);
    REQUIRE(run_until(test.loop, [&] {
      got += read_some(client);
      return occurrences(got, "it is /here") == sent + 100;
    }));
  }
  CHECK(occurrences(got, "Connection: close") == 1);
  CHECK(test.take_all(client).empty());
}

TEST_CASE("at most kMaxKept connections are kept, and all clients are answered") {
  KeepingServer test;
  std::vector<os::Socket> kept;
  for (std::size_t i = 0; i < HttpServer::kMaxKept; ++i) {
    kept.push_back(test.connect());
    write_all(kept.back(), get("/here"));
    CHECK_FALSE(has_line(test.take_answer(kept.back()), "Connection: close"));
  }
  for (std::size_t i = 0; i < 2 * HttpServer::kMaxConnections; ++i)
    CHECK(has_line(test.ask(get("/other")), "Connection: close"));
  for (const os::Socket& client : kept) {
    write_all(client, get("/again"));
    CHECK(body_of(test.take_answer(client)) == "it is /again");
  }
  kept.pop_back();
  const auto a_place_is_free = [&] {
    const os::Socket client = test.connect();
    write_all(client, get("/here"));
    return !has_line(test.take_answer(client), "Connection: close");
  };
  CHECK(run_until(test.loop, a_place_is_free));
}

TEST_CASE("a kept connection that waits counts as waiting only until its answer") {
  KeepingServer test;
  const os::Socket client = test.connect();
  for (int i = 0; i < 3; ++i) {
    Script script;
    script.head = std::nullopt;
    script.waits = true;
    test.run(script);
    write_all(client, post("/wait", ""));
    REQUIRE(run_until(test.loop, [&] { return script.heads_made > 0; }));
    CHECK(test.server->waits() == 1);
    CHECK(test.server->exchanges() == 0);
    script.head = HttpHead{.length = 0};
    script.resume();
    test.take_answer(client);
    REQUIRE(run_until(test.loop, [&] { return script.destroyed; }));
    CHECK(test.server->waits() == 0);
    CHECK(test.server->exchanges() == 0);
  }
}

TEST_CASE("a kept connection without a request is closed after the time of set_keep_alive" *
          doctest::test_suite("slow")) {
  KeepingServer test;
  test.server->set_keep_alive(std::chrono::seconds(1));
  const os::Socket client = test.connect();
  write_all(client, get("/here"));
  test.take_answer(client);
  CHECK(test.take_all(client).empty());
  // The loop sleeps while a connection is kept, and without connections for good.
  CHECK(run_until(test.loop, [&] { return uv_backend_timeout(test.loop.uv()) == -1; }));
}

TEST_CASE("a request on a kept connection has the whole total timeout" *
          doctest::test_suite("slow")) {
  KeepingServer test;
  const os::Socket client = test.connect();
  write_all(client, get("/here"));
  test.take_answer(client);
  write_all(client, "GET /he");
  run_ticks(test.loop, 20);
  test.server->set_timeouts(std::chrono::hours(1), std::chrono::milliseconds(200));
  CHECK(test.take_all(client).empty());
  CHECK(run_until(test.loop, [&] { return uv_backend_timeout(test.loop.uv()) == -1; }));
}

TEST_CASE("to end keep-alive closes the connections that wait for a request") {
  KeepingServer test;
  const os::Socket idle = test.connect();
  write_all(idle, get("/here"));
  test.take_answer(idle);
  Script script;
  script.head = std::nullopt;
  test.run(script);
  const os::Socket busy = test.begin(post("/p", "x"));
  REQUIRE(run_until(test.loop, [&] { return script.heads_made > 0; }));
  test.server->set_keep_alive(std::chrono::seconds(0));
  CHECK(test.take_all(idle).empty());
  script.head = HttpHead{.length = 0};
  script.resume();
  CHECK(has_line(test.take_all(busy), "Connection: close"));
}

TEST_CASE("the server can be destroyed with kept connections") {
  KeepingServer test;
  std::vector<os::Socket> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(test.connect());
    write_all(clients.back(), get("/here"));
    test.take_answer(clients.back());
  }
  test.server.reset();
  for (const os::Socket& client : clients)
    CHECK(run_until(test.loop, [&] { return !is_still_open(client); }));
}

}  // namespace tubed::loop_test
