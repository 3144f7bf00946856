// Client: one connection: a channel, a conversation, and the bytes between them.
//
// When the channel is readable, the client begins the tick, reads once and gives the bytes to its
// conversation, which runs the commands. The client then marks itself dirty: at the end of the tick
// the scheduler calls write(), which sends the replies that are durable, and update_interest(),
// which asks the channel for what the conversation can use next. A client that comes when the work
// of the tick is used up is deferred before it is read from; resume() later does the work of
// on_ready().
//
// The client closes nothing itself: the scheduler closes it at the end of a tick in which done()
// is true.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "commands/conversation.h"
#include "loop/channel.h"
#include "serving/client_identity.h"
#include "serving/client_timeouts.h"
#include "serving/commit_gate.h"

namespace tubed::serving {

class Client;

// The part of the scheduler that clients call.
class ClientHost {
 public:
  // An event has arrived. The first event of a tick reads the clock and does what is due.
  virtual void begin_tick() = 0;
  // The client is served at the end of the tick.
  virtual void mark_dirty(Client& client) = 0;
  // False while too many replies wait for the log: then no client is read from.
  virtual bool takes_input() const = 0;
  // Client::resume() is called in a later tick.
  virtual void defer(Client& client) = 0;

 protected:
  ~ClientHost() = default;
};

// In which queues of the scheduler a client is (client_queue.h).
struct QueuedIn {
  bool dirty = false;
  bool gated = false;
  bool paused = false;
  bool congested = false;
  bool deferred = false;
};

// How a client arrived: with a connection of its own, which limits.connections bounds, or with a
// request over HTTP, which the limits of HTTP bound.
enum class Arrival : std::uint8_t { connection, request };

class Client final : public loop::ChannelOwner {
 public:
  // `read_buffer` serves all clients: it is filled and emptied within one call. Everything that is
  // passed by reference outlives the client.
  Client(std::unique_ptr<loop::Channel> channel, commands::Service& service, ClientHost& host,
         std::span<char> read_buffer, commands::Admission admission = {});

  SessionId session() const { return conversation_.session(); }
  commands::Conversation& conversation() { return conversation_; }
  const commands::Conversation& conversation() const { return conversation_; }

  // The address of the client, for the log.
  std::string address() const { return channel_->peer(); }
  // The name of its certificate that a proxy has reported, for the log; empty: none.
  std::string tls_name() const { return channel_->tls_name(); }

  // Sends the replies that are durable, until the kernel takes no more. True if it took something.
  // O(bytes sent).
  bool write(const FactLog& log);
  // True if the kernel has not taken all replies that may be sent.
  bool has_unsent() const { return conversation_.replies().size() > gated_bytes_; }
  // True while replies wait until the changes that they acknowledge are durable.
  bool is_gated() const { return gate_.holds(); }
  // True if only the host keeps the client from being read from.
  bool is_input_paused() const;
  // True if bytes have been received since the last call.
  bool take_received() { return std::exchange(received_, false); }
  // Asks the channel for what the conversation can use now.
  void update_interest();

  // The server is stopping: the client finishes as soon as it has received something, or at
  // finish(). If it waits in a reserve, the wait ends without an answer, and it finishes with the
  // others that wait.
  void stop();
  // Runs no further command. The client is done as soon as what was read is answered and the
  // replies are sent. A close with input unread would reset the connection and could destroy
  // replies on their way: then the peer gets the end of the stream, and the client is done when
  // the peer has ended its side too.
  void finish();
  bool finishing() const { return state_ >= State::finishing; }
  // True if it waited in a reserve when the server began to stop. finish() ends the wait.
  bool closes_last() const { return closes_last_; }
  // True if the last read took all input and all its commands are done. False before the first
  // read.
  bool is_light() const { return read_all_ && conversation_.wants_input(); }
  // The connection can be closed.
  bool done() const;
  // Hands the connection over. Afterwards the client can only be destroyed.
  std::unique_ptr<loop::Channel> take_channel() { return std::move(channel_); }

  void on_ready(loop::Readiness ready) override;
  // Does the deferred work: reads, or continues with the input.
  void resume();

  QueuedIn queued;
  TimeoutEntry timeouts{*this};
  std::size_t counted_output = 0;  // bytes of replies, as Clients has counted them
  Arrival arrival = Arrival::connection;
  bool is_forwarded = false;                       // by another node of the cluster
  std::unique_ptr<const ClientIdentity> identity;  // null: it has shown none

 private:
  // In the order in which a client passes through them; some are left out.
  enum class State : std::uint8_t {
    open,
    stopping,   // finishing as soon as bytes were received
    finishing,  // no further command is read
    lingering,  // the output has ended; input is read and dropped until the peer ends it
    broken,     // the connection is lost
  };

  void handle(loop::Readiness ready);
  void read_input();
  bool read();
  void discard_input();
  bool answered() const;
  bool wants_input() const;

  ClientHost& host_;
  commands::Service& service_;
  std::span<char> read_buffer_;
  commands::Conversation conversation_;
  std::unique_ptr<loop::Channel> channel_;
  CommitGate gate_;
  loop::Readiness unhandled_;    // of a client that was deferred before it was read from
  std::size_t gated_bytes_ = 0;  // at the end of the buffered replies; they wait for the log
  State state_ = State::open;
  bool received_ = false;
  bool received_any_ = false;
  bool read_all_ = false;
  bool closes_last_ = false;
};

}  // namespace tubed::serving
