#include "test_mode/control_text.h"

#include <algorithm>
#include <optional>

#include "commands/table.h"
#include "protocol/arguments.h"
#include "test_mode/table.h"
#include "text/numbers.h"

namespace tubed::test_mode {

namespace {

constexpr std::string_view kCrLf = "\r\n";

const commands::Command* find_row(std::string_view word) {
  const auto verbs = verb_table();
  const auto verb = std::ranges::find(verbs, word, &commands::Command::name);
  return verb != verbs.end() ? &*verb : commands::find_command(word);
}

// The length of the body that a conversation reads after this line; no value: no body.
std::optional<std::uint64_t> body_after_command(std::string_view line) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const commands::Command* row = find_row(line.substr(0, space));
  if (row == nullptr || row->begin_body == nullptr) return std::nullopt;
  const std::string_view text = line.substr(std::min(space + 1, line.size()));
  protocol::BodySize size;
  if (!protocol::salvage_body_size(text, row->fields_before_size, size)) return std::nullopt;
  return size.bytes;
}

// The same after a line of a reply: the length is the second word of OK, and the third of a job.
std::optional<std::uint64_t> body_after_reply(std::string_view line) {
  const auto take_word = [&line] {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    return word;
  };
  const std::string_view word = take_word();
  if (word == "FOUND" || word == "RESERVED") {
    take_word();
  } else if (word != "OK") {
    return std::nullopt;
  }
  return parse_number<std::uint64_t>(take_word());
}

}  // namespace

void ControlInput::take(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    std::size_t taken = 0;
    switch (stage_) {
      case Stage::line:
      case Stage::long_line:
        taken = take_line(bytes, out);
        break;
      case Stage::body:
        taken = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), body_left_));
        out += bytes.substr(0, taken);
        body_left_ -= taken;
        if (body_left_ == 0) stage_ = Stage::body_end;
        break;
      case Stage::body_end:
        taken = take_body_end(bytes, out);
        break;
    }
    bytes.remove_prefix(taken);
  }
}

std::size_t ControlInput::take_line(std::string_view bytes, std::string& out) {
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  const bool whole = end < bytes.size();
  held_ += bytes.substr(0, end);
  if (!whole) {
    if (held_.size() > kMostHeld) {
      // No command is as long: the conversation skips it.
      stage_ = Stage::long_line;
      const bool ends_with_cr = held_.back() == '\r';
      if (ends_with_cr) held_.pop_back();
      out += held_;
      held_.assign(ends_with_cr ? 1 : 0, '\r');
    }
    return bytes.size();
  }
  if (held_.ends_with('\r')) held_.pop_back();
  const auto body = stage_ == Stage::line ? body_after_command(held_) : std::nullopt;
  out += held_;
  out += kCrLf;
  held_.clear();
  stage_ = Stage::line;
  if (body) {
    body_left_ = *body;
    stage_ = body_left_ > 0 ? Stage::body : Stage::body_end;
  }
  return end + 1;
}

// Without a line end after the body the conversation skips the rest of the line.
std::size_t ControlInput::take_body_end(std::string_view bytes, std::string& out) {
  const char next = bytes.front();
  if (next == '\n') {
    out += kCrLf;
    held_.clear();
    stage_ = Stage::line;
    return 1;
  }
  if (next == '\r' && held_.empty()) {
    held_ = next;
    return 1;
  }
  stage_ = Stage::long_line;
  return 0;
}

void ControlOutput::take(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    std::size_t taken = 0;
    if (body_left_ > 0) {
      taken = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), body_left_));
      out += bytes.substr(0, taken);
      body_left_ -= taken;
    } else {
      taken = take_line(bytes, out);
    }
    bytes.remove_prefix(taken);
  }
}

// The line end after a body is a line without text.
std::size_t ControlOutput::take_line(std::string_view bytes, std::string& out) {
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  held_ += bytes.substr(0, end);
  if (end == bytes.size()) return end;
  if (held_.ends_with('\r')) held_.pop_back();
  if (in_body_) {
    in_body_ = false;
  } else if (const auto body = body_after_reply(held_)) {
    in_body_ = true;
    body_left_ = *body;
  }
  out += held_;
  out += '\n';
  held_.clear();
  return end + 1;
}

}  // namespace tubed::test_mode
