// IndexSet: a set of small, dense numbers, one bit each. A summary bit for every 64 of them lets an
// intersection skip the words that are zero in either set.
//
// Memory grows with the largest number inserted. Invariant: bit i of `summary_` is set exactly if
// word i of `words_` is not zero.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace tubed {

class IndexSet {
 public:
  bool contains(std::uint32_t index) const {
    const std::size_t word = index / kBits;
    return word < words_.size() && (words_[word] & bit(index)) != 0;
  }

  // O(1) amortised.
  void insert(std::uint32_t index) {
    const std::size_t word = index / kBits;
    if (word >= words_.size()) [[unlikely]]
      grow(word);
    words_[word] |= bit(index);
    summary_[word / kBits] |= bit(word);
  }

  // O(1). No effect if the number is not in the set.
  void erase(std::uint32_t index) {
    if (!contains(index)) return;
    const std::size_t word = index / kBits;
    words_[word] &= ~bit(index);
    if (words_[word] == 0) summary_[word / kBits] &= ~bit(word);
  }

  void set(std::uint32_t index, bool wanted) { wanted ? insert(index) : erase(index); }

  // The number of elements. O(largest / 64).
  std::size_t count() const {
    std::size_t bits = 0;
    for (const std::uint64_t word : words_) bits += static_cast<std::size_t>(std::popcount(word));
    return bits;
  }

  // Calls visit(index) for each number in both sets, in ascending order.
  // O(largest / 4096 + words with bits in both sets).
  template <class Visit>
  static void for_each_common(const IndexSet& one, const IndexSet& other, Visit visit) {
    const std::size_t summaries = std::min(one.summary_.size(), other.summary_.size());
    for (std::size_t i = 0; i < summaries; ++i) {
      for_each_bit(one.summary_[i] & other.summary_[i], [&](std::size_t low) {
        const std::size_t word = i * kBits + low;
        for_each_bit(one.words_[word] & other.words_[word], [&](std::size_t lowest) {
          visit(static_cast<std::uint32_t>(word * kBits + lowest));
        });
      });
    }
  }

 private:
  // Not inlined, to keep insert() short.
  [[gnu::noinline]] void grow(std::size_t word) {
    words_.resize(word + 1);
    summary_.resize(word / kBits + 1);
  }

  static constexpr std::size_t kBits = 64;

  static std::uint64_t bit(std::size_t index) { return std::uint64_t{1} << (index % kBits); }

  template <class Visit>
  static void for_each_bit(std::uint64_t word, Visit visit) {
    for (; word != 0; word &= word - 1) visit(static_cast<std::size_t>(std::countr_zero(word)));
  }

  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> summary_;
};

}  // namespace tubed
