#include "journal/format.h"

#include <algorithm>
#include <array>

#include "base/assert.h"

namespace tubed::journal {

namespace {

constexpr std::array kFormats = {
    Format{.version = 1,
           .batch_header_bytes = kBatchHeaderBytes,
           .parse = parse_record<1>,
           .may_be_batch_header = looks_like_batch_header},
    Format{.version = 2,
           .batch_header_bytes = kBatchHeaderBytes,
           .parse = parse_record<2>,
           .may_be_batch_header = looks_like_batch_header},
    Format{.version = 3,
           .batch_header_bytes = kBatchHeaderBytes,
           .parse = parse_record<3>,
           .may_be_batch_header = looks_like_batch_header},
};

}  // namespace

const Format* find_format(std::uint32_t version) {
  const auto* const found = std::ranges::find(kFormats, version, &Format::version);
  return found == kFormats.end() ? nullptr : found;
}

const Format& last_format() {
  const Format* const format = find_format(kLastVersion);
  TUBED_ASSERT(format != nullptr);
  return *format;
}

}  // namespace tubed::journal
