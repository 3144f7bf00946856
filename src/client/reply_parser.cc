#include "client/reply_parser.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "text/numbers.h"

namespace tubed::client {
namespace {

constexpr std::string_view kCrLf = "\r\n";
constexpr std::string_view kTlsAlert = "\x15\x03";
// The line of a reply is a word and a few numbers, or USING and the name of a tube.
constexpr std::size_t kMaxLineBytes = 1024;

bool is_printable(std::string_view line) {
  return std::ranges::all_of(line, [](char c) { return c >= ' ' && c <= '~'; });
}

// The number of numbers after a word that announces a body: 2 for an id and the length, 1 for the
// length. 0: replies with this word have no body.
std::size_t numbers_before_body(std::string_view word) {
  if (word == "RESERVED" || word == "FOUND") return 2;
  return word == "OK" ? 1 : 0;
}

// Removes a space and a number from the start of `text`. No value: `text` does not start with them.
std::optional<std::uint64_t> take_field(std::string_view& text) {
  if (!text.starts_with(' ')) return std::nullopt;
  text.remove_prefix(1);
  return take_number<std::uint64_t>(text);
}

}  // namespace

// A TLS server answers plain text with an alert: a record of type 21 and a version 3.x.
Error not_beanstalk(std::string_view line) {
  if (line.starts_with(kTlsAlert)) return {"the server speaks TLS: use --tls"};
  return {fmt::format("the server does not speak beanstalk: {:?}", line.substr(0, 60))};
}

std::uint64_t ReplyView::number() const {
  const auto space = line.find(' ');
  if (space == line.npos) return 0;
  return leading_number<std::uint64_t>(line.substr(space + 1));
}

Result<bool> ReplyParser::next(std::string_view& input, ReplyView& reply) {
  if (remaining_ == 0) {
    reply = {};
    const bool whole_line = TRY(take_line(input, reply.line));
    if (!whole_line) return false;
    TRY(begin_body(reply.line));
    if (remaining_ == 0) return true;
    const std::uint64_t body_bytes = remaining_ - kCrLf.size();
    if (input.size() >= remaining_) {
      // A wrong length would assign every later reply to another command.
      if (input.substr(body_bytes, kCrLf.size()) != kCrLf) return not_beanstalk(reply.line);
      reply.body = input.substr(0, std::min<std::uint64_t>(body_bytes, limits_.max_kept_bytes));
      input.remove_prefix(remaining_);
      remaining_ = 0;
      return true;
    }
    if (reply.line.data() == line_.data()) {
      line_.resize(reply.line.size());
    } else {
      line_.assign(reply.line);
    }
    body_.clear();
  }
  const bool whole_body = TRY(collect_body(input));
  if (!whole_body) return false;
  reply = {line_, body_};
  return true;
}

Reply ReplyParser::own(const ReplyView& reply) {
  Reply owned{std::string(reply.line), {}};
  if (!reply.body.empty() && reply.body.data() == body_.data()) {
    owned.body = std::move(body_);
    body_.clear();
  } else {
    owned.body = reply.body;
  }
  return owned;
}

Result<bool> ReplyParser::take_line(std::string_view& input, std::string_view& line) {
  if (!line_is_partial_) {
    line_.clear();
    line_is_partial_ = true;
  }
  const std::size_t end = input.find('\n');
  if (end == input.npos) {
    line_.append(input);
    input = {};
    if (line_.size() > kMaxLineBytes || line_.starts_with(kTlsAlert)) return not_beanstalk(line_);
    return false;
  }
  line = input.substr(0, end);
  input.remove_prefix(end + 1);
  if (!line_.empty()) line = line_.append(line);
  line_is_partial_ = false;
  if (!line.ends_with('\r')) return not_beanstalk(line);
  line.remove_suffix(1);
  if (!is_printable(line)) return not_beanstalk(line);
  return true;
}

Result<void> ReplyParser::begin_body(std::string_view line) {
  const std::string_view word = ReplyView{line, {}}.word();
  const std::size_t numbers = numbers_before_body(word);
  if (numbers == 0 || (expects_bare_ok_ && line == word)) return {};
  std::string_view rest = line.substr(word.size());
  std::optional<std::uint64_t> bytes;
  for (std::size_t i = 0; i < numbers; ++i) {
    bytes = take_field(rest);
    if (!bytes) return not_beanstalk(line);
  }
  if (!rest.empty()) return not_beanstalk(line);
  if (*bytes > limits_.max_body_bytes) {
    return Error{fmt::format("the server announces a reply of {} bytes; --max-reply is {}", *bytes,
                             limits_.max_body_bytes)};
  }
  remaining_ = *bytes + kCrLf.size();
  return {};
}

Result<bool> ReplyParser::collect_body(std::string_view& input) {
  if (remaining_ > kCrLf.size()) {
    const auto here = std::min<std::uint64_t>(remaining_ - kCrLf.size(), input.size());
    body_.append(
        input.substr(0, std::min<std::uint64_t>(here, limits_.max_kept_bytes - body_.size())));
    input.remove_prefix(here);
    remaining_ -= here;
  }
  for (; remaining_ > 0 && remaining_ <= kCrLf.size() && !input.empty(); --remaining_) {
    if (input.front() != kCrLf[kCrLf.size() - remaining_]) return not_beanstalk(line_);
    input.remove_prefix(1);
  }
  return remaining_ == 0;
}

}  // namespace tubed::client
