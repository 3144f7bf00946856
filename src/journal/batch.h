// Batch: one batch of records on its way to disk. It does no I/O.
//
// Small bodies are copied into it; large ones are kept alive and referred to, so that a body of a
// gigabyte is neither copied nor freed while it is being written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "journal/record.h"

namespace tubed::journal {

class Batch {
 public:
  // With room for its batch's record in front. `seed` is the segment's.
  explicit Batch(std::uint32_t seed);

  void add(const Fact& fact, const WallClock& clock);
  // Writes the batch's record; to be called last.
  void finish(const BatchHeader& batch);

  // Of all records, the batch's too.
  std::uint64_t bytes() const { return text_.size() + referred_bytes_; }
  // What is to be written, in order. Valid until the batch changes or goes.
  std::vector<std::string_view> pieces() const;

 private:
  struct Reference {
    std::size_t at;  // its place in text_
    Bytes body;
  };

  std::uint32_t seed_;
  std::string text_;
  std::vector<Reference> references_;
  std::uint64_t referred_bytes_ = 0;
};

}  // namespace tubed::journal
