// Conversation: a connection without its socket. Bytes go in, replies come out, in order.
//
// It owns the input that it cannot act on yet and the replies that nobody has taken yet, and one
// session of the engine. It never blocks and never runs a command while an earlier one of the same
// client waits for its answer.
//
// Invariant: replies come in the order of the commands, and none is missing or added, however the
// input is cut.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "commands/command.h"
#include "commands/input_buffer.h"
#include "commands/service.h"
#include "protocol/reply.h"

namespace tubed::commands {

class Conversation {
 public:
  // The service outlives the conversation.
  explicit Conversation(Service& service);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  SessionId session() const { return session_; }

  // It waits for a job.
  bool waiting() const { return waiting_; }

  // Bytes from the client; does what they say, as far as the service's quantum allows.
  void receive(std::string_view bytes);
  // Where the rest of a body that is arriving may be written directly; empty if there is none.
  std::span<char> body_space();
  // The first `count` bytes of body_space() were written.
  void body_received(std::size_t count);

  // The client has half-closed: a wait ends with TIMED_OUT, and none begins. Bytes that it sent
  // before may still be received.
  void half_close();
  // There will be no more bytes.
  void end_input();

  // The server is stopping: a wait ends without an answer, and with it all that was pipelined
  // behind; none begins.
  void stop_waiting();

  // Goes on with work that was left for a later turn.
  void resume();
  bool can_resume() const;
  // The next command may emit a fact, and the log is congested: to be resumed when it is not.
  bool waits_for_log() const { return stop_ == Stop::congested && can_resume(); }
  // False: bytes would only pile up.
  bool wants_input() const;
  // Nothing more will be answered: once replies() is empty the connection can be closed.
  bool finished() const { return quit_ || (input_ended_ && stop_ == Stop::starved); }
  // A body is arriving that has to be answered. (After a malformed put is answered, its client may
  // never send one.)
  bool in_body() const;
  // Holds no job, and neither waits for anything nor owes anything. (The middle of a line or a body
  // is no excuse: a body that does not come holds memory.)
  bool idle() const;

  protocol::ReplyBuffer& replies() { return replies_; }
  const protocol::ReplyBuffer& replies() const { return replies_; }

  // The engine answers a reserve. True: the conversation was not at work itself, so that somebody
  // else has to take the reply.
  bool answer(const engine::Notice& notice);

 private:
  // Which part of the input comes next.
  enum class Stage : std::uint8_t {
    line,
    body,
    skipped_body,  // of a put that is turned away
    dropped,       // a body and its end, of a line that was wrong or announced too much
    body_end,
    skipped_line,
  };
  // Why the last run of work ended.
  enum class Stop : std::uint8_t { starved, waiting, budget, output, congested };

  void work();
  void keep(std::string_view input);
  std::size_t do_work(std::string_view input);
  std::size_t take(std::string_view input);
  bool may_go_on();
  std::size_t output_bound() const;
  bool held_by_log();
  std::size_t take_line(std::string_view input);
  std::size_t take_body(std::string_view input);
  std::size_t take_dropped(std::string_view input);
  std::size_t take_body_end(std::string_view input);
  std::size_t take_skipped_line(std::string_view input);

  bool run_line(std::string_view line);
  void refuse_line(const Command* command, std::string_view arguments);
  void begin_body();
  void drop_body(std::uint32_t bytes, std::string_view reply);
  void abandon_body();
  void run_command();
  bool ends_command(const Answer& answer);
  void charge(std::size_t reply_bytes, std::uint64_t watches_walked);
  Context context();

  Service& service_;
  SessionId session_;
  protocol::ReplyBuffer replies_;
  InputBuffer pending_;  // input not acted on yet
  std::size_t counted_input_ = 0;

  Stage stage_ = Stage::line;
  Stop stop_ = Stop::starved;
  bool working_ = false;
  bool waiting_ = false;
  bool peer_is_gone_ = false;
  bool input_ended_ = false;
  bool quit_ = false;
  std::uint32_t budget_ = 0;

  // The command that is being run or read, from its line to its answer.
  struct RunningCommand {
    const Command* row = nullptr;
    ArgumentStorage arguments;
    Operation operation;
  };
  // The body of that command, while it arrives.
  struct IncomingBody {
    Bytes bytes;  // where it is stored; none: it is discarded
    std::uint64_t left = 0;
    std::string_view refusal;  // the reply when a discarded body ends; empty: none
  };
  RunningCommand running_;
  IncomingBody incoming_;
  std::string_view line_reply_;  // the answer at the end of a line that is being skipped
};

}  // namespace tubed::commands
