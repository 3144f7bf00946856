// Client: one connection: a socket and a conversation, and the bytes between them.
//
// It closes nothing itself: the server does, at the end of a turn, when done() says so.
#pragma once

#include <span>

#include "base/intrusive_list.h"
#include "commands/conversation.h"
#include "loop/channel.h"
#include "server/commit_gate.h"

namespace tubed::server {

class Client;

// What clients ask of the server.
class ClientHost {
 public:
  // Something is about to happen: the time is read, and what is due is done.
  virtual void begin_tick() = 0;
  // The client has to be looked at when the turn ends.
  virtual void look_after(Client& client) = 0;
  // One buffer serves all clients: it is filled and emptied within one callback.
  virtual std::span<char> read_buffer() = 0;
  // False: so much waits for the disk that nothing more is read for now.
  virtual bool takes_input() const = 0;
  // Client::go_on() is to be called when its turn has come.
  virtual void defer(Client& client) = 0;

 protected:
  ~ClientHost() = default;
};

// Something is owed: since when nothing of it has moved.
struct Stall {
  bool listed = false;
  Time since;
};

class Client final : public loop::ChannelOwner {
 public:
  Client(loop::Loop& loop, os::Socket socket, commands::Service& service, ClientHost& host);

  SessionId session() const { return conversation_.session(); }
  commands::Conversation& conversation() { return conversation_; }
  bool usable() const { return stream_.usable(); }

  // Writes what may leave, as far as the socket takes it; true if it took something.
  bool write(const FactLog& log);
  // Replies that may leave and were not taken.
  bool owes_taking() const { return conversation_.replies().size() > held_bytes_; }
  // Replies wait for the journal.
  bool is_gated() const { return gate_.holds(); }
  // It would read, were it not for takes_input().
  bool is_held_back() const;
  // Bytes came since the last call.
  bool take_received() { return std::exchange(received_, false); }
  // Asks the loop for what the conversation can use now.
  void update_interest();

  // Acts on nothing more; done as soon as what was read is answered and the answers are sent. If
  // input was left unread, a close would reset the connection and could destroy answers that are on
  // their way: then the peer gets the end of the stream, and it is done when the peer has ended
  // too.
  void finish() { finishing_ = true; }
  bool finishing() const { return finishing_; }
  // The last read took all that it had sent, and that is done. False before the first read.
  bool asks_little() const { return read_all_ && conversation_.wants_input(); }
  // Something has come from it.
  bool has_spoken() const { return spoken_; }
  // The connection can be closed.
  bool done() const;

  void on_ready(loop::Readiness ready) override;
  // Does what was deferred: reads, or goes on with what was read.
  void go_on();

  // For the server's lists.
  ListLinks<Client> activity_links;
  ListLinks<Client> taking_links;
  ListLinks<Client> sending_links;
  Time last_active;
  Stall taking;   // replies wait for it to take them
  Stall sending;  // a body that it began to send is not all here
  std::size_t counted_output = 0;
  // In which of the server's queues it is (client_queue.h).
  bool dirty = false;
  bool gated = false;
  bool held = false;
  bool congested = false;
  bool deferred = false;
  bool waits_to_the_end = false;  // it waited in a reserve when the server was to stop

 private:
  void handle(loop::Readiness ready);
  bool read();
  void discard_input();
  bool answered() const;
  bool wants_input() const;

  ClientHost& host_;
  commands::Service& service_;
  commands::Conversation conversation_;
  loop::Channel stream_;
  CommitGate gate_;
  loop::Readiness unhandled_;   // of a client that was deferred before it was read from
  std::size_t held_bytes_ = 0;  // the last ones of the buffered replies wait for the journal
  bool received_ = false;
  bool spoken_ = false;
  bool read_all_ = false;
  bool broken_ = false;
  bool finishing_ = false;
  bool lingering_ = false;  // the output has ended, input is read and dropped
};

}  // namespace tubed::server
