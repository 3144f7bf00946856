// Batch: the encoded records of one commit batch, as they are written to disk. It does no I/O.
//
// Small bodies are copied into the batch. Large bodies are referenced and kept alive, so a body of
// a gigabyte is neither copied nor freed while it is being written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "journal/record.h"

namespace tubed::journal {

class Batch {
 public:
  // Leaves room for the header at the front. `seed` is the segment's seed.
  explicit Batch(std::uint32_t seed);

  void add(const Fact& fact, const WallClock& clock);
  // Writes the header. No later call may change the batch.
  void finish(const BatchHeader& header);

  // Returns the bytes of all records, including the header.
  std::uint64_t bytes() const { return text_.size() + referred_bytes_; }
  // Returns the bytes to write, in order. Valid until the batch is changed or destroyed.
  std::vector<std::string_view> pieces() const;

 private:
  struct Reference {
    std::size_t at;  // its position in text_
    Bytes body;
  };

  std::uint32_t seed_;
  std::string text_;
  std::vector<Reference> references_;
  std::uint64_t referred_bytes_ = 0;
};

}  // namespace tubed::journal
