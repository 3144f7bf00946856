#include "tests/wire/run.h"

#include <algorithm>
#include <optional>

#include "tests/wire/escape.h"
#include "text/numbers.h"

namespace tubed::wire {
namespace {

// Returns the number of bytes that `OK <bytes>\r\n` announces, including the final CRLF, if `line`
// is such a line.
std::optional<std::size_t> announced_block(std::string_view line) {
  if (!line.starts_with("OK ") || !line.ends_with("\r\n")) return std::nullopt;
  const std::string_view digits = line.substr(3, line.size() - 5);
  const auto bytes = parse_number<std::size_t>(digits);
  return bytes ? std::optional(*bytes + 2) : std::nullopt;
}

class Player {
 public:
  Player(const Transcript& transcript, Driver& driver)
      : transcript_(transcript), driver_(driver), streams_(transcript.clients.size()) {}

  PlayResult play() {
    for (const Step& step : transcript_.steps) {
      step_ = &step;
      do_step(step);
      if (lost_) return std::move(result_);
    }
    driver_.wait_until_idle();
    for (Client client = 0; client < streams_.size(); ++client) expect_silence(client);
    return std::move(result_);
  }

 private:
  struct Stream {
    bool opened = false;
    bool closed = false;                     // by the transcript
    bool ended = false;                      // by the server
    std::string unread;                      // input not yet matched by a statement
    std::optional<std::size_t> block_bytes;  // rest of the block announced by OK <bytes>
  };

  void do_step(const Step& step) {
    switch (step.kind) {
      case StepKind::advance:
        driver_.wait_until_idle();
        driver_.advance(step.time);
        return;
      case StepKind::drain:
        driver_.wait_until_idle();
        driver_.drain(step.drain);
        return;
      default:
        break;
    }
    const Client client = step.client;
    if (!streams_[client].opened) {
      streams_[client].opened = true;
      driver_.open(client);
    }
    if (streams_[client].closed) {
      fail("is used after it closed");
      lost_ = true;
      return;
    }
    do_client_step(step, client);
  }

  void do_client_step(const Step& step, Client client) {
    switch (step.kind) {
      case StepKind::send:
        wait_for_others(client);
        ++result_.exchanges;
        driver_.send(client, step.sent);
        return;
      case StepKind::receive:
        expect(client, step.expected);
        return;
      case StepKind::silent:
        driver_.wait_until_idle();
        expect_silence(client);
        return;
      case StepKind::closed:
        expect_end(client);
        return;
      case StepKind::half_closes:
        wait_for_others(client);
        driver_.half_close(client);
        return;
      case StepKind::closes:
        driver_.wait_until_idle();
        expect_silence(client);
        driver_.close(client);
        streams_[client].closed = true;
        actor_ = client;
        return;
      case StepKind::advance:
      case StepKind::drain:
        return;
    }
  }

  // Without this wait, the server could read the bytes of two sockets in either order.
  void wait_for_others(Client client) {
    if (actor_ && *actor_ != client) driver_.wait_until_idle();
    actor_ = client;
  }

  // Returns false if no input arrived.
  bool read_more(Client client, std::size_t min_bytes) {
    Stream& stream = streams_[client];
    if (stream.ended) return false;
    Received received = driver_.receive(client, min_bytes);
    stream.unread += received.bytes;
    stream.ended = received.closed;
    return !received.bytes.empty();
  }

  void expect(Client client, const Pattern& expected) {
    if (is_rest(expected)) {
      expect_rest(client);
      return;
    }
    Stream& stream = streams_[client];
    Match matched = match(expected, stream.unread);
    while (matched.outcome == Match::Outcome::needs_more && read_more(client, 1)) {
      matched = match(expected, stream.unread);
    }
    if (matched.outcome == Match::Outcome::yes) {
      consume(client, matched.bytes);
      return;
    }
    fail("expected " + shown(expected) + " got " + shown_unread(client));
    if (matched.outcome == Match::Outcome::needs_more) {
      lost_ = true;
    } else {
      skip_lines(client, lines_in(expected));
    }
  }

  void expect_rest(Client client) {
    Stream& stream = streams_[client];
    if (!stream.block_bytes) {
      fail("expected {rest} but no OK <bytes> announced a block");
      lost_ = true;
      return;
    }
    const std::size_t bytes = *stream.block_bytes;
    while (stream.unread.size() < bytes && read_more(client, bytes - stream.unread.size())) {
    }
    if (stream.unread.size() < bytes || !stream.unread.substr(0, bytes).ends_with("\r\n")) {
      fail("expected {rest} of " + std::to_string(bytes) + " bytes ending with CRLF, got " +
           shown_unread(client));
      lost_ = true;
      return;
    }
    consume(client, bytes);
  }

  // Removes matched bytes from the input, and checks the announced length of the block.
  void consume(Client client, std::size_t bytes) {
    Stream& stream = streams_[client];
    if (stream.block_bytes) {
      if (bytes > *stream.block_bytes) {
        fail("expected the block to end as its OK <bytes> announced, " +
             std::to_string(bytes - *stream.block_bytes) + " bytes earlier, got " +
             shown_unread(client));
      }
      const std::size_t left = *stream.block_bytes - std::min(bytes, *stream.block_bytes);
      stream.block_bytes = left > 0 ? std::optional(left) : std::nullopt;
    } else {
      stream.block_bytes = announced_block(std::string_view(stream.unread).substr(0, bytes));
    }
    stream.unread.erase(0, bytes);
  }

  void skip_lines(Client client, std::size_t lines) {
    Stream& stream = streams_[client];
    for (; lines > 0; --lines) {
      std::size_t end = stream.unread.find('\n');
      while (end == std::string::npos && read_more(client, 1)) end = stream.unread.find('\n');
      if (end == std::string::npos) {
        lost_ = true;
        return;
      }
      stream.unread.erase(0, end + 1);
    }
    stream.block_bytes.reset();
  }

  // Precondition: the driver is idle.
  void expect_silence(Client client) {
    Stream& stream = streams_[client];
    if (!stream.opened || stream.closed) return;
    read_more(client, 0);
    if (!stream.unread.empty()) {
      fail("expected nothing further, got " + shown_unread(client), client);
      stream.unread.clear();
    } else if (stream.block_bytes) {
      fail("expected " + std::to_string(*stream.block_bytes) + " bytes more of the block", client);
    }
  }

  void expect_end(Client client) {
    while (read_more(client, 1)) {
    }
    const Stream& stream = streams_[client];
    if (stream.ended && stream.unread.empty()) return;
    fail("expected the end of the stream, got " + shown_unread(client));
    lost_ = true;
  }

  std::string shown_unread(Client client) const {
    const Stream& stream = streams_[client];
    if (stream.unread.empty()) return stream.ended ? "the end of the stream" : "nothing";
    return shown(stream.unread) + (stream.ended ? " and the end of the stream" : "");
  }

  void fail(const std::string& what) { fail(what, step_->client); }
  void fail(const std::string& what, Client client) {
    result_.failures.push_back(transcript_.file + ':' + std::to_string(step_->line) + ": " +
                               transcript_.clients[client] + ' ' + what);
  }

  const Transcript& transcript_;
  Driver& driver_;
  std::vector<Stream> streams_;
  std::optional<Client> actor_;  // of the last step
  const Step* step_ = nullptr;
  bool lost_ = false;  // an expected reply is missing: later steps are not checked
  PlayResult result_;
};

}  // namespace

PlayResult play(const Transcript& transcript, Driver& driver) {
  return Player(transcript, driver).play();
}

}  // namespace tubed::wire
