// The connections of HttpServer: their peers, TLS, and the clients that occupy them.
#include <memory>
#include <vector>

#include <doctest/doctest.h>
#include <unistd.h>

#include "os/clock.h"
#include "tests/loop/http_site.h"
#include "tests/loop/tls_peer.h"

namespace tubed::loop_test {

using loop::HttpHead;
using loop::HttpPeer;
using loop::HttpResponse;
using loop::HttpServer;

namespace {

// Clients that occupy the connections of a server with requests that do not end.
struct Crowd {
  TestServer& test;
  std::vector<std::unique_ptr<Script>> scripts;  // outlive the exchanges of the server
  std::vector<os::Socket> clients;

  explicit Crowd(TestServer& server) : test(server) {}
  ~Crowd() { test.server.reset(); }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

  void add(int count, const std::string& request) {
    for (int i = 0; i < count; ++i) {
      clients.push_back(test.connect());
      write_all(clients.back(), request);
    }
    run_ticks(test.loop, 5);
  }

  // /wait: an exchange without an end; /events: an event stream; /large: a large text; others: a
  // small text.
  void answer() {
    test.site.answer = [this](const loop::HttpRequest& request) -> loop::HttpReply {
      const bool is_stream = request.target() == "/events";
      if (request.target() == "/large") return HttpResponse{.persistent = large};
      if (!is_stream && request.target() != "/wait") return HttpResponse{.text = "small"};
      const bool has_room = is_stream ? test.server->event_streams() < HttpServer::kMaxEventStreams
                                      : test.server->exchanges() < HttpServer::kMaxExchanges;
      if (!has_room) return HttpResponse{.status = 503};
      scripts.push_back(std::make_unique<Script>());
      scripts.back()->stream = is_stream;
      scripts.back()->complete = false;
      scripts.back()->head = is_stream ? std::optional(HttpHead{}) : std::nullopt;
      return make_exchange(*scripts.back());
    };
  }

  // Returns the number of ticks that a new client waits for a small page.
  int ticks_of_a_page() {
    const os::Socket client = test.connect();
    write_all(client, get("/small"));
    std::string got;
    for (int ticks = 0; ticks < 100'000; ++ticks) {
      run_ticks(test.loop);
      char bytes[1000];
      const auto read = os::read_into(client, bytes);
      if (read.kind == os::Transfer::Kind::done) got.append(bytes, read.bytes);
      if (read.kind == os::Transfer::Kind::end) {
        CHECK(body_of(got) == "small");
        return ticks;
      }
      if (read.kind == os::Transfer::Kind::failed) break;
    }
    FAIL("the page was not served");
    return 0;
  }

