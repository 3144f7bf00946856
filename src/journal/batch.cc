#include "journal/batch.h"

namespace tubed::journal {

namespace {

// From this size, copying costs more than another piece in the write.
constexpr std::size_t kReferFrom = 16 * 1024;

}  // namespace

Batch::Batch(std::uint32_t seed) : seed_(seed), text_(kBatchHeaderBytes, '\0') {}

void Batch::add(const Fact& fact, const WallClock& clock) {
  const auto at = append_record(text_, seed_, fact, clock, kReferFrom);
  if (!at) return;
  const Bytes& body = added_in(fact)->body;
  references_.push_back({*at, body});
  referred_bytes_ += body.size();
}

void Batch::finish(const BatchHeader& header) {
  write_batch_header({text_.data(), kBatchHeaderBytes}, seed_, header);
}

std::vector<std::string_view> Batch::pieces() const {
  std::vector<std::string_view> pieces;
  const std::string_view text = text_;
  std::size_t begin = 0;
  for (const Reference& reference : references_) {
    pieces.push_back(text.substr(begin, reference.at - begin));
    pieces.push_back(reference.body.view());
    begin = reference.at;
  }
  pieces.push_back(text.substr(begin));
  return pieces;
}

}  // namespace tubed::journal
