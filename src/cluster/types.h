// Basic types of a replicated log: positions, terms, nodes and entries.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace tubed::cluster {

// The position of an entry in the replicated log. The first entry has 1; 0 precedes all entries.
using Index = std::uint64_t;
inline constexpr Index kMostIndex = UINT64_MAX;
// The number of a term of leadership. 0: none.
using Term = std::uint64_t;
// The number of a node in its cluster. 0: none.
using NodeId = std::uint64_t;

// The values are the Raft library's.
enum class EntryType : std::uint8_t {
  facts = 1,    // emitted by the leader's engine
  barrier = 2,  // no data: commits the entries before it
  change = 3,   // another set of members
};

struct Entry {
  Term term = 0;
  EntryType type = EntryType::facts;
  Bytes data;
};

}  // namespace tubed::cluster
