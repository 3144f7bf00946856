// RunningCommand: the command that a conversation reads or runs, from its line to its answer.
//
// Its arguments are read from its line. A command that works in slices, or that waits for something
// other than the engine, has an Operation until its answer is complete.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "commands/command.h"

namespace tubed::commands {

class RunningCommand {
 public:
  // Begins the command of this row and reads its arguments, which may refer to `text`. Returns
  // false if they are malformed.
  bool read(const Command& row, std::string_view text) {
    row_ = &row;
    return row.parse(text, arguments_);
  }
  // Copies the text of the arguments: they stay valid after `text`.
  void keep_text(std::string_view text) {
    kept_text_ = text;
    row_->parse(kept_text_, arguments_);
  }

  // Precondition, here and below: read() was called.
  const Command& row() const { return *row_; }
  const ArgumentStorage& arguments() const { return arguments_; }
  Named named() const { return row_->named(arguments_); }

  // Decides about the body. Precondition: the row has a body.
  BodyPlan begin_body(Context& context) const { return row_->begin_body(context, arguments_); }
  // Returns the memory for jobs that begin_body() has claimed.
  std::uint32_t claimed() const { return row_->claimed(arguments_); }
  // Runs the command, or its next slice.
  Answer run(Context& context) { return row_->run(context, arguments_, operation_); }

  // True between two slices.
  bool in_progress() const { return commands::in_progress(operation_); }
  // Returns the operation if it is of this kind, and null otherwise.
  template <class Kind>
  const Kind* operation() const {
    return std::get_if<Kind>(&operation_);
  }
  // The next run() continues this operation.
  void set_operation(Operation operation) { operation_ = std::move(operation); }
  void end_operation() { operation_ = {}; }

  // Test mode. A parked command has answered Unfinished and is not run again before unpark(), or
  // until its client half-closes.
  void park() { parked_ = true; }
  // Returns true if it was parked.
  bool unpark() { return std::exchange(parked_, false); }
  bool is_parked() const { return parked_; }

  // True while the client waits for the answer to `reload`. It may leave meanwhile.
  bool awaits_reload() const {
    const auto* reload = operation<ReloadOperation>();
    return reload != nullptr && reload->result == nullptr;
  }
  // The next run() answers `reload`. The client has to be served. Precondition, here and below:
  // awaits_reload().
  void reloaded(ReloadResult result) {
    std::get<ReloadOperation>(operation_).result =
        std::make_shared<ReloadResult>(std::move(result));
    parked_ = false;
  }
  // The reload takes the client's role: the connection ends after the answer.
  void close_after_reload() { std::get<ReloadOperation>(operation_).closes = true; }

 private:
  const Command* row_ = nullptr;
  ArgumentStorage arguments_;
  Operation operation_;
  bool parked_ = false;
  // To which arguments_ may refer while a body arrives, and between two slices.
  std::string kept_text_;
};

}  // namespace tubed::commands
