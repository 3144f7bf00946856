#include "tests/loop/http_site.h"

#include <algorithm>

#include <doctest/doctest.h>

#include "loop/signal.h"

namespace tubed::loop_test {

using loop::HttpExchange;
using loop::HttpReply;
using loop::HttpResponse;

namespace {

struct ScriptedExchange final : HttpExchange {
  explicit ScriptedExchange(Script& its_script) : script(its_script) {
    script.resume = [this] { resume(); };
    script.client_has_left = [this] { return client_has_left(); };
  }
  ~ScriptedExchange() override {
    script.resume = {};
    script.client_has_left = {};
    script.destroyed = true;
  }

  std::size_t take_body(std::string_view bytes) override {
    ++script.takes_made;
    const std::size_t taken = std::min(bytes.size(), script.takes);
    script.body += bytes.substr(0, taken);
    if (taken < bytes.size()) wait();
    return taken;
  }
  void end_body() override {
    ++script.ends;
    if (script.waits) begin_waiting();
  }
  std::optional<loop::HttpHead> head() override {
    ++script.heads_made;
    if (!script.head) wait();
    return script.head;
  }
  Next next_part(std::size_t bytes, std::string& text) override {
    ++script.parts_made;
    if (script.text.empty()) {
      if (script.complete) return Next::end;
      wait();
      return Next::wait;
    }
    const std::size_t part = std::min(bytes, script.text.size());
    text += script.text.substr(0, part);
    script.text.erase(0, part);
    return Next::part;
  }
  bool is_stream() const override { return script.stream; }
  void on_sent() override { script.sent = true; }

  void wait() {
    if (script.resumes_itself) resume();
  }

  Script& script;
};

}  // namespace

std::unique_ptr<HttpExchange> make_exchange(Script& script) {
  return std::make_unique<ScriptedExchange>(script);
}

HttpReply TestSite::respond(const loop::HttpRequest& request) {
  const std::string target(request.target());
  asked.push_back(target);
  const auto page = pages.find(target);
  if (page == pages.end()) {
    if (answer) return answer(request);
    return HttpResponse{.text = "it is " + target};
  }
  HttpResponse response;
  response.content_type = "text/long";
  ++open_pages;
  const std::shared_ptr<void> open(nullptr, [this](void*) { --open_pages; });
  response.next_part = [this, open, left = page->second](std::size_t bytes,
                                                         std::string& text) mutable {
    if (left == 0) return false;
    ++parts;
    const std::size_t more = std::min(left, std::min<std::size_t>(bytes, 5000));
    for (std::size_t i = 0; i < more; ++i) text += static_cast<char>('a' + (left - i) % 26);
    left -= more;
    made += more;
    return true;
  };
  return response;
}

std::string text_of_page(std::size_t bytes) {
  std::string text;
  for (std::size_t left = bytes; left > 0; --left) text += static_cast<char>('a' + left % 26);
  return text;
}

TestServer::TestServer() : server(std::make_unique<loop::HttpServer>(loop, site)) {
  server->set_timeouts(std::chrono::hours(1), std::chrono::hours(2));
  loop::ignore_broken_pipes();
  os::Socket socket = listening();
  address = os::local_address(socket);
  server->listen(std::move(socket), "");
}

void TestServer::listen_on(const std::string& path) {
  auto socket = os::listen_unix(path, {}, 16);
  REQUIRE(socket.ok());
  server->listen(std::move(*socket), path);
}

void TestServer::run(Script& script) {
  site.answer = [&script](const loop::HttpRequest&) { return make_exchange(script); };
}

os::Socket TestServer::connect() const {
  os::Socket client = connect_to(address);
  REQUIRE(client);
  return client;
}

os::Socket TestServer::begin(std::string_view request) {
  os::Socket client = connect();
  const std::size_t before = site.asked.size();
  write_all(client, request);
  REQUIRE(run_until(loop, [&] { return site.asked.size() > before; }));
  return client;
}

std::string TestServer::take_all(const os::Socket& client) {
  std::string got;
  REQUIRE(run_until(loop, [&] {
    char bytes[65536];
    const auto transfer = os::read_into(client, bytes);
    got.append(bytes, transfer.bytes);
    return transfer.kind == os::Transfer::Kind::end || transfer.kind == os::Transfer::Kind::failed;
  }));
  return got;
}

std::string TestServer::ask(std::string_view request) {
  const os::Socket client = connect();
  write_all(client, request);
  return take_all(client);
}

std::string TestServer::take(const os::Socket& client, std::string_view text) {
  std::string got;
  REQUIRE(run_until(loop, [&] {
    got += read_some(client);
    return got.find(text) != std::string::npos;
  }));
  return got;
}

std::string get(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n";
}

std::string post(std::string_view path, std::string_view body) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         std::string(body);
}

std::string body_of(const std::string& answer) {
  const auto end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "no end of the header" : answer.substr(end + 4);
}

std::string status_in(const std::string& answer) {
  return answer.substr(0, answer.find("\r\n"));
}

bool has_line(const std::string& answer, const std::string& line) {
  return answer.find("\r\n" + line + "\r\n") != std::string::npos;
}

std::string without_chunks(std::string body) {
  std::string text;
  for (;;) {
    const auto end = body.find("\r\n");
    REQUIRE(end != std::string::npos);
    const auto bytes = std::stoul(body.substr(0, end), nullptr, 16);
    if (bytes == 0) return text;
    REQUIRE(body.size() >= end + bytes + 4);
    text += body.substr(end + 2, bytes);
    body.erase(0, end + bytes + 4);
  }
}

}  // namespace tubed::loop_test
