// Client: a conversation with a server, one command at a time or many in flight.
//
// It owns the socket, and what has come and was not taken yet. While it sends it also receives, so
// that a server that waits until its replies are taken never holds it up for good. An Error of its
// functions means that there is no server any more; what the server refuses is an Answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "tubectl/address.h"
#include "tubectl/connection.h"

namespace tubed::tubectl {

// One whole reply.
struct Answer {
  std::string line;  // without CR LF
  std::string body;  // of OK, FOUND and RESERVED; else empty

  std::string_view word() const { return std::string_view(line).substr(0, line.find(' ')); }
  bool is(std::string_view expected) const { return word() == expected; }
  // The first number behind the word, as in INSERTED, RESERVED, FOUND, KICKED; 0 without one.
  std::uint64_t number() const;
};

// A false server may announce a reply of any size, and a client keeps what it has of a reply in
// memory, twice at its end. This bound is larger than the list of a million tubes of usual names,
// and than all but the largest jobs; --max-reply changes it.
inline constexpr std::uint64_t kMaxReplyBytes = std::uint64_t{256} << 20;
inline constexpr std::uint64_t kMaxReplyBytesCeiling = std::uint64_t{2} << 30;
// For all clients of this process. Precondition: no thread uses one yet.
void limit_replies(std::uint64_t bytes);

inline constexpr Duration kPatience = std::chrono::seconds(kPatienceSeconds);

class Client {
 public:
  static Result<Client> connect(const Address& server, int patience_seconds = kPatienceSeconds);

  // Commands, whole, with their line ends. Waits until the socket has taken all.
  Result<void> send(std::string_view commands);
  // The next answer. Waits for its beginning and for each further part `patience` at most;
  // Duration::max() is for ever.
  Result<Answer> receive(Duration patience = kPatience);
  // The next answer if it has come as a whole; waits for nothing.
  Result<std::optional<Answer>> take();
  // One command, without its line end, and its answer. Precondition: no other answer is under way.
  Result<Answer> ask(std::string_view command);

  // For poll(): readable when take() may find something.
  int descriptor() const { return connection_.number(); }
  // Leaves the conversation to whoever reads on. Precondition: no answer is under way.
  Connection release() && { return std::move(connection_); }

 private:
  explicit Client(Connection connection) : connection_(std::move(connection)) {}

  Result<void> wait(short events, Duration patience);
  Result<bool> receive_some();
  Result<std::optional<Answer>> parse();

  Connection connection_;
  std::string input_;
  std::size_t taken_ = 0;  // of input_
};

// What a put sends, with the body and both line ends.
struct NewJob {
  std::uint32_t priority = 0;
  std::uint64_t delay_seconds = 0;
  std::uint64_t ttr_seconds = 60;
  std::string_view body;
};
void append_put(const NewJob& job, std::string& commands);

}  // namespace tubed::tubectl
