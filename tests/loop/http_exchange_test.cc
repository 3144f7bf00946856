// Exchanges: bodies of requests, and responses that are made later or in parts.
#include <memory>
#include <vector>

#include <doctest/doctest.h>

#include "os/clock.h"
#include "tests/loop/http_site.h"
#include "tests/share.h"

namespace tubed::loop_test {

using loop::HttpHead;
using loop::HttpResponse;
using loop::HttpServer;

namespace {

std::string chunked_post(std::string_view chunks) {
  return "POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(chunks);
}

Script scripted(std::optional<HttpHead> head, std::string text = "", bool complete = true) {
  Script script;
  script.head = std::move(head);
  script.text = std::move(text);
  script.complete = complete;
  return script;
}

bool is_closed(const os::Socket& client) {
  char bytes[1000];
  const auto kind = os::read_into(client, bytes).kind;
  return kind == os::Transfer::Kind::end || kind == os::Transfer::Kind::failed;
}

}  // namespace

TEST_CASE("a body cut at any byte arrives whole, and the response follows" *
          doctest::test_suite("slow")) {
  TestServer test;
  const std::string chunks = "5;name=value\r\nhello\r\nA\r\n, 0123456\n\r\n0\r\nX: trailer\r\n\r\n";
  const std::string binary("hello\r\n\r\n\0\xffworld", 16);
  for (const auto& [request, body] :
       {std::pair{post("/p", binary), binary}, std::pair{post("/p", ""), std::string()},
        std::pair{get("/p"), std::string()},
        std::pair{chunked_post(chunks), std::string("hello, 0123456\n")},
        std::pair{chunked_post("0\r\n\r\n"), std::string()}}) {
    for (std::size_t cut = 1; cut < request.size(); cut += kOneIn) {
      CAPTURE(cut);
      Script script = scripted(HttpHead{.status = 201, .length = 4}, "done");
      test.run(script);
      const os::Socket client = test.connect();
      write_all(client, std::string_view(request).substr(0, cut));
      run_ticks(test.loop, 6);
      CHECK(script.ends == 0);
      write_all(client, std::string_view(request).substr(cut));
      const auto answer = test.take_all(client);
      CHECK(status_in(answer) == "HTTP/1.1 201 Created");
      CHECK(has_line(answer, "Content-Length: 4"));
      CHECK(body_of(answer) == "done");
      CHECK(script.body == body);
      CHECK(script.ends == 1);
      CHECK(script.destroyed);
    }
  }
}

TEST_CASE("bytes after the request belong neither to its body nor to another request") {
  TestServer test;
  for (const std::string& more :
       {get("/other"), std::string("garbage\0\xff", 9), std::string(50'000, 'x')}) {
    for (const std::string& request :
         {post("/p", "hello"), get("/p"), chunked_post("5\r\nhello\r\n0\r\n\r\n")}) {
      Script script = scripted(std::nullopt);
      test.run(script);
      test.site.asked.clear();
      const os::Socket client = test.begin(request + more);
      REQUIRE(run_until(test.loop, [&] { return script.heads_made == 1; }));
      run_ticks(test.loop, 20);
      script.head = HttpHead{.length = 0};
      script.resume();
      CHECK(status_in(test.take_all(client)) == "HTTP/1.1 200 OK");
      CHECK(script.body == (request.starts_with("GET") ? "" : "hello"));
      CHECK(test.site.asked == std::vector<std::string>{"/p"});
    }
  }
}

TEST_CASE("a body is taken as slowly as the exchange wants" * doctest::test_suite("slow")) {
  std::string body = text_of_page(200'000);
  std::string chunks;
  for (std::size_t at = 0; at < body.size(); at += 1000)
    chunks += "3e8\r\n" + body.substr(at, 1000) + "\r\n";
  for (const std::string& request : {post("/p", body), chunked_post(chunks + "0\r\n\r\n")}) {
    for (const bool resumes_itself : {true, false}) {
      for (const std::size_t takes : {std::size_t{333}, std::size_t{1000}, std::size_t{30'000}}) {
        TestServer test;
        Script script = scripted(HttpHead{.length = 0});
        script.takes = takes;
        script.resumes_itself = resumes_itself;
        test.run(script);
        const os::Socket client = test.connect();
        std::string_view left = request;
        REQUIRE(run_until(test.loop, [&] {
          left.remove_prefix(os::write_from(client, left).bytes);
          if (script.resume) script.resume();
          return script.ends == 1;
        }));
        CHECK(script.body == body);
        CHECK(status_in(test.take_all(client)) == "HTTP/1.1 200 OK");
      }
    }
  }
}

TEST_CASE("an exchange that takes no bytes is not called again before it is resumed") {
  TestServer test;
  Script script = scripted(HttpHead{.length = 0});
  script.takes = 0;
  test.run(script);
  const os::Socket client = test.begin(post("/p", "hello"));
  REQUIRE(run_until(test.loop, [&] { return script.takes_made == 1; }));
  run_ticks(test.loop, 50);
  CHECK(script.takes_made == 1);
  CHECK(uv_backend_timeout(test.loop.uv()) > 100);
  script.takes = 5;
  script.resume();
  CHECK(status_in(test.take_all(client)) == "HTTP/1.1 200 OK");
  CHECK(script.takes_made == 2);
  CHECK(script.body == "hello");
}

TEST_CASE("a body is not read after a response that was made at once" *
          doctest::test_suite("slow")) {
  TestServer test;
  test.site.answer = [](const loop::HttpRequest&) {
    return HttpResponse{.status = 401, .text = "no\n"};
  };
  const std::string body(3'000'000, 'x');
  const std::string chunks = "1000\r\n" + std::string(4096, 'x') + "\r\n0\r\n\r\n";
  for (const std::string& request : {post("/p", body), post("/p", "hello"), chunked_post(chunks)}) {
    const os::Socket client = test.connect();
    std::string_view left = request;
    std::string got;
    os::Transfer read{.kind = os::Transfer::Kind::would_block};
    // The client writes everything while it reads, as it would if the request were accepted.
    REQUIRE(run_until(test.loop, [&] {
      if (!left.empty()) left.remove_prefix(os::write_from(client, left).bytes);
      char bytes[1000];
      if (read.kind != os::Transfer::Kind::end) read = os::read_into(client, bytes);
      got.append(bytes, read.kind == os::Transfer::Kind::done ? read.bytes : 0);
      return left.empty() && read.kind == os::Transfer::Kind::end;
    }));
    CHECK(status_in(got) == "HTTP/1.1 401 Unauthorized");
    CHECK(body_of(got) == "no\n");
  }
  // A client that never stops sending does not keep the connection: afterwards the loop sleeps.
  const os::Socket client = test.begin(post("/p", body).substr(0, 1000));
  CHECK(body_of(test.take_all(client)) == "no\n");
  CHECK(run_until(test.loop, [&] { return uv_backend_timeout(test.loop.uv()) == -1; }));
}

TEST_CASE("a client that expects 100-continue gets it or the refusal before it sends a body") {
  TestServer test;
  const std::string request =
      "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
  Script script = scripted(HttpHead{.length = 0});
  test.run(script);
  const os::Socket accepted = test.begin(request);
  CHECK(test.take(accepted, "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  write_all(accepted, "hello");
  CHECK(status_in(test.take_all(accepted)) == "HTTP/1.1 200 OK");
  CHECK(script.body == "hello");
  test.site.answer = [](const loop::HttpRequest&) {
    return HttpResponse{.status = 413, .text = "big\n"};
  };
  const auto refused = test.ask(request);
  CHECK(status_in(refused).starts_with("HTTP/1.1 413 "));
  CHECK(body_of(refused) == "big\n");
}

TEST_CASE("the header is sent when the exchange knows it") {
  TestServer test;
  Script script = scripted(std::nullopt, "late");
  test.run(script);
  const os::Socket client = test.begin(get("/p"));
  REQUIRE(run_until(test.loop, [&] { return script.heads_made == 1; }));
  run_ticks(test.loop, 50);
  CHECK(script.heads_made == 1);
  // Several times, without need.
  for (int i = 0; i < 3; ++i) {
    script.resume();
    script.resume();
    run_ticks(test.loop, 20);
  }
  CHECK(read_some(client).empty());
  script.head = HttpHead{.status = 409, .content_type = nullptr, .headers = {{"X-A", "b"}}};
  script.resume();
  const auto answer = test.take_all(client);
  CHECK(status_in(answer) == "HTTP/1.1 409 Conflict");
  CHECK(has_line(answer, "X-A: b"));
  CHECK(answer.find("Content-Type") == std::string::npos);
  CHECK(has_line(answer, "Transfer-Encoding: chunked"));
  CHECK(without_chunks(body_of(answer)) == "late");
  CHECK(script.destroyed);
}

TEST_CASE("a resume within the call that has to wait is not lost") {
  TestServer test;
  Script script = scripted(std::nullopt, "", false);
  script.resumes_itself = true;
  test.run(script);
  const os::Socket client = test.begin(get("/p"));
  REQUIRE(run_until(test.loop, [&] { return script.heads_made > 10; }));
  script.head = HttpHead{};
  REQUIRE(run_until(test.loop, [&] { return script.parts_made > 10; }));
  // Other clients are served in the meantime.
  const std::size_t before = script.parts_made;
  test.site.answer = {};
  CHECK(body_of(test.ask(get("/here"))) == "it is /here");
  CHECK(script.parts_made > before);
  script.complete = true;
  CHECK(without_chunks(body_of(test.take_all(client))).empty());
}

TEST_CASE("parts are sent as they are made, and the exchange is not called while it waits") {
  TestServer test;
  for (const bool chunked : {true, false}) {
    Script script = scripted(HttpHead{}, "", false);
    test.run(script);
    const os::Socket client = test.begin(chunked ? get("/p") : "GET /p HTTP/1.0\r\n\r\n");
    CHECK(status_in(test.take(client, "\r\n\r\n")) == "HTTP/1.1 200 OK");
    for (const std::string part : {"one", "two", "three"}) {
      run_ticks(test.loop, 20);
      const std::size_t before = script.parts_made;
      run_ticks(test.loop, 20);
      CHECK(script.parts_made == before);
      CHECK(read_some(client).empty());
      CHECK(uv_backend_timeout(test.loop.uv()) > 0);
      script.text = part;
      script.resume();
      test.take(client, part);
    }
    script.complete = true;
    script.resume();
    CHECK(test.take_all(client) == (chunked ? "0\r\n\r\n" : ""));
    CHECK(script.destroyed);
  }
}

TEST_CASE("the second half of a short response may be made later, or never") {
  TestServer test;
  for (const bool complete : {false, true}) {
    for (const std::string& begin : {std::string(), std::string("do")}) {
      CAPTURE(complete);
      CAPTURE(begin);
      Script script = scripted(HttpHead{.length = 4}, begin, complete);
      test.run(script);
      const os::Socket client = test.begin(get("/p"));
      if (!complete) {
        const std::string head = test.take(client, begin.empty() ? "\r\n\r\n" : "do");
        CHECK(body_of(head) == begin);
        script.text = begin.empty() ? "done" : "ne";
        script.complete = true;
        script.resume();
        CHECK(test.take_all(client) == (begin.empty() ? "done" : "ne"));
      } else {
        CHECK(body_of(test.take_all(client)) == begin);  // less than announced: closed
      }
      CHECK(run_until(test.loop, [&] { return script.destroyed; }));
    }
  }
}

TEST_CASE("large responses of exchanges, with and without a length" * doctest::test_suite("slow")) {
  TestServer test;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, HttpServer::kBytesPerTick + 1, std::size_t{3'000'000}}) {
    CAPTURE(bytes);
    Script script = scripted(HttpHead{.length = bytes}, text_of_page(bytes));
    test.run(script);
    auto answer = test.ask(get("/p"));
    CHECK(has_line(answer, "Content-Length: " + std::to_string(bytes)));
    CHECK(body_of(answer) == text_of_page(bytes));
    script = scripted(HttpHead{}, text_of_page(bytes));
    answer = test.ask(get("/p"));
    CHECK(without_chunks(body_of(answer)) == text_of_page(bytes));
  }
  // The response ends before the length that it has announced.
  Script script = scripted(HttpHead{.length = 10}, "short");
  test.run(script);
  CHECK(body_of(test.ask(get("/p"))) == "short");
}

TEST_CASE("a HEAD, and a status without a body, end after the header") {
  TestServer test;
  for (const auto& [length, line] :
       {std::pair{std::optional<std::uint64_t>(5), "Content-Length: 5"},
        std::pair{std::optional<std::uint64_t>(), "Connection: close"}}) {
    Script script = scripted(HttpHead{.length = length}, "hello");
    test.run(script);
    auto answer = test.ask("HEAD /p HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(status_in(answer) == "HTTP/1.1 200 OK");
    CHECK(has_line(answer, line));
    CHECK(body_of(answer).empty());
    CHECK(script.parts_made == 0);
    CHECK(script.destroyed);
    script = scripted(HttpHead{.status = 204, .content_type = nullptr});
    answer = test.ask(post("/p", "hello"));
    CHECK(status_in(answer) == "HTTP/1.1 204 No Content");
    CHECK(body_of(answer).empty());
    CHECK(script.destroyed);
  }
}

TEST_CASE("a client that disconnects while its exchange waits is noticed" *
          doctest::test_suite("slow")) {
  const Directory directory;
  const std::string path = directory.file("socket");
  TestServer test;
  test.listen_on(path);
  struct Phase {
    const char* name;
    Script script;
    std::string request;
  };
  const auto phases = [] {
    std::vector<Phase> all;
    all.push_back({"body", scripted(HttpHead{}), post("/p", "hello").substr(0, 70)});
    all.back().script.takes = 2;
    all.push_back({"head", scripted(std::nullopt), get("/p")});
    all.push_back({"head after garbage", scripted(std::nullopt), get("/p") + "garbage"});
    all.push_back({"parts", scripted(HttpHead{}, "hello", false), get("/p")});
    return all;
  };
  for (const std::string& address : {test.address, "unix:" + path}) {
    for (const std::string end : {"close", "half", "reset"}) {
      for (Phase& phase : phases()) {
        CAPTURE(address);
        CAPTURE(end);
        CAPTURE(phase.name);
        if (end == "reset" && address.starts_with("unix")) continue;
        test.run(phase.script);
        os::Socket client = connect_to(address);
        write_all(client, phase.request);
        REQUIRE(run_until(test.loop, [&] {
          return phase.script.takes_made + phase.script.heads_made + phase.script.parts_made > 0;
        }));
        run_ticks(test.loop, 20);
        CHECK(test.server->exchanges() == 1);
        if (end == "close") client = os::Socket();
        if (end == "half") half_close(client);
        if (end == "reset") reset(std::move(client));
        CHECK(run_until(test.loop, [&] { return phase.script.destroyed; }));
        CHECK(run_until(test.loop, [&] { return test.server->exchanges() == 0; }));
      }
    }
  }
  CHECK(run_until(test.loop, [&] { return uv_backend_timeout(test.loop.uv()) == -1; }));
}

TEST_CASE("client_has_left reports at once that the client has left") {
  TestServer test;
  for (const std::string end : {"close", "half", "reset"}) {
    CAPTURE(end);
    Script script = scripted(std::nullopt);
    test.run(script);
    os::Socket client = test.begin(post("/p", "hello"));
    REQUIRE(run_until(test.loop, [&] { return script.ends == 1; }));
    run_ticks(test.loop, 5);
    CHECK_FALSE(script.client_has_left());
    if (end == "close") client = os::Socket();
    if (end == "half") half_close(client);
    if (end == "reset") reset(std::move(client));
    CHECK(script.client_has_left());
    CHECK(run_until(test.loop, [&] { return script.destroyed; }));
    CHECK_FALSE(script.sent);
  }
}

TEST_CASE("on_sent is called only if the whole response was sent") {
  TestServer test;
  Script script = scripted(HttpHead{}, text_of_page(100'000));
  test.run(script);
  test.ask(get("/p"));
  REQUIRE(script.destroyed);
  CHECK(script.sent);
  Script cut = scripted(HttpHead{}, text_of_page(32'000'000));
  test.run(cut);
  os::Socket client = test.begin(get("/p"));
  test.take(client, "HTTP/1.1 200 OK");
  reset(std::move(client));
  REQUIRE(run_until(test.loop, [&] { return cut.destroyed; }));
  CHECK_FALSE(cut.sent);
}

TEST_CASE("a client that stays is not regarded as disconnected" * doctest::test_suite("slow")) {
  TestServer test;
  Script script = scripted(std::nullopt);
  test.run(script);
  const os::Socket client = test.begin(post("/p", "hello"));
  const os::Socket idle = test.connect();
  write_all(idle, "GET /p HT");
  run_ticks(test.loop, 20);
  test.server->set_timeouts(std::chrono::seconds(1), std::chrono::hours(1));
  CHECK(test.take_all(idle).empty());
  // The same check notices the end of another exchange.
  test.server->set_timeouts(std::chrono::hours(1), std::chrono::hours(1));
  Script ending = scripted(std::nullopt);
  test.run(ending);
  test.begin(get("/p"));  // closed at once
  CHECK(run_until(test.loop, [&] { return ending.destroyed; }));
  REQUIRE_FALSE(script.destroyed);
  script.head = HttpHead{.length = 0};
  script.resume();
  CHECK(status_in(test.take_all(client)) == "HTTP/1.1 200 OK");
}

TEST_CASE("the total timeout ends exchanges, except event streams" * doctest::test_suite("slow")) {
  Script stream = scripted(HttpHead{}, "", false);  // outlives the server
  TestServer test;
  stream.stream = true;
  test.run(stream);
  const os::Socket reader = test.begin(get("/events"));
  CHECK(test.server->event_streams() == 1);
  CHECK(test.server->exchanges() == 0);
  std::vector<Script> scripts;
  scripts.push_back(scripted(HttpHead{}));
  scripts.back().takes = 2;
  scripts.push_back(scripted(std::nullopt));
  scripts.push_back(scripted(HttpHead{}, "hello", false));
  std::vector<os::Socket> clients;
  for (Script& script : scripts) {
    test.run(script);
    clients.push_back(test.begin(post("/p", "hello")));
  }
  CHECK(test.server->exchanges() == 3);
  test.server->set_timeouts(std::chrono::hours(1), std::chrono::milliseconds(300));
  for (const os::Socket& client : clients) test.take_all(client);
  for (const Script& script : scripts) CHECK(script.destroyed);
  CHECK(test.server->exchanges() == 0);
  stream.text = "data: 1\n\n";
  stream.resume();
  test.take(reader, "data: 1\n\n");
  CHECK_FALSE(stream.destroyed);
}

TEST_CASE("the server can be destroyed while exchanges wait") {
  std::vector<Script> scripts;
  scripts.push_back(scripted(HttpHead{}));
  scripts.back().takes = 2;
  scripts.push_back(scripted(std::nullopt));
  scripts.push_back(scripted(HttpHead{}, "hello", false));
  scripts.push_back(scripted(HttpHead{}, text_of_page(1'000'000)));
  scripts.push_back(scripted(std::nullopt));
  TestServer test;
  std::vector<os::Socket> clients;
  for (Script& script : scripts) {
    test.run(script);
    clients.push_back(test.begin(post("/p", "hello")));
  }
  run_ticks(test.loop, 20);
  scripts.back().resume();
  test.server.reset();
  for (const Script& script : scripts) CHECK(script.destroyed);
  for (const os::Socket& client : clients)
    CHECK(run_until(test.loop, [&] { return is_closed(client); }));
}

TEST_CASE("requests whose length is ambiguous or malformed are refused") {
  TestServer test;
  for (const std::string headers :
       {"Content-Length: 5\r\nContent-Length: 5\r\n", "Content-Length: 5\r\ncontent-length: 6\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked \r\n", "Content-Length: 5, 5\r\n", "Content-Length: -5\r\n",
        "Content-Length: +5\r\n", "Content-Length: 0x5\r\n", "Content-Length: \r\n",
        "Content-Length: 99999999999999999999999\r\n"}) {
    CAPTURE(headers);
    const auto answer =
        test.ask("POST /p HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n5\r\nhello\r\n0\r\n\r\n");
    const auto status = status_in(answer).substr(0, 12);
    CHECK((status == "HTTP/1.1 400" || status == "HTTP/1.1 413" || status == "HTTP/1.1 501"));
  }
  CHECK(test.site.asked.empty());
}

TEST_CASE("headers that two readers may read in two ways are refused") {
  using namespace std::string_literals;
  TestServer test;
  const std::string host = "Host: x\r\n";
  const std::string length = "Content-Length: 5\r\n";
  for (const std::string& headers :
       {// A blank or another byte in a name, and no name.
        host + "Transfer-Encoding : chunked\r\n" + length, host + "Content-Length : 5\r\n",
        host + "Transfer-Encoding\t: chunked\r\n" + length, " Host: x\r\n" + length,
        host + "Content-Length\xa0: 6\r\n" + length, host + ": 6\r\n" + length,
        host + "X(A): 6\r\n" + length, host + "Content-Length\0: 6\r\n"s + length,
        // Zero bytes and other control characters in a value.
        host + "Content-Length: 5\0\r\n"s, host + "Content-Length: 5\0000\r\n"s,
        host + "Content-Length: \0005\r\n"s, "Host: x\0.evil.example\r\n"s + length,
        host + "X: \0\r\n"s + length, host + "X: a\0\0\r\nY: b\r\n"s + length,
        host + "X: a\rContent-Length: 6\r\n" + length, host + "X: \x0b\r\n" + length,
        host + "X: \x7f\r\n" + length,
        // Folded lines.
        host + "Content-Length: 5\r\n 0\r\n", host + "Content-Length:\r\n 5\r\n",
        host + "X: a\r\n\tb\r\n" + length, host + length + " \r\n",
        host + length + "X: a\r\n Content-Length: 6\r\n",
        // Lines that end with LF alone.
        "Host: x\n" + length, host + "Content-Length: 5\n", host + "X: a\nContent-Length: 5\r\n",
        host + "X: a\0b\nY: c\r\n"s + length,
        // Two hosts, in any case and place.
        host + "host: x\r\n" + length, host + length + "Host: evil.example\r\n"}) {
    CAPTURE(headers);
    const auto answer = test.ask("POST /p HTTP/1.1\r\n" + headers + "\r\nhello");
    CHECK(status_in(answer).substr(0, 12) == "HTTP/1.1 400");
  }
  CHECK(test.site.asked.empty());
}

TEST_CASE("request lines that two readers may read in two ways are refused") {
  using namespace std::string_literals;
  TestServer test;
  for (const std::string& line :
       {"GET /p\0q HTTP/1.1\r\n"s, "GET /p HTTP/1.1\n"s, "GET\0 /p HTTP/1.1\r\n"s,
        "GET /p HTTP/1.1\0\r\n"s, "GET  /p HTTP/1.1\r\n"s, "GET /p\rq HTTP/1.1\0\r\n"s}) {
    CAPTURE(line);
    const auto answer = test.ask(line + "Host: x\r\n\r\n");
    CHECK(answer.find(" 200 ") == std::string::npos);
  }
  CHECK(test.site.asked.empty());
}

TEST_CASE("regular headers are accepted, whatever they contain") {
  TestServer test;
  for (const std::string headers :
       {"", "X-Empty:\r\n", "X-Blanks: \t a b\tc\r\n", "X-Tight:a\r\n", "X: caf\xc3\xa9\r\n",
        "Cookie: a=b; c=\"d e\"\r\n", "X: a:b\r\n", "!#$%&'*+-.^_`|~9aZ: x\r\n",
        "Accept: a\r\nAccept: b\r\n", "Content-Length: 0\r\n"}) {
    CAPTURE(headers);
    const auto answer = test.ask("GET /p?a=%41&b=c&d HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n");
    CHECK(status_in(answer) == "HTTP/1.1 200 OK");
    CHECK(body_of(answer) == "it is /p?a=%41&b=c&d");
  }
  for (const std::string request :
       {"\r\nGET /p HTTP/1.1\r\nHost: x\r\n\r\n", "GET /p HTTP/1.0\r\n\r\n",
        "GET http://x/p HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"}) {
    CAPTURE(request);
    CHECK(test.ask(request).find(" 200 OK") != std::string::npos);
  }
  CHECK(test.site.asked.back() == "*");
}

TEST_CASE("malformed chunks end the request, and its exchange" * doctest::test_suite("slow")) {
  TestServer test;
  for (const std::string chunks :
       {"x\r\n", "5\r\nhelloo\r\n", "-1\r\n", "ffffffffffffffffff\r\n", "5 \r\nhello\r\n", "\r\n",
        "0x5\r\nhello\r\n", "5\rhello\r\n", "+5\r\nhello\r\n", "\t5\r\nhello\r\n"}) {
    CAPTURE(chunks);
    Script script = scripted(HttpHead{.length = 0});
    test.run(script);
    const auto answer = test.ask(chunked_post(chunks));
    CHECK(answer.find(" 200 ") == std::string::npos);
    CHECK(script.ends == 0);
    CHECK(script.destroyed);
  }
}

TEST_CASE("malformed request lines are refused or reach the owner as they are") {
  TestServer test;
  for (const std::string line :
       {"GET", "GET ", "GET /p", " /p HTTP/1.1", "GET /p HTTP/3.0", "GET /p HTP/1.1",
        "GET /p HTTP/1.1 HTTP/1.1", "GET /a b HTTP/1.1", "\x16\x03\x01", "PRI * HTTP/2.0"}) {
    CAPTURE(line);
    test.site.asked.clear();
    const os::Socket client = test.connect();
    write_all(client, std::string(line) + "\r\nHost: x\r\n\r\n");
    half_close(client);
    run_ticks(test.loop, 20);
    test.server->set_timeouts(std::chrono::seconds(1), std::chrono::hours(1));
    const auto answer = test.take_all(client);
    test.server->set_timeouts(std::chrono::hours(1), std::chrono::hours(1));
    if (answer.find(" 200 ") == std::string::npos) continue;
    CHECK(test.site.asked.size() == 1);
    CHECK(test.site.asked[0].find(' ') != std::string::npos);
  }
}

TEST_CASE("a chunk header or trailer without an end does not keep the loop busy" *
          doctest::test_suite("slow")) {
  TestServer test;
  for (const std::string& chunks :
       {"5;" + std::string(100'000, 'x'), "5\r\nhello\r\n0\r\nX: " + std::string(100'000, 'x')}) {
    CAPTURE(chunks.substr(0, 20));
    Script script = scripted(HttpHead{.length = 0});
    test.run(script);
    const std::string request = chunked_post(chunks);
    const os::Socket client = test.begin(std::string_view(request).substr(0, 100));
    test.server->set_timeouts(std::chrono::seconds(2), std::chrono::hours(1));
    std::string_view left = std::string_view(request).substr(100);
    std::size_t busy = 0;
    REQUIRE(run_until(test.loop, [&] {
      if (!left.empty()) left.remove_prefix(os::write_from(client, left).bytes);
      busy += uv_backend_timeout(test.loop.uv()) == 0 ? 1 : 0;
      return is_closed(client) || script.destroyed;
    }));
    CHECK(busy < 1000);
    CHECK(script.ends == 0);
    REQUIRE(run_until(test.loop, [&] { return script.destroyed; }));
    test.server->set_timeouts(std::chrono::hours(1), std::chrono::hours(1));
  }
}

TEST_CASE("one tick makes at most kBytesPerTick bytes of exchanges and pages" *
          doctest::test_suite("slow")) {
  const std::string text = text_of_page(1'000'000);
  std::vector<Script> scripts;
  for (int i = 0; i < 3; ++i) scripts.push_back(scripted(HttpHead{}, text));
  Script waiting = scripted(HttpHead{}, "", false);
  TestServer test;
  test.site.pages["/long"] = text.size();
  std::vector<os::Socket> clients;
  test.run(waiting);
  clients.push_back(test.begin(get("/p")));
  for (Script& script : scripts) {
    test.run(script);
    clients.push_back(test.connect());
    write_all(clients.back(), get("/p"));
    REQUIRE(run_until(test.loop, [&] { return script.parts_made > 0; }));
  }
  clients.push_back(test.begin(get("/long")));
  const auto made = [&] {
    std::size_t bytes = test.site.made;
    for (const Script& script : scripts) bytes += text.size() - script.text.size();
    return bytes;
  };
  std::size_t most = 0;
  std::size_t before = made();
  REQUIRE(run_until(test.loop, [&] {
    run_ticks(test.loop);
    most = std::max(most, made() - std::exchange(before, made()));
    for (const os::Socket& client : clients) read_some(client);
    return made() == 4 * text.size();
  }));
  CHECK(most > HttpServer::kBytesPerTick / 2);
  // An iteration of the loop has up to two ticks.
  CHECK(most <= 2 * HttpServer::kBytesPerTick);
}

}  // namespace tubed::loop_test
