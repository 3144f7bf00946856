// Answer: the result of a command, as a value. render() writes it as protocol text; tests compare
// it.
//
// A word is one of the literals of protocol/reply.h. Names refer to text that the engine or the
// command's line owns, so an Answer must be rendered before the next command runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "facts/types.h"
#include "protocol/block.h"
#include "protocol/reply.h"

namespace tubed::protocol {

// DELETED
struct Status {
  std::string_view word;

  friend bool operator==(const Status&, const Status&) = default;
};

// INSERTED 1
struct Number {
  std::string_view word;
  std::uint64_t value = 0;

  friend bool operator==(const Number&, const Number&) = default;
};

// USING default
struct Name {
  std::string_view word;
  std::string_view name;

  friend bool operator==(const Name&, const Name&) = default;
};

// RESERVED 1 5, and the body
struct JobAnswer {
  std::string_view word;
  JobId id = 0;
  Bytes body;

  friend bool operator==(const JobAnswer& a, const JobAnswer& b) {
    return a.word == b.word && a.id == b.id && a.body.view() == b.body.view();
  }
};

// DELETED_BATCH 2 1, INSERTED 1 READY or INSERTED 1 READY 5
struct Numbers {
  std::string_view word;
  std::uint64_t first = 0;
  std::optional<std::uint64_t> second = {};
  std::string_view state = {};  // between the numbers; empty: none

  friend bool operator==(const Numbers&, const Numbers&) = default;
};

// RESERVED_BATCH 2, and each job as in a JobAnswer
struct JobBatch {
  std::vector<JobAnswer> jobs;

  friend bool operator==(const JobBatch&, const JobBatch&) = default;
};

// A part of a block that is text and made in parts. The caller runs the command again until `last`.
struct BlockPart {
  std::optional<std::uint64_t> block_bytes;  // of the whole block, with the first part
  Bytes text;
  bool last = false;

  friend bool operator==(const BlockPart& a, const BlockPart& b) {
    return a.block_bytes == b.block_bytes && a.text.view() == b.text.view() && a.last == b.last;
  }
};

// No answer yet: the engine answers later, by a notice.
struct Waiting {
  bool for_batch = false;    // the command then runs again, to complete a JobBatch
  bool until_input = false;  // further input ends the wait

  friend bool operator==(Waiting, Waiting) = default;
};

// One slice of the work is done. The caller runs the command again in a later tick.
struct Unfinished {
  friend bool operator==(Unfinished, Unfinished) = default;
};

// The caller closes the connection.
struct Close {
  friend bool operator==(Close, Close) = default;
};

// std::visit is slower for more than eleven alternatives.
using Answer = std::variant<Status, Number, Name, JobAnswer, Block, Numbers, JobBatch, BlockPart,
                            Waiting, Unfinished, Close>;

// Whether the answer is a complete reply. The alternatives that are complete replies come first.
inline bool is_whole_reply(const Answer& answer) {
  static_assert(std::is_same_v<std::variant_alternative_t<7, Answer>, BlockPart>);
  return answer.index() < 7;
}

// Appends the answer as protocol text; nothing for Waiting, Unfinished and Close. The comment above
// each alternative shows its form. [protocol: each command's responses]
void render(const Answer& answer, ReplyBuffer& replies);
// The same, with the name of its tube in the line of each job [set-caps].
using TubeOfJob = std::function<std::string_view(JobId)>;
void render_with_tubes(const Answer& answer, const TubeOfJob& tube_of, ReplyBuffer& replies);

// Writes the answers to one client in another format than protocol text.
class AnswerWriter {
 public:
  // Appends the answer to the replies, or nothing yet. Called for each answer in the order of the
  // commands, also for Waiting, Unfinished and Close.
  virtual void write(const Answer& answer, ReplyBuffer& replies) = 0;

 protected:
  ~AnswerWriter() = default;
};

}  // namespace tubed::protocol
