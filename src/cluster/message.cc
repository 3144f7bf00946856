#include "cluster/message.h"

#include <type_traits>

#include "base/crc32c.h"
#include "journal/little_endian.h"

namespace tubed::cluster {

namespace {

using journal::load_little;
using journal::store_little;

constexpr std::uint8_t kMessageVersion = 1;

enum Flag : std::uint8_t { granted = 1, pre_vote = 2, disrupt_leader = 4 };

class Writer {
 public:
  template <class T>
  void put(T value) {
    const std::size_t at = text.size();
    text.resize(at + sizeof value);
    store_little(text.data() + at, value);
  }
  void put(Time time) { put(std::int64_t{time.time_since_epoch().count()}); }

  std::string text;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  bool take(T& value) {
    if (rest_.size() < sizeof value) return false;
    value = load_little<T>(rest_.data());
    rest_.remove_prefix(sizeof value);
    return true;
  }
  bool take(Time& time) {
    std::int64_t count = 0;
    if (!take(count)) return false;
    time = Time(Duration(count));
    return true;
  }
  bool take(std::string_view& bytes, std::size_t size) {
    if (rest_.size() < size) return false;
    bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// The members of a fixed size, in their order.
template <class Some, class Visit>
bool for_each_member(Some& message, Visit visit) {
  return visit(message.cluster) && visit(message.from) && visit(message.to) &&
         visit(message.sent) && visit(message.echo) && visit(message.time) && visit(message.term) &&
         visit(message.index) && visit(message.log_term) && visit(message.commit) &&
         visit(message.rejected);
}

}  // namespace

std::string encode(const Message& message) {
  Writer writer;
  std::size_t bytes = 128;
  for (const Entry& entry : message.entries) bytes += entry.data.size() + 16;
  writer.text.reserve(bytes);
  writer.text.resize(kFrameHeaderBytes);
  writer.put(kMessageVersion);
  writer.put(static_cast<std::uint8_t>(message.type));
  writer.put(static_cast<std::uint8_t>((message.granted ? granted : 0) |
                                       (message.pre_vote ? pre_vote : 0) |
                                       (message.disrupt_leader ? disrupt_leader : 0)));
  writer.put(std::uint8_t{0});
  writer.put(static_cast<std::uint32_t>(message.entries.size()));
  for_each_member(message, [&writer](const auto& member) {
    writer.put(member);
    return true;
  });
  for (const Entry& entry : message.entries) {
    writer.put(entry.term);
    writer.put(std::uint32_t{entry.data.size()});
    writer.put(static_cast<std::uint32_t>(entry.type));
    writer.text.append(entry.data.view());
  }
  const std::string_view payload = std::string_view(writer.text).substr(kFrameHeaderBytes);
  const std::uint32_t crc = crc32c(0, payload);
  store_little(writer.text.data(), static_cast<std::uint32_t>(payload.size() + sizeof crc));
  store_little(writer.text.data() + 4, crc);
  return std::move(writer.text);
}

std::optional<std::size_t> frame_bytes(std::string_view bytes) {
  if (bytes.size() < 4) return std::nullopt;
  const std::size_t length = load_little<std::uint32_t>(bytes.data());
  return length < 4 || length > kMostFrameBytes ? 0 : length + 4;
}

std::optional<Message> decode(std::string_view frame) {
  if (frame.size() < kFrameHeaderBytes || frame_bytes(frame) != frame.size()) return std::nullopt;
  const std::string_view payload = frame.substr(kFrameHeaderBytes);
  if (load_little<std::uint32_t>(frame.data() + 4) != crc32c(0, payload)) return std::nullopt;
  Reader reader(payload);
  Message message;
  std::uint8_t version = 0;
  std::uint8_t type = 0;
  std::uint8_t flags = 0;
  std::uint8_t zero = 0;
  std::uint32_t entries = 0;
  if (!reader.take(version) || version != kMessageVersion || !reader.take(type) ||
      !reader.take(flags) || !reader.take(zero) || !reader.take(entries)) {
    return std::nullopt;
  }
  const bool known = type >= static_cast<std::uint8_t>(MessageType::append) &&
                     type <= static_cast<std::uint8_t>(MessageType::timeout_now);
  if (!known || !for_each_member(message, [&](auto& member) { return reader.take(member); }))
    return std::nullopt;
  message.type = static_cast<MessageType>(type);
  message.granted = (flags & granted) != 0;
  message.pre_vote = (flags & pre_vote) != 0;
  message.disrupt_leader = (flags & disrupt_leader) != 0;
  for (std::uint32_t i = 0; i < entries; ++i) {
    Entry entry;
    std::uint32_t bytes = 0;
    std::uint32_t entry_type = 0;
    std::string_view data;
    if (!reader.take(entry.term) || !reader.take(bytes) || !reader.take(entry_type) ||
        !reader.take(data, bytes) || entry_type < 1 || entry_type > 3) {
      return std::nullopt;
    }
    entry.type = static_cast<EntryType>(entry_type);
    entry.data = Bytes::copy_of(data);
    message.entries.push_back(std::move(entry));
  }
  if (!reader.at_end()) return std::nullopt;
  return message;
}

}  // namespace tubed::cluster
