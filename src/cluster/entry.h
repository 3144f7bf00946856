// Entries of facts, which a leader replicates, as bytes.
//
// An entry holds the facts of one or more ticks: a header, then records of the journal's last
// format (journal/record.h) with a seed of their own. Times are cluster times (cluster_clock.h), so
// every node has the same bytes. The first entry of a term has no facts: once it is applied, its
// leader has everything that was ever acknowledged.
//
// The chain is a hash over all entries from the first. A header carries the chain of everything
// before it: a node whose log differs stops instead of diverging.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "cluster/levels.h"
#include "cluster/types.h"
#include "facts/fact.h"

namespace tubed::cluster {

using Chain = std::uint64_t;

struct EntryHeader {
  std::uint16_t version = 1;  // of this layout
  Level level = kFirstLevel;  // that a reader must know
  std::uint32_t facts = 0;
  JobId next_job_id = 0;  // only smaller ids were used up to the end of the entry
  Time time = {};         // of the cluster, when the entry was made
  Chain chain = 0;        // of the entries before
  NodeId leader = 0;

  friend bool operator==(const EntryHeader&, const EntryHeader&) = default;
};

inline constexpr std::size_t kEntryHeaderBytes = 48;

// Collects the facts of one entry.
class EntryWriter {
 public:
  EntryWriter();

  // O(bytes of the fact).
  void add(const Fact& fact);

  std::uint32_t facts() const { return facts_; }
  // Returns the size of the entry so far.
  std::size_t bytes() const { return text_.size(); }
  // Returns the entry and begins the next. Sets `header.facts` and `header.next_job_id`.
  Bytes finish(EntryHeader header);
  // The next id must not be below `next`.
  void use_ids_below(JobId next) { next_job_id_ = std::max(next_job_id_, next); }

 private:
  std::string text_;
  std::uint32_t facts_ = 0;
  JobId next_job_id_ = 1;
};

// Returns nothing if the bytes are not an entry that a program with this level can read.
std::optional<EntryHeader> read_entry_header(std::string_view entry, Level known = kFeatureLevel);
// Returns the level of an entry that read_entry_header() may refuse; 0: it has no header.
Level level_of_entry(std::string_view entry);
// Passes the facts of an entry to `sink` in order; their texts point into `entry`. Returns false if
// a record is incomplete or the number of facts differs; some facts may have been passed. O(bytes).
bool read_facts(std::string_view entry, FactSink& sink, Level known = kFeatureLevel);
// Returns the bytes that the facts of the entry take in the journal, without the batch header.
inline std::size_t fact_bytes(std::string_view entry) {
  return entry.size() - kEntryHeaderBytes;
}

// Returns the chain after an entry. O(bytes).
Chain chain_after(Chain before, Index index, const Entry& entry);

}  // namespace tubed::cluster
