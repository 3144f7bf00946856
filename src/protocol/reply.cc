// text_ and splices_ together are the stream of bytes: the body of a splice comes before the text
// at its offset. text_taken_, splices_taken_ and body_taken_ say how much of each was sent. An
// empty buffer starts again at 0 (clear()); in a buffer that is never empty, drop_taken() removes
// the sent part.
#include "protocol/reply.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace tubed::protocol {

namespace {

constexpr std::string_view kLineEnd = "\r\n";
// The first line of a block whose length is not known yet, with its usual number of digits.
constexpr std::string_view kBlockLine = "OK 0000\r\n";
constexpr std::string_view kBlockDigits = "0000";
// Copying a smaller body is cheaper than sending it as a piece of its own.
constexpr std::size_t kSpliceFromBytes = 2048;
// The capacity that an idle connection keeps.
constexpr std::size_t kKeptCapacity = 4096;
constexpr std::size_t kKeptSplices = 32;

// A short line, composed on the stack: appending once is cheaper than several times.
class ShortLine {
 public:
  static constexpr std::size_t kMaxWordBytes = 32;

  // Precondition: it has at most kMaxWordBytes bytes.
  explicit ShortLine(std::string_view word) {
    TUBED_ASSERT(word.size() <= kMaxWordBytes);
    std::memcpy(text_, word.data(), word.size());
    end_ += word.size();
  }

  ShortLine& number(std::uint64_t number) {
    *end_++ = ' ';
    end_ = std::to_chars(end_, end_ + kMaxDigits, number).ptr;
    return *this;
  }
  std::string_view finish() {
    *end_++ = '\r';
    *end_++ = '\n';
    return {text_, static_cast<std::size_t>(end_ - text_)};
  }

 private:
  static constexpr std::size_t kMaxDigits = 20;
  char text_[kMaxWordBytes + 2 * (1 + kMaxDigits) + 2];
  char* end_ = text_;
};

}  // namespace

void ReplyBuffer::text(std::string_view text) {
  text_.append(text);
  size_ += text.size();
}

void ReplyBuffer::body(const Bytes& body) {
  if (body.size() < kSpliceFromBytes) return text(body.view());
  splices_.push_back({text_.size(), body});
  size_ += body.size();
}

void ReplyBuffer::line(std::string_view word) {
  text(word);
  text(kLineEnd);
}

void ReplyBuffer::line(std::string_view word, std::uint64_t value) {
  text(ShortLine(word).number(value).finish());
}

void ReplyBuffer::line(std::string_view word, std::string_view value) {
  text(word);
  text(" ");
  text(value);
  text(kLineEnd);
}

void ReplyBuffer::job(std::string_view word, JobId id, const Bytes& bytes) {
  text(ShortLine(word).number(id).number(bytes.size()).finish());
  body(bytes);
  text(kLineEnd);
}

void ReplyBuffer::job(std::string_view word, JobId id, const Bytes& bytes, std::string_view tube) {
  ShortLine line(word);
  const std::string_view begin = line.number(id).number(bytes.size()).finish();
  text(begin.substr(0, begin.size() - kLineEnd.size()));
  text(" ");
  text(tube);
  text(kLineEnd);
  body(bytes);
  text(kLineEnd);
}

std::size_t ReplyBuffer::begin_text_block() {
  text_.append(kBlockLine);
  return text_.size();
}

// The block moves if its length has another number of digits.
void ReplyBuffer::end_text_block(std::size_t begin) {
  const std::size_t bytes = text_.size() - begin;
  const std::size_t line_begin = begin - kBlockLine.size();
  const std::string digits = std::to_string(bytes);
  text_.replace(line_begin + kBlockLine.find(kBlockDigits), kBlockDigits.size(), digits);
  text_.append(kLineEnd);
  size_ += text_.size() - line_begin;
}

std::size_t ReplyBuffer::pieces(std::span<std::string_view> pieces) const {
  std::size_t count = 0;
  std::size_t text_at = text_taken_;
  std::size_t body_at = body_taken_;
  for (std::size_t i = splices_taken_; count < pieces.size(); ++i) {
    const bool more = i < splices_.size();
    const std::size_t text_end = more ? splices_[i].offset : text_.size();
    if (text_end > text_at) {
      pieces[count++] = std::string_view(text_).substr(text_at, text_end - text_at);
      text_at = text_end;
    }
    if (!more) break;
    if (count < pieces.size()) pieces[count++] = splices_[i].body.view().substr(body_at);
    body_at = 0;
  }
  return count;
}

std::string_view ReplyBuffer::front() const {
  if (splices_.empty()) return std::string_view(text_).substr(text_taken_);
  std::string_view first;
  pieces({&first, 1});
  return first;
}

void ReplyBuffer::take(std::size_t count) {
  TUBED_ASSERT(count <= size_);
  size_ -= count;
  if (size_ == 0) return clear();
  while (count > 0) {
    const bool more = splices_taken_ < splices_.size();
    const std::size_t text_end = more ? splices_[splices_taken_].offset : text_.size();
    const std::size_t of_text = std::min(count, text_end - text_taken_);
    text_taken_ += of_text;
    count -= of_text;
    if (!more || count == 0) continue;
    Bytes& body = splices_[splices_taken_].body;
    const std::size_t of_body = std::min<std::size_t>(count, body.size() - body_taken_);
    body_taken_ += of_body;
    count -= of_body;
    if (body_taken_ == body.size()) {
      body = Bytes();
      body_taken_ = 0;
      ++splices_taken_;
    }
  }
  drop_taken();
}

// A client that always lags a little never empties the buffer, so the sent part must be removed
// meanwhile. It is removed when it is half of the buffer: each byte is then moved once on average.
void ReplyBuffer::drop_taken() {
  const bool much_text = text_taken_ >= kKeptCapacity && text_taken_ >= text_.size() / 2;
  const bool many_bodies = splices_taken_ >= kKeptSplices && splices_taken_ >= splices_.size() / 2;
  if (!much_text && !many_bodies) return;
  text_.erase(0, text_taken_);
  splices_.erase(splices_.begin(), splices_.begin() + static_cast<std::ptrdiff_t>(splices_taken_));
  for (Splice& splice : splices_) splice.offset -= text_taken_;
  text_taken_ = splices_taken_ = 0;
}

void ReplyBuffer::clear() {
  text_.clear();
  if (text_.capacity() > kKeptCapacity) text_.shrink_to_fit();
  splices_.clear();
  if (splices_.capacity() > kKeptSplices) splices_.shrink_to_fit();
  text_taken_ = splices_taken_ = body_taken_ = 0;
}

}  // namespace tubed::protocol
