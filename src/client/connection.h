// Connection: a conversation with a server, one command at a time or many in flight.
//
// It owns the socket and the input that has arrived but not been taken. While it sends it also
// receives: a server that stops reading until its replies are read never blocks it. An Error of its
// functions means that the connection is lost; a refusal by the server is a Reply.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "client/address.h"
#include "client/reply_parser.h"
#include "client/tls.h"
#include "client/transport.h"

namespace tubed::client {

// Sets the length of the longest body that the connections of this process accept. Precondition: no
// connection has been opened.
void limit_replies(std::uint64_t bytes);

inline constexpr Duration kTryTimeout = std::chrono::seconds(5);

// A server, and what a client needs to be admitted to it.
struct Target {
  std::vector<Address> addresses{Address()};        // of the server or of the nodes of a cluster
  std::shared_ptr<const TlsContext> tls = nullptr;  // required if the addresses have TLS
  std::string token = {};                           // for auth; empty: none
};

// The addresses, separated by commas.
std::string to_string(const Target& server);

class Connection {
 public:
  // Connects, performs the TLS handshake, and sends the token; each within the timeout. All
  // connections of a program are opened here.
  //
  // With several addresses, tries one after the other until one answers a command: a node of a
  // cluster that refuses clients closes the connection instead. Before the last, each step has at
  // most kTryTimeout. The error has the reason of each.
  static Result<Connection> open(const Target& server, Duration timeout = kTimeout);

  // No function waits beyond this time, whatever its timeout.
  void set_deadline(std::chrono::steady_clock::time_point deadline) { deadline_ = deadline; }

  // Sends whole commands, with their line ends. Waits until the socket has accepted every byte.
  Result<void> send(std::string_view commands);
  // Waits for the next reply: at most `timeout` for its beginning and for each further part;
  // Duration::max() waits without limit.
  Result<Reply> receive(Duration timeout = kTimeout);
  // The next reply if it has arrived completely; does not wait.
  Result<std::optional<Reply>> take();
  // Sends one command, given without its line end, and waits for its reply. Precondition: no other
  // reply is pending.
  Result<Reply> ask(std::string_view command);
  // As ask(), for set-caps, whose reply is the line OK.
  Result<Reply> ask_for_caps(std::uint32_t bits);

  // For an event loop: readable when take() may find a reply. Input that has_input() reports is no
  // longer in the descriptor: check has_input() after a send and before waiting. After take() has
  // found nothing, it is false.
  int descriptor() const { return transport_.number(); }
  bool has_input() const { return taken_ < input_.size() || transport_.has_input(); }
  // Passes the socket to another owner. Precondition: no reply is pending.
  Transport release() && { return std::move(transport_); }

 private:
  explicit Connection(Transport transport);
  static Result<Connection> open_one(const Target& server, const Address& address,
                                     Duration timeout);

  Result<void> authenticate(const std::string& token, Duration timeout);
  Result<void> check_that_it_serves(Duration timeout);
  // Waits until everything is sent; receives meanwhile.
  Result<void> wait_for_room();
  Result<void> wait(short events, Duration timeout);
  Result<bool> receive_some();
  Result<std::optional<Reply>> parse();

  Transport transport_;
  ReplyParser parser_;
  std::string input_;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  std::size_t taken_ = 0;  // prefix of input_ that the parser has consumed
};

// The arguments and the body of a put.
struct NewJob {
  std::uint32_t priority = 0;
  // Milliseconds only for a server that accepts them. [client/times.h]
  std::chrono::milliseconds delay{0};
  std::chrono::milliseconds ttr{60'000};
  std::string_view tags = {};  // such as "idp:key:300", if the server knows them; empty: none
  std::string_view body;
};
// Appends the complete command with its body and line ends.
void append_put(const NewJob& job, std::string& commands);

}  // namespace tubed::client
