// The envelope of every frame between nodes, and the fields in it, for message.cc, control.cc and
// transfer.cc.
//
// A frame: u32 length of what follows, u32 CRC32C of the rest, and the rest, which begins with the
// version and the type. Little-endian.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/crc32c.h"
#include "base/time.h"
#include "cluster/control.h"
#include "cluster/message.h"
#include "journal/little_endian.h"

namespace tubed::cluster {

// Writes a frame: its fields in order, then finish().
class FrameWriter {
 public:
  // `bytes` is the approximate length of the frame.
  FrameWriter(std::uint8_t type, std::size_t bytes) {
    text_.reserve(bytes);
    text_.resize(kFrameHeaderBytes);
    put(kFrameVersion);
    put(type);
  }

  template <class T>
  void put(T value) {
    const std::size_t at = text_.size();
    text_.resize(at + sizeof value);
    journal::store_little(text_.data() + at, value);
  }
  void put(Time time) { put(std::int64_t{time.time_since_epoch().count()}); }
  void append(std::string_view bytes) { text_.append(bytes); }

  std::size_t bytes() const { return text_.size(); }

  // O(bytes).
  std::string finish() {
    const std::string_view payload = std::string_view(text_).substr(kFrameHeaderBytes);
    const std::uint32_t crc = crc32c(0, payload);
    journal::store_little(text_.data(), static_cast<std::uint32_t>(payload.size() + sizeof crc));
    journal::store_little(text_.data() + sizeof crc, crc);
    return std::move(text_);
  }

 private:
  std::string text_;
};

// Reads the fields of a frame in order. take() returns false if the frame has too few bytes.
class FrameReader {
 public:
  // Returns nothing if the frame is damaged, incomplete or of another version. O(bytes).
  static std::optional<FrameReader> open(std::string_view frame) {
    if (frame.size() < kFrameHeaderBytes || frame_bytes(frame) != frame.size()) return std::nullopt;
    FrameReader reader(frame.substr(kFrameHeaderBytes));
    const auto crc = journal::load_little<std::uint32_t>(frame.data() + sizeof(std::uint32_t));
    std::uint8_t version = 0;
    if (crc != crc32c(0, reader.rest_) || !reader.take(version) || version != kFrameVersion)
      return std::nullopt;
    if (!reader.take(reader.type_)) return std::nullopt;
    return reader;
  }

  std::uint8_t type() const { return type_; }

  template <class T>
  bool take(T& value) {
    if (rest_.size() < sizeof value) return false;
    value = journal::load_little<T>(rest_.data());
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
  explicit FrameReader(std::string_view bytes) : rest_(bytes) {}

  std::string_view rest_;
  std::uint8_t type_ = 0;
};

// Writes a text of at most kMostControlText bytes, preceded by its length.
inline void put_text(FrameWriter& writer, std::string_view text) {
  writer.put(static_cast<std::uint32_t>(text.size()));
  writer.append(text);
}
inline bool take_text(FrameReader& reader, std::string& text) {
  std::uint32_t bytes = 0;
  std::string_view taken;
  if (!reader.take(bytes) || bytes > kMostControlText || !reader.take(taken, bytes)) return false;
  text = taken;
  return true;
}

}  // namespace tubed::cluster
