// Conversation: a connection without its socket. Bytes go in, replies come out, in order.
//
// The client passes the bytes that it has read to receive(), and sends the bytes of replies(). The
// conversation owns a session of the engine, the input that it has not consumed, and the replies
// that were not sent. It does not block, and it runs no command while an earlier command waits for
// its answer.
//
// The input is consumed in stages (Stage): a line, after a put's line its body and the line end of
// the body, or input that is skipped after an error. A run of work ends for one of five reasons
// (Stop):
//
// - starved: it needs more input.
// - waiting: a reserve or a wait waits for the engine's notice. Further input is kept, or ends the
//   wait of a reserve-with-abort.
// - budget: the quantum is used up, or a command in slices has done one slice. resume() continues
//   it in a later tick.
// - output: too many replies are not taken. resume() continues it when the client has read some.
// - congested: the next command may emit a fact while the log is congested. resume() continues it
//   when the log is not congested.
//
// Invariant: each command gets its reply, in the order of the commands, however the input is cut
// into reads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "commands/incoming_body.h"
#include "commands/input_buffer.h"
#include "commands/quantum.h"
#include "commands/replies.h"
#include "commands/running_command.h"
#include "commands/service.h"

namespace tubed::commands {

class Conversation {
 public:
  // The service outlives the conversation. Without an admission, the conversation may do
  // everything.
  explicit Conversation(Service& service);
  Conversation(Service& service, Admission admission);
  ~Conversation();
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  SessionId session() const { return session_; }

  // Null: it may do everything, and has no `auth`.
  Principal* principal() const { return principal_.get(); }
  // True if the client has to send a right token before anything else.
  bool awaits_authentication() const {
    return principal_ != nullptr && !principal_->authenticated();
  }
  // If the principal awaits its refusal (RefusedLater), replies UNAUTHORIZED, after which the
  // connection is to be closed, and returns true. Until then the conversation is silent and takes
  // no input.
  bool refuse();
  // Ends a wait that the rights of the role no longer allow. True if the client has to be served.
  bool rights_changed();

  // True while a reserve waits for a job, or a wait for the end of a job.
  bool waiting() const { return wait_.has_value(); }

  // Takes bytes from the client and runs their commands, up to the quantum of the tick.
  void receive(std::string_view bytes);
  // The memory for the rest of a body that is arriving, to read into directly. Empty if no body is
  // arriving or other input comes first.
  std::span<char> body_space();
  // The first `count` bytes of body_space() were written.
  void body_received(std::size_t count);

  // The client has half-closed: a wait ends with TIMED_OUT, and none begins. Bytes that it sent
  // before may still be received.
  void half_close();
  // The input has ended.
  void end_input();

  // The server is stopping: a wait ends without an answer, the input pipelined after it is dropped,
  // and no wait begins.
  void stop_waiting();
  // Its client has left: as stop_waiting(), and no more of its input is run.
  void abandon();

  // The command that is read or run.
  RunningCommand& command() { return command_; }
  const RunningCommand& command() const { return command_; }
  // How its answers are written.
  Replies& answers() { return replies_; }

  // The engine was replaced, and the session is open in the new engine. Claims the memory of an
  // arriving body again, begins a wait again, and continues a parked command. True if the client
  // has to be served.
  bool restart();

  // Returns the context of its handlers, without a body.
  Context context();
  // Charges this much work beyond one command for the command that is running.
  void spend(std::uint32_t work) { quantum_.spend(work); }

  // Reports to the audit an admin command in slices that has not finished. Its host calls this
  // while it still knows the address of the client; otherwise the destructor does.
  [[gnu::cold]] void audit_unfinished();

  // Continues work that was deferred to a later tick.
  void resume();
  bool can_resume() const;
  // True if it stopped as `congested`. It is resumed when the log is not congested.
  bool waits_for_log() const { return stop_ == Stop::congested && can_resume(); }
  // False if more bytes would only be stored.
  bool wants_input() const;
  // True if no further reply will come. When replies() is empty, the connection can be closed.
  bool finished() const;
  // True if it ended because the client speaks another protocol (foreign_protocol.h).
  bool is_foreign() const { return end_ == End::foreign; }
  // True while a body arrives whose command is not answered. (The client of a malformed put, which
  // is answered at once, may never send the body.)
  bool in_body() const;
  // True if the session holds no job, is not blocked in reserve and has no deferred work or unsent
  // replies. It may be in the middle of a line or of a body: a body that does not arrive holds
  // memory.
  bool idle() const;

  protocol::ReplyBuffer& replies() { return replies_.buffer(); }
  const protocol::ReplyBuffer& replies() const { return replies_.buffer(); }

  // Takes the engine's answer to the reserve or wait. True if the conversation is not running at
  // this moment: then its client has to be served.
  bool answer(const engine::Notice& notice);

 private:
  // The part of the input that comes next.
  enum class Stage : std::uint8_t {
    line,
    body,     // stored, or skipped if its command is refused
    dropped,  // a body and its line end, of a malformed or too large put
    body_end,
    skipped_line,
    unauthenticated,  // a line before a token was right
  };
  // How it ends. After `quit` and `foreign` no further command runs.
  enum class End : std::uint8_t { open, input_ended, quit, foreign };
  // The reason for which the last run of work ended.
  enum class Stop : std::uint8_t { starved, waiting, budget, output, congested };

  bool has_quit() const { return end_ >= End::quit; }
  void work();
  [[gnu::cold]] void abort_waits();
  std::size_t do_work(std::string_view input);
  std::size_t take(std::string_view input);
  bool may_go_on();
  std::size_t output_bound() const;
  [[gnu::always_inline]] bool must_wait_for_log();
  [[gnu::cold]] std::size_t take_first_line(std::string_view input);
  std::size_t take_line(std::string_view input);
  std::size_t take_body(std::string_view input);
  std::size_t take_body_end(std::string_view input);
  std::size_t take_skipped_line(std::string_view input);

  bool run_line(std::string_view line);
  void refuse_line(const Command* command, std::string_view arguments);
  bool begin_body();
  void drop_body(std::uint32_t bytes, std::string_view reply);
  void abandon_body();
  void run_command();
  [[gnu::cold]] bool end_foreign_protocol(std::string_view line);
  [[gnu::cold]] bool run_auth(std::string_view name, std::string_view text);
  void end_operation();
  [[gnu::cold]] [[gnu::noinline]] bool is_allowed();
  [[gnu::cold]] [[gnu::noinline]] bool is_still_allowed();
  protocol::Waiting cancel_wait();
  bool ends_command(const Answer& answer);

  Service& service_;
  SessionId session_;
  std::unique_ptr<Principal> principal_;
  Replies replies_;
  InputBuffer pending_;

  Stage stage_ = Stage::line;
  Stop stop_ = Stop::starved;
  End end_ = End::open;
  bool working_ = false;
  bool may_wait_ = true;
  std::optional<protocol::Waiting> wait_;  // of the command that waits
  Quantum quantum_;
  RunningCommand command_;
  IncomingBody body_;            // of that command
  std::string_view line_reply_;  // the answer at the end of a line that is being skipped
};

}  // namespace tubed::commands
