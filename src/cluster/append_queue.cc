#include "cluster/append_queue.h"

#include <algorithm>
#include <utility>

namespace tubed::cluster {

namespace {

// An append has about this many bytes of fields, and each of its entries this many.
constexpr std::size_t kAppendBytes = 128;
constexpr std::size_t kAppendedEntryBytes = 16;

double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::size_t bytes_of(const Message& append) {
  std::size_t bytes = kAppendBytes;
  for (const Entry& entry : append.entries) bytes += kAppendedEntryBytes + entry.data.size();
  return bytes;
}

}  // namespace

void AppendQueue::add(Message append) {
  waiting_.push_back(std::move(append));
}

Time AppendQueue::stamp(Time now) {
  stamp_ = std::max(now, stamp_ + Duration(1));
  return stamp_;
}

void AppendQueue::drop() {
  waiting_.clear();
  encoded_.clear();
  offset_ = 0;
  under_way_.clear();
  bytes_ = 0;
}

std::uint64_t AppendQueue::part_bytes() const {
  const double bytes = rate_ * seconds_of(options_.election_timeout / 20);
  const double most = options_.part_bytes;
  return static_cast<std::uint64_t>(std::clamp(bytes, std::max(most / 8, 1.0), most));
}

// While the rate is unknown, two parts are enough to learn it.
std::uint64_t AppendQueue::window() const {
  if (rate_ == 0) return 2 * part_bytes();
  const auto bytes = static_cast<std::uint64_t>(rate_ * seconds_of(options_.election_timeout / 4));
  return std::max(bytes, part_bytes());
}

std::optional<std::string> AppendQueue::next(Time now) {
  if (!waits()) return std::nullopt;
  const bool cuts = offset_ < encoded_.size();
  const std::uint64_t most = part_bytes();
  const std::uint64_t rest = cuts ? encoded_.size() - offset_ : bytes_of(waiting_.front());
  const std::uint64_t bytes = std::min(rest, most);
  if (!under_way_.empty() && bytes_ + bytes > window()) {
    under_way_.back().filled = true;
    return std::nullopt;
  }
  if (under_way_.empty()) progress_ = now;
  Sent sent{.stamp = stamp(now), .begun = now};
  std::string frame;
  if (!cuts && rest <= most) {
    waiting_.front().sent = sent.stamp;
    frame = encode(waiting_.front());
    waiting_.pop_front();
    sent.ends = true;
  } else {
    if (!cuts) begin_append(now);
    part_.sent = sent.stamp;
    part_.offset = static_cast<std::uint32_t>(offset_);
    part_.bytes = std::string_view(encoded_).substr(offset_, bytes);
    frame = encode(part_);
    offset_ += part_.bytes.size();
    sent.begun = begun_;
    sent.ends = offset_ == encoded_.size();
    if (sent.ends) {
      encoded_ = {};
      offset_ = 0;
    }
  }
  sent.bytes = frame.size();
  bytes_ += sent.bytes;
  sent.total = bytes_;
  under_way_.push_back(sent);
  return frame;
}

void AppendQueue::begin_append(Time now) {
  const Message& append = waiting_.front();
  encoded_ = encode(append);
  offset_ = 0;
  begun_ = now;
  part_.cluster = append.cluster;
  part_.from = append.from;
  part_.to = append.to;
  part_.term = append.term;
  ++part_.frame;
  part_.total = static_cast<std::uint32_t>(encoded_.size());
  waiting_.pop_front();
}

void AppendQueue::acknowledge(Time stamp, Time now) {
  std::optional<Sent> newest;
  for (; !under_way_.empty() && under_way_.front().stamp <= stamp; under_way_.pop_front()) {
    newest = under_way_.front();
    bytes_ -= newest->bytes;
    const Duration took = now - newest->begun;
    if (!newest->ends || took <= options_.election_timeout / 2) continue;
    ++slow_.count;
    slow_.longest = std::max(slow_.longest, took);
  }
  if (!newest) return;
  progress_ = now;
  learn(*newest, now);
}

// A link that was not waited for may be faster than the bytes under way show.
void AppendQueue::learn(const Sent& newest, Time now) {
  if (newest.total < options_.part_bytes / 8) return;
  const double seconds = std::max(seconds_of(now - newest.stamp), 1e-6);
  const double rate = static_cast<double>(newest.total) / seconds;
  if (rate_ == 0) {
    rate_ = rate;
  } else if (newest.filled || rate > rate_) {
    rate_ = (rate_ + rate) / 2;
  }
}

AppendQueue::Slow AppendQueue::take_slow() {
  return std::exchange(slow_, {});
}

}  // namespace tubed::cluster
