#include "commands/foreign_protocol.h"

#include <string>

#include <doctest/doctest.h>

#include "tests/commands/talk.h"

namespace tubed::commands {
namespace {

using stats::Counter;

// The jobs that a server has after `input`, of which each half may arrive by itself.
std::uint64_t jobs_after(std::string_view input, std::size_t first_part) {
  Talk talk;
  const auto client = talk.connect();
  Talk::exchange(*client, input.substr(0, first_part));
  Talk::exchange(*client, input.substr(first_part));
  CHECK(client->finished());
  CHECK(client->is_foreign());
  CHECK(talk.service.counters().count_of(Counter::client_foreign) == 1);
  return talk.service.engine().info().jobs.total();
}

TEST_CASE("a request of HTTP ends the connection before its body is run") {
  const std::string host(240, 'h');
  const std::string path(300, 'p');
  constexpr std::string_view kBody = "\r\n\r\nput 0 0 60 1\r\nx\r\n";
  for (const std::string& head :
       {std::string("POST / HTTP/1.1\r\nHost: 127.0.0.1:11300"),
        // Neither line fits into the limit of a line.
        "POST /" + path + " HTTP/1.1\r\nHost: " + host, "GET /" + path + " HTTP/1.1\r\nhost:a"}) {
    const std::string request = head + std::string(kBody);
    for (std::size_t part = 0; part <= request.size(); ++part) {
      CAPTURE(head);
      CAPTURE(part);
      CHECK(jobs_after(request, part) == 0);
    }
  }
}

TEST_CASE("a handshake of TLS ends the connection before commands in it are run") {
  const std::string hello = std::string("\x16\x03\x01\x02\x00", 5) + "\r\nput 0 0 60 1\r\nx\r\n";
  const std::string with_a_long_line = "\x16\x03\x01" + std::string(400, 't') + hello;
  for (const std::string& text : {hello, with_a_long_line}) CHECK(jobs_after(text, 3) == 0);
}

TEST_CASE("the first line of a request is answered, after the commands before it") {
  Talk talk;
  const auto client = talk.connect();
  CHECK(Talk::exchange(*client, "list-tube-used\r\nGET / HTTP/1.1\r\nHost: a\r\n") ==
        "USING default\r\nUNKNOWN_COMMAND\r\n");
  CHECK(client->finished());
}

TEST_CASE("no line of the protocol is taken for another protocol") {
  for (const char* const line : {"delete 1", "get / HTTP/1.1", "GET", "GET ", "GET  HTTP/1.1",
                                 "GET /", "GET / HTTP", "Get / HTTP/1.1", "hos", "hosts: a",
                                 "put 0 0 60 5", "", "\x16", "DELETE 1", "use HTTP/1.1"}) {
    CAPTURE(line);
    CHECK_FALSE(is_foreign_protocol(line));
  }
  for (const char* const line : {"GET / HTTP/1.1", "OPTIONS * HTTP/1.0", "DELETE 1 HTTP/1.1",
                                 "host:", "HOST: a", "\x16\x03\x01"}) {
    CAPTURE(line);
    CHECK(is_foreign_protocol(line));
  }
}

TEST_CASE("a job's body may be a request of HTTP") {
  Talk talk;
  const auto client = talk.connect();
  CHECK(Talk::exchange(*client, "put 0 0 60 25\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n") ==
        "INSERTED 1\r\n");
  CHECK_FALSE(client->finished());
}

}  // namespace
}  // namespace tubed::commands
