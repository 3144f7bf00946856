#include "cluster/message.h"

#include <algorithm>

#include <fmt/format.h>

#include "cluster/envelope.h"

namespace tubed::cluster {

namespace {

enum Flag : std::uint8_t { granted = 1, pre_vote = 2, disrupt_leader = 4, full = 8 };

// Visits the members of fixed size in order.
template <class Some, class Visit>
bool for_each_member(Some& message, Visit visit) {
  return visit(message.cluster) && visit(message.from) && visit(message.to) &&
         visit(message.sent) && visit(message.echo) && visit(message.time) && visit(message.term) &&
         visit(message.index) && visit(message.log_term) && visit(message.commit) &&
         visit(message.rejected);
}

}  // namespace

std::string encode(const Message& message) {
  std::size_t bytes = 128;
  for (const Entry& entry : message.entries) bytes += entry.data.size() + 16;
  FrameWriter writer(static_cast<std::uint8_t>(message.type), bytes);
  writer.put(static_cast<std::uint8_t>(
      (message.granted ? granted : 0) | (message.pre_vote ? pre_vote : 0) |
      (message.disrupt_leader ? disrupt_leader : 0) | (message.full ? full : 0)));
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
    writer.append(entry.data.view());
  }
  return writer.finish();
}

std::optional<std::size_t> frame_bytes(std::string_view bytes) {
  if (bytes.size() < 4) return std::nullopt;
  const std::size_t length = journal::load_little<std::uint32_t>(bytes.data());
  return length < 4 || length > kMostFrameBytes ? 0 : length + 4;
}

std::optional<Message> decode(std::string_view frame) {
  auto reader = FrameReader::open(frame);
  if (!reader) return std::nullopt;
  const bool known = reader->type() >= static_cast<std::uint8_t>(MessageType::append) &&
                     reader->type() <= static_cast<std::uint8_t>(MessageType::timeout_now);
  Message message;
  std::uint8_t flags = 0;
  std::uint8_t zero = 0;
  std::uint32_t entries = 0;
  if (!known || !reader->take(flags) || !reader->take(zero) || !reader->take(entries) ||
      !for_each_member(message, [&](auto& member) { return reader->take(member); })) {
    return std::nullopt;
  }
  message.type = static_cast<MessageType>(reader->type());
  message.granted = (flags & granted) != 0;
  message.pre_vote = (flags & pre_vote) != 0;
  message.disrupt_leader = (flags & disrupt_leader) != 0;
  message.full = (flags & full) != 0;
  for (std::uint32_t i = 0; i < entries; ++i) {
    Entry entry;
    std::uint32_t bytes = 0;
    std::uint32_t entry_type = 0;
    std::string_view data;
    if (!reader->take(entry.term) || !reader->take(bytes) || !reader->take(entry_type) ||
        !reader->take(data, bytes) || entry_type < 1 || entry_type > 3) {
      return std::nullopt;
    }
    entry.type = static_cast<EntryType>(entry_type);
    entry.data = Bytes::copy_of(data);
    message.entries.push_back(std::move(entry));
  }
  return message;
}

std::string_view fault_of(const Message& message) {
  const auto positions = {message.term, message.index, message.log_term, message.commit,
                          message.rejected};
  if (std::ranges::any_of(positions, [](std::uint64_t one) { return one > kMostPosition; }))
    return "a term or an index is beyond reason";
  if (message.from == 0 || message.from == message.to) return "it has no sender";
  if (message.term == 0) return "it has no term";
  if (message.log_term > message.term) return "an entry has a later term than the message";
  const bool is_append = message.type == MessageType::append;
  if (!is_append && !message.entries.empty()) return "only an append has entries";
  if (is_append && (message.index == 0) != (message.log_term == 0))
    return "an index and its term do not fit";
  Term last = std::max(message.log_term, Term{1});
  for (const Entry& entry : message.entries) {
    if (entry.term < last || entry.term > message.term)
      return "the terms of its entries do not fit";
    last = entry.term;
  }
  return {};
}

std::optional<std::uint8_t> later_version(std::string_view frame) {
  if (frame.size() <= kFrameHeaderBytes) return std::nullopt;
  const auto version = static_cast<std::uint8_t>(frame[kFrameHeaderBytes]);
  if (version <= kFrameVersion) return std::nullopt;
  const auto crc = journal::load_little<std::uint32_t>(frame.data() + sizeof(std::uint32_t));
  if (crc != crc32c(0, frame.substr(kFrameHeaderBytes))) return std::nullopt;
  return version;
}

std::string later_version_text(std::uint8_t version) {
  return fmt::format(
      "the other node speaks version {} of the protocol between nodes, and this node only version "
      "{}: upgrade this node",
      version, kFrameVersion);
}

}  // namespace tubed::cluster
