#include "tubectl/reply_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "protocol/reply.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kInserted = "INSERTED ";
constexpr std::string_view kReserved = "RESERVED ";
constexpr std::size_t kMaxLineBytes = 1024;

}  // namespace

Error no_beanstalk(std::string_view line) {
  return {fmt::format("the server does not speak beanstalk: {:?}", line.substr(0, 60))};
}

Result<bool> ReplyReader::next(Reply& reply) {
  if (body_left_ == 0) {
    auto line = take_line(reply);
    if (!line || !*line || body_left_ == 0) return line;
  }
  auto body = take_body();
  if (!body || !*body) return body;
  reply = Reply{Reply::Kind::reserved, id_, kReserved.substr(0, kReserved.size() - 1),
                std::string_view(head_.data(), head_bytes_)};
  return true;
}

Result<bool> ReplyReader::take_line(Reply& reply) {
  const std::size_t end = input_.find('\n');
  if (end == input_.npos) {
    begun_.append(input_);
    input_ = {};
    if (begun_.size() > kMaxLineBytes) return no_beanstalk(begun_);
    return false;
  }
  std::string_view line = input_.substr(0, end);
  input_.remove_prefix(end + 1);
  if (!begun_.empty()) {
    line_ = begun_.append(line);
    begun_.clear();
    line = line_;
  }
  if (!line.ends_with('\r')) return no_beanstalk(line);
  line.remove_suffix(1);
  reply = Reply{Reply::Kind::other, 0, line, {}};
  if (line.starts_with(kInserted)) {
    reply.kind = Reply::Kind::inserted;
  } else if (line == protocol::word::kDeleted) {
    reply.kind = Reply::Kind::deleted;
  } else if (line.starts_with(kReserved)) {
    TRY(begin_body(line.substr(kReserved.size())));
  }
  return true;
}

Result<void> ReplyReader::begin_body(std::string_view arguments) {
  const char* const end = arguments.data() + arguments.size();
  std::uint32_t bytes = 0;
  const auto id = std::from_chars(arguments.data(), end, id_);
  if (id.ec != std::errc() || id.ptr == end || *id.ptr != ' ') return no_beanstalk(arguments);
  const auto size = std::from_chars(id.ptr + 1, end, bytes);
  if (size.ec != std::errc() || size.ptr != end) return no_beanstalk(arguments);
  body_left_ = std::uint64_t{bytes} + 2;
  head_bytes_ = 0;
  return {};
}

Result<bool> ReplyReader::take_body() {
  if (body_left_ > 2 && !input_.empty()) {
    const auto here =
        static_cast<std::size_t>(std::min<std::uint64_t>(body_left_ - 2, input_.size()));
    const std::size_t kept = std::min(here, kHeadBytes - head_bytes_);
    std::memcpy(head_.data() + head_bytes_, input_.data(), kept);
    head_bytes_ += kept;
    input_.remove_prefix(here);
    body_left_ -= here;
  }
  for (; body_left_ > 0 && body_left_ <= 2 && !input_.empty(); --body_left_) {
    if (input_.front() != (body_left_ == 2 ? '\r' : '\n')) return no_beanstalk(input_);
    input_.remove_prefix(1);
  }
  return body_left_ == 0;
}

}  // namespace tubed::tubectl
