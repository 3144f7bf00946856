#include "commands/replies.h"

#include "commands/service.h"

namespace tubed::commands {

void Replies::write(std::string_view word) {
  if (!is_plain_text_) [[unlikely]]
    return write_in_other_form(protocol::Status{word});
  buffer_.line(word);
}

void Replies::has_drained(bool in_slices) {
  if (!announces_drained_) return;
  owes_drained_ = in_slices;
  if (!in_slices) write(protocol::word::kDrained);
}

void Replies::show_tubes(bool shown) {
  shows_tubes_ = shown;
  is_plain_text_ = !shown && writer_ == nullptr;
}

void Replies::set_writer(protocol::AnswerWriter* writer) {
  writer_ = writer;
  is_plain_text_ = !shows_tubes_ && writer == nullptr;
}

void Replies::write_in_other_form(const protocol::Answer& answer) {
  if (writer_ != nullptr) return writer_->write(answer, buffer_);
  const auto tube_of = [this](JobId id) {
    const engine::Engine& engine = service_.engine();
    return engine.queries().tube_of_held(session_, id).value_or(engine.queries().tube_of(id));
  };
  render_with_tubes(answer, tube_of, buffer_);
}

}  // namespace tubed::commands