  const std::string large = std::string(20'000'000, 'x');
};

}  // namespace

TEST_CASE("an owner sees the peers of TCP and unix sockets") {
  const Directory directory;
  const std::string path = directory.file("socket");
  TestServer test;
  test.listen_on(path);
  HttpPeer peer;
  test.site.answer = [&](const loop::HttpRequest& request) {
    peer = request.peer();
    return HttpResponse{};
  };
  const os::Socket client = test.begin(get("/"));
  CHECK(peer.address == os::local_address(client));
  CHECK_FALSE(peer.process);
  CHECK_FALSE(peer.secured);
  const os::Socket local = connect_to("unix:" + path);
  write_all(local, get("/"));
  test.take_all(local);
  CHECK(peer.address.starts_with("unix uid "));
  REQUIRE(peer.process);
  CHECK(peer.process->user == ::getuid());
  CHECK(peer.process->process == ::getpid());
}

TEST_CASE("half requests leave a connection for a complete one" * doctest::test_suite("slow")) {
  TestServer test;
  Crowd crowd(test);
  crowd.answer();
  for (int i = 0; i < 10; ++i) {
    crowd.add(250, "GET /small HTT");
    CHECK(crowd.ticks_of_a_page() < 1000);
  }
}

TEST_CASE("clients that do not read a large text leave a connection for others" *
          doctest::test_suite("slow")) {
  TestServer test;
  Crowd crowd(test);
  crowd.answer();
  for (int i = 0; i < 3; ++i) {
    crowd.add(200, get("/large"));
    CHECK(crowd.ticks_of_a_page() < 1000);
  }
}

TEST_CASE("exchanges, event streams, pages, texts and half requests at once leave a connection" *
          doctest::test_suite("slow")) {
  TestServer test;
  Crowd crowd(test);
  crowd.answer();
  test.site.pages["/page"] = 100'000'000;
  crowd.add(100, get("/wait"));
  crowd.add(30, get("/events"));
  REQUIRE(run_until(test.loop, [&] {
    return test.server->exchanges() == HttpServer::kMaxExchanges &&
           test.server->event_streams() == HttpServer::kMaxEventStreams;
  }));
  CHECK(crowd.ticks_of_a_page() < 1000);
  crowd.add(30, get("/page"));
  CHECK(crowd.ticks_of_a_page() < 1000);
  crowd.add(200, get("/large"));
  CHECK(crowd.ticks_of_a_page() < 1000);
  crowd.add(200, "GET /small HTT");
  CHECK(crowd.ticks_of_a_page() < 1000);
  for (int i = 0; i < 3; ++i) {
    crowd.add(50, get("/large"));
    crowd.add(50, "GET /small HTT");
    crowd.add(50, get("/wait"));
    crowd.add(50, get("/events"));
    CHECK(crowd.ticks_of_a_page() < 1000);
  }
  // The texts and half requests made room.
  CHECK(test.server->exchanges() == HttpServer::kMaxExchanges);
  CHECK(test.server->event_streams() == HttpServer::kMaxEventStreams);
}

TEST_CASE("exchanges that the owner does not bound leave a connection for others" *
          doctest::test_suite("slow")) {
  TestServer test;
  Crowd crowd(test);
  test.site.answer = [&](const loop::HttpRequest& request) -> loop::HttpReply {
    if (request.target() == "/small") return HttpResponse{.text = "small"};
    crowd.scripts.push_back(std::make_unique<Script>());
    crowd.scripts.back()->head = std::nullopt;
    return make_exchange(*crowd.scripts.back());
  };
  crowd.add(200, get("/wait"));
  CHECK(crowd.ticks_of_a_page() < 1000);
  CHECK(test.server->exchanges() >= HttpServer::kMaxConnections - 16);
}

TEST_CASE("exchanges that wait take no connection from others, and are never closed for others" *
          doctest::test_suite("slow")) {
  TestServer test;
  Crowd crowd(test);
  crowd.answer();
  constexpr std::size_t kWaits = 2 * HttpServer::kMaxConnections;
  std::vector<std::unique_ptr<Script>> waiting;  // outlive the exchanges of the server
  std::vector<os::Socket> clients;
  for (std::size_t i = 0; i < kWaits; ++i) {
    waiting.push_back(std::make_unique<Script>());
    waiting.back()->waits = true;
    waiting.back()->head = std::nullopt;
    test.site.answer = [&](const loop::HttpRequest&) { return make_exchange(*waiting.back()); };
    clients.push_back(test.begin(get("/p")));
    REQUIRE(run_until(test.loop, [&] { return test.server->waits() == i + 1; }));
  }
  CHECK(test.server->exchanges() == 0);
  crowd.answer();
  crowd.add(200, "GET /small HTT");
  CHECK(crowd.ticks_of_a_page() < 1000);
  CHECK(test.server->waits() == kWaits);
  // Each waiting exchange is still answered, and then frees its place.
  waiting.front()->head = HttpHead{.length = 0};
  waiting.front()->resume();
  CHECK(status_in(test.take_all(clients.front())) == "HTTP/1.1 200 OK");
  REQUIRE(run_until(test.loop, [&] { return test.server->waits() == kWaits - 1; }));
  clients.clear();
  CHECK(run_until(test.loop, [&] { return test.server->waits() == 0; }));
  test.server.reset();
}

namespace {

// A server with TLS that requires client certificates, and such a client.
struct SecureServer {
  Directory directory;
  CertificateFiles files = make_certificate(directory, "queue.example");
  CertificateFiles own = make_certificate(directory, "client.example");
  TestServer test;

  SecureServer() {
    loop::TlsOptions options;
    options.certificates = {{files.certificate, files.key}};
    options.client_ca = own.certificate;
    auto context = loop::TlsContext::load(options);
    REQUIRE(context.ok());
    test.server->set_tls(*context);
    test.server->set_handshake_limits({.timeout = 2 * kLastResort});
  }

