#include "cluster/transfer.h"

#include <utility>

#include "base/overloaded.h"
#include "cluster/control.h"
#include "cluster/envelope.h"

namespace tubed::cluster {

namespace {

enum TransferType : std::uint8_t {
  file = kFirstTransferType,
  block,
  removal,
  end,
  alive,
  position,
  log,
  entries,
  done,
  failure,
};

// The most bytes of a frame without texts and entries.
constexpr std::size_t kFixedBytes = 64;
constexpr std::size_t kEntryFixedBytes = 16;

std::string empty_frame(TransferType type) {
  return FrameWriter(type, kFixedBytes).finish();
}

std::string text_frame(TransferType type, std::string_view text) {
  FrameWriter writer(type, kFixedBytes + text.size());
  put_text(writer, text);
  return writer.finish();
}

std::string encode_log(const TransferLog& frame) {
  FrameWriter writer(log, kFixedBytes + frame.configuration.size());
  writer.put(frame.first);
  writer.put(frame.configuration_index);
  put_text(writer, frame.configuration);
  if (frame.level > kFirstLevel) writer.put(frame.level);
  return writer.finish();
}

std::string encode_entries(const TransferEntries& frame) {
  std::size_t bytes = kFixedBytes;
  for (const Entry& entry : frame.entries) bytes += kEntryFixedBytes + entry.data.size();
  FrameWriter writer(entries, bytes);
  writer.put(frame.first);
  writer.put(static_cast<std::uint32_t>(frame.entries.size()));
  for (const Entry& entry : frame.entries) {
    writer.put(entry.term);
    writer.put(std::uint32_t{entry.data.size()});
    writer.put(static_cast<std::uint32_t>(entry.type));
    writer.append(entry.data.view());
  }
  return writer.finish();
}

bool take_entry(FrameReader& reader, Entry& entry) {
  std::uint32_t bytes = 0;
  std::uint32_t type = 0;
  std::string_view data;
  if (!reader.take(entry.term) || entry.term == 0 || !reader.take(bytes) || !reader.take(type) ||
      type < 1 || type > 3 || !reader.take(data, bytes)) {
    return false;
  }
  entry.type = static_cast<EntryType>(type);
  entry.data = Bytes::copy_of(data);
  return true;
}

bool take(FrameReader& reader, TransferEntries& frame) {
  std::uint32_t count = 0;
  if (!reader.take(frame.first) || frame.first == 0 || !reader.take(count)) return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!take_entry(reader, frame.entries.emplace_back())) return false;
  }
  return true;
}

bool take(FrameReader& reader, TransferFile& frame) {
  return reader.take(frame.bytes) && take_text(reader, frame.name);
}
bool take(FrameReader& reader, TransferRemoval& frame) {
  return take_text(reader, frame.name);
}
bool take(FrameReader& reader, TransferEnd& frame) {
  return reader.take(frame.files) && reader.take(frame.bytes);
}
bool take(FrameReader& reader, TransferPosition& frame) {
  Applied& applied = frame.position;
  return reader.take(applied.index) && reader.take(applied.term) && reader.take(applied.chain);
}
bool take(FrameReader& reader, TransferLog& frame) {
  return reader.take(frame.first) && frame.first > 0 && reader.take(frame.configuration_index) &&
         take_text(reader, frame.configuration) && (reader.at_end() || reader.take(frame.level));
}
bool take(FrameReader& reader, TransferFailure& frame) {
  return take_text(reader, frame.reason);
}

template <class Frame>
std::optional<TransferFrame> taken(FrameReader& reader) {
  Frame frame;
  if (!take(reader, frame)) return std::nullopt;
  return frame;
}

// `bytes` is the length after the version and the type.
std::optional<TransferFrame> take_frame(FrameReader& reader, std::size_t bytes) {
  switch (reader.type()) {
    case file:
      return taken<TransferFile>(reader);
    case block: {
      TransferBlock frame;
      if (bytes == 0 || !reader.take(frame.bytes, bytes)) return std::nullopt;
      return frame;
    }
    case removal:
      return taken<TransferRemoval>(reader);
    case end:
      return taken<TransferEnd>(reader);
    case alive:
      return TransferAlive{};
    case position:
      return taken<TransferPosition>(reader);
    case log:
      return taken<TransferLog>(reader);
    case entries:
      return taken<TransferEntries>(reader);
    case done:
      return TransferDone{};
    case failure:
      return taken<TransferFailure>(reader);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string encode(const TransferFrame& frame) {
  return std::visit(
      Overloaded{[](const TransferFile& value) {
                   FrameWriter writer(file, kFixedBytes + value.name.size());
                   writer.put(value.bytes);
                   put_text(writer, value.name);
                   return writer.finish();
                 },
                 [](const TransferBlock& value) {
                   FrameWriter writer(block, kFixedBytes + value.bytes.size());
                   writer.append(value.bytes);
                   return writer.finish();
                 },
                 [](const TransferRemoval& value) { return text_frame(removal, value.name); },
                 [](const TransferEnd& value) {
                   FrameWriter writer(end, kFixedBytes);
                   writer.put(value.files);
                   writer.put(value.bytes);
                   return writer.finish();
                 },
                 [](const TransferAlive& /*value*/) { return empty_frame(alive); },
                 [](const TransferPosition& value) {
                   FrameWriter writer(position, kFixedBytes);
                   writer.put(value.position.index);
                   writer.put(value.position.term);
                   writer.put(value.position.chain);
                   return writer.finish();
                 },
                 [](const TransferLog& value) { return encode_log(value); },
                 [](const TransferEntries& value) { return encode_entries(value); },
                 [](const TransferDone& /*value*/) { return empty_frame(done); },
                 [](const TransferFailure& value) { return text_frame(failure, value.reason); }},
      frame);
}

std::optional<TransferFrame> decode_transfer(std::string_view frame) {
  auto reader = FrameReader::open(frame);
  if (!reader) return std::nullopt;
  constexpr std::size_t kBegin = kFrameHeaderBytes + 2;  // offset of the members
  auto value = take_frame(*reader, frame.size() - kBegin);
  if (!reader->at_end()) return std::nullopt;
  return value;
}

}  // namespace tubed::cluster
