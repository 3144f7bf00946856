// Replies: the replies of one conversation, and the form in which its answers are written.
#pragma once

#include <string_view>

#include "facts/types.h"
#include "protocol/answer.h"
#include "protocol/reply.h"

namespace tubed::commands {

class Service;

class Replies {
 public:
  // The service outlives the replies.
  Replies(const Service& service, SessionId session) : service_(service), session_(session) {}

  protocol::ReplyBuffer& buffer() { return buffer_; }
  const protocol::ReplyBuffer& buffer() const { return buffer_; }
  std::size_t size() const { return buffer_.size(); }

  [[gnu::always_inline]] void write(const protocol::Answer& answer) {
    if (!is_plain_text_) [[unlikely]]
      return write_in_other_form(answer);
    render(answer, buffer_);
  }
  // Writes a reply of one word that no handler has made.
  void write(std::string_view word);

  // If `announced`, has_drained() writes a line [set-caps].
  void announce_drained(bool announced) { announces_drained_ = announced; }
  // Drain mode has ended the server, and the client is about to be closed. `in_slices`: the answer
  // of a command in slices is being written, and the line follows it.
  void has_drained(bool in_slices);
  // The answer of a command in slices is complete.
  void slices_end() {
    if (owes_drained_) [[unlikely]]
      has_drained(false);
  }

  // If `shown`, the lines of jobs end with their tubes [set-caps].
  void show_tubes(bool shown);
  // `writer` writes the answers, and outlives the replies or is replaced before it ends. Null:
  // they are protocol text.
  void set_writer(protocol::AnswerWriter* writer);

 private:
  [[gnu::cold]] [[gnu::noinline]] void write_in_other_form(const protocol::Answer& answer);

  const Service& service_;
  const SessionId session_;
  bool shows_tubes_ = false;
  bool announces_drained_ = false;
  bool owes_drained_ = false;
  bool is_plain_text_ = true;  // neither shows_tubes_ nor a writer_
  protocol::AnswerWriter* writer_ = nullptr;
  protocol::ReplyBuffer buffer_;
};

}  // namespace tubed::commands
