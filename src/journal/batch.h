// Batch: the records of one commit batch, encoded, as they go to disk. It does no I/O.
//
// Small bodies are copied into it. Large bodies are referred to and kept alive, so that a body of a
// gigabyte is neither copied nor freed while it is being written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "journal/record.h"

namespace tubed::journal {

class Batch {
 public:
  // Leaves room for the header in front. `seed` is the segment's.
  explicit Batch(std::uint32_t seed);

  void add(const Fact& fact, const WallClock& clock);
  // Writes the header. The last call that changes the batch.
  void finish(const BatchHeader& header);

  // Of all records, with the header.
  std::uint64_t bytes() const { return text_.size() + referred_bytes_; }
  // The bytes to be written, in order. Valid until the batch changes or is destroyed.
  std::vector<std::string_view> pieces() const;

 private:
  struct Reference {
    std::size_t at;  // the position in text_ where it belongs
    Bytes body;
  };

  std::uint32_t seed_;
  std::string text_;
  std::vector<Reference> references_;
  std::uint64_t referred_bytes_ = 0;
};

}  // namespace tubed::journal
