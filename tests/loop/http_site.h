// Helpers for the tests of HttpServer: an owner whose responses a test chooses, an exchange that a
// test controls, and the client's end.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loop/http_server.h"
#include "tests/loop/loopback.h"

namespace tubed::loop_test {

// Responds to every request with "it is TARGET", and to a target in `pages` with a streamed text of
// that many bytes, unless the test sets an answer.
struct TestSite final : loop::HttpOwner {
  std::vector<std::string> asked;
  std::vector<std::string> errors;
  std::map<std::string, std::size_t> pages;
  std::function<loop::HttpReply(const loop::HttpRequest&)> answer;
  std::size_t made = 0;   // bytes of all pages
  std::size_t parts = 0;  // of all pages
  int open_pages = 0;

  loop::HttpReply respond(const loop::HttpRequest& request) override;
  void on_http_error(const std::string& reason) override { errors.push_back(reason); }
  void on_handshake_failed(const std::string&, std::string_view reason) override {
    errors.emplace_back(reason);
  }
};

std::string text_of_page(std::size_t bytes);

// The behaviour of an exchange, chosen by a test, and a record of its calls. Outlives the exchange.
struct Script {
  std::size_t takes = SIZE_MAX;  // most bytes of the body to take in one call
  bool resumes_itself = false;   // within each call that has to wait
  std::optional<loop::HttpHead> head = loop::HttpHead{};
  std::string text;      // the response; next_part() takes from it
  bool complete = true;  // the response ends after `text`
  bool stream = false;
  bool waits = false;  // begin_waiting(), once the body has ended

  std::string body;
  std::size_t takes_made = 0;
  std::size_t heads_made = 0;
  std::size_t parts_made = 0;
  int ends = 0;  // of the body
  bool destroyed = false;
  bool sent = false;
  std::function<void()> resume;  // resumes its exchange; empty: destroyed, or not made
  std::function<bool()> client_has_left;
};

std::unique_ptr<loop::HttpExchange> make_exchange(Script& script);

struct TestServer {
  loop::Loop loop;
  TestSite site;
  std::unique_ptr<loop::HttpServer> server;
  std::string address;

  // The timeouts are longer than kLastResort, so a slow test loses no connection.
  TestServer();

  // Also listens on a unix socket.
  void listen_on(const std::string& path);
  // Answers each request with an exchange that follows this script, one request at a time.
  void run(Script& script);

  os::Socket connect() const;
  // Returns a connection with this request, about which the owner has been asked.
  os::Socket begin(std::string_view request);
  // Reads until the server closes the connection.
  std::string take_all(const os::Socket& client);
  std::string ask(std::string_view request);
  // Runs the loop until `text` has arrived.
  std::string take(const os::Socket& client, std::string_view text);
};

std::string get(std::string_view path);
// Returns a POST with this body and its length.
std::string post(std::string_view path, std::string_view body);
std::string body_of(const std::string& answer);
std::string status_in(const std::string& answer);
bool has_line(const std::string& answer, const std::string& line);
std::string without_chunks(std::string body);

}  // namespace tubed::loop_test
