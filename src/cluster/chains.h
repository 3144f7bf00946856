// Chains: the chain of each entry that a node may still be asked for (chain_after(), entry.h).
#pragma once

#include <cstddef>
#include <deque>
#include <span>

#include "base/assert.h"
#include "cluster/entry.h"
#include "cluster/types.h"

namespace tubed::cluster {

class Chains {
 public:
  // Starts with the chain of everything up to this position, with no entries after it.
  void begin(const Applied& position) {
    first_ = position.index;
    chains_.assign(1, position.chain);
  }
  // Replaces all entries from `first` by these. Precondition: begin() was called for a position
  // before `first`. O(bytes).
  void replace(Index first, std::span<const Entry> entries) {
    TUBED_ASSERT(first > first_);
    chains_.resize(first - first_);
    for (Index i = first; const Entry& entry : entries)
      chains_.push_back(chain_after(chains_.back(), i++, entry));
  }
  // Drops the chains of the entries before `first`. O(their number).
  void cut(Index first) {
    while (first_ < first) {
      chains_.pop_front();
      ++first_;
    }
  }

  // Returns the chain of everything up to the last entry.
  Chain tail() const { return chains_.back(); }
  // Returns the chain of everything up to this entry. Precondition: it was neither cut nor
  // replaced.
  Chain at(Index index) const { return chains_[index - first_]; }

 private:
  std::deque<Chain> chains_;  // from entry first_; not empty
  Index first_ = 0;
};

}  // namespace tubed::cluster