  std::unique_ptr<TlsPeerClient> connect() {
    auto client = std::make_unique<TlsPeerClient>(test.connect());
    client->present(own);
    REQUIRE(run_until(test.loop, [&] { return client->shake_hands() || client->failed(); }));
    REQUIRE_FALSE(client->failed());
    return client;
  }
  std::string take_all(TlsPeerClient& client) {
    REQUIRE(run_until(test.loop, [&] { return client.receive(); }));
    return client.input();
  }
};

}  // namespace

TEST_CASE("an exchange over TLS has its peer, its body and its response" *
          doctest::test_suite("slow")) {
  SecureServer secure;
  const std::string body = text_of_page(300'000);
  Script script;
  HttpPeer peer;
  script.takes = 10'000;
  script.resumes_itself = true;
  script.text = body;
  secure.test.site.answer = [&](const loop::HttpRequest& request) {
    peer = request.peer();
    return make_exchange(script);
  };
  const auto client = secure.connect();
  const std::string request = post("/p", body);
  std::string_view left = request;
  REQUIRE(run_until(secure.test.loop, [&] {
    if (!left.empty()) left.remove_prefix(client->send(left));
    return script.ends == 1;
  }));
  const auto answer = secure.take_all(*client);
  CHECK(without_chunks(body_of(answer)) == body);
  CHECK(script.body == body);
  CHECK(peer.secured);
  CHECK(peer.address == os::local_address(client->socket()));
  CHECK(peer.certificate.subject == "CN=client.example");
  CHECK_FALSE(peer.process);
}

TEST_CASE("over TLS, a refusal before the body arrives whole" * doctest::test_suite("slow")) {
  SecureServer secure;
  secure.test.site.answer = [](const loop::HttpRequest&) {
    return HttpResponse{.status = 401, .text = "no\n"};
  };
  const auto client = secure.connect();
  const std::string request = post("/p", std::string(500'000, 'x'));
  std::string_view left = request;
  REQUIRE(run_until(secure.test.loop, [&] {
    if (!left.empty()) left.remove_prefix(client->send(left));
    return client->receive();
  }));
  CHECK(status_in(client->input()) == "HTTP/1.1 401 Unauthorized");
  CHECK(body_of(client->input()) == "no\n");
}

TEST_CASE("over TLS, a client that disconnects while its exchange waits is noticed" *
          doctest::test_suite("slow")) {
  SecureServer secure;
  for (const bool has_head : {false, true}) {
    Script script;
    script.complete = false;
    if (!has_head) script.head = std::nullopt;
    secure.test.run(script);
    const auto client = secure.connect();
    client->send(get("/p"));
    REQUIRE(run_until(secure.test.loop, [&] { return script.heads_made + script.parts_made > 0; }));
    run_ticks(secure.test.loop, 20);
    client->close_socket();
    CHECK(run_until(secure.test.loop, [&] { return script.destroyed; }));
  }
}

TEST_CASE("over TLS, client_has_left reports at once that the client has left" *
          doctest::test_suite("slow")) {
  SecureServer secure;
  for (const bool sends_end : {false, true}) {
    Script script;
    script.head = std::nullopt;
    secure.test.run(script);
    const auto client = secure.connect();
    client->send(get("/p"));
    REQUIRE(run_until(secure.test.loop, [&] { return script.ends == 1; }));
    run_ticks(secure.test.loop, 20);
    CHECK_FALSE(script.client_has_left());
    if (sends_end) half_close(client->socket());
    if (!sends_end) client->close_socket();
    CHECK(script.client_has_left());
    CHECK(run_until(secure.test.loop, [&] { return script.destroyed; }));
    CHECK_FALSE(script.sent);
  }
}

TEST_CASE("TLS connections in any number leave a connection for others" *
          doctest::test_suite("slow")) {
  SecureServer secure;
  secure.test.site.answer = [](const loop::HttpRequest&) { return HttpResponse{.text = "small"}; };
  std::vector<std::unique_ptr<TlsPeerClient>> halves;
  for (std::size_t i = 0; i < HttpServer::kMaxConnections + 20; ++i) {
    halves.push_back(secure.connect());
    halves.back()->send("GET /small HTT");
  }
  const auto client = secure.connect();
  client->send(get("/small"));
  CHECK(body_of(secure.take_all(*client)) == "small");
}

}  // namespace tubed::loop_test
