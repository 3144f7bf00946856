#include "cluster/part.h"

#include <utility>

#include "cluster/envelope.h"

namespace tubed::cluster {

namespace {

// The place of the type in a frame: after the header and the version.
constexpr std::size_t kTypeOffset = kFrameHeaderBytes + 1;

// Visits the members of fixed size in order.
template <class Some, class Visit>
bool for_each_field(Some& part, Visit visit) {
  return visit(part.cluster) && visit(part.from) && visit(part.to) && visit(part.sent) &&
         visit(part.term) && visit(part.frame) && visit(part.offset) && visit(part.total);
}

}  // namespace

std::string encode(const Part& part) {
  FrameWriter writer(kPartType, part.bytes.size() + 80);
  for_each_field(part, [&writer](const auto& field) {
    writer.put(field);
    return true;
  });
  writer.put(static_cast<std::uint32_t>(part.bytes.size()));
  writer.append(part.bytes);
  return writer.finish();
}

bool is_part(std::string_view frame) {
  return frame.size() > kTypeOffset && static_cast<std::uint8_t>(frame[kTypeOffset]) == kPartType;
}

std::optional<Part> decode_part(std::string_view frame) {
  auto reader = FrameReader::open(frame);
  Part part;
  std::uint32_t bytes = 0;
  if (!reader || reader->type() != kPartType ||
      !for_each_field(part, [&](auto& field) { return reader->take(field); }) ||
      !reader->take(bytes) || !reader->take(part.bytes, bytes))
    return std::nullopt;
  const bool fits = part.offset < part.total && bytes > 0 && bytes <= part.total - part.offset;
  if (!fits || part.total > kMostFrameBytes + sizeof(std::uint32_t)) return std::nullopt;
  return part;
}

std::optional<std::string> PartAssembly::take(const Part& part) {
  if (part.term < term_) return std::nullopt;
  const bool continues = part.from == from_ && part.term == term_ && part.frame == frame_ &&
                         part.total == total_ && part.offset == bytes_.size();
  if (part.offset == 0) {
    from_ = part.from;
    term_ = part.term;
    frame_ = part.frame;
    total_ = part.total;
    bytes_.clear();
  } else if (!continues) {
    return std::nullopt;
  }
  bytes_.append(part.bytes);
  if (bytes_.size() < total_) return std::nullopt;
  total_ = 0;
  return std::exchange(bytes_, {});
}

}  // namespace tubed::cluster
