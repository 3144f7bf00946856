#include "cluster/kept_entries.h"

#include <algorithm>

namespace tubed::cluster {

Index KeptEntries::newest(Index position) const {
  const Index oldest = log_.first();
  Index first = position > options_.kept_entries ? position - options_.kept_entries + 1 : 1;
  first = std::max(first, oldest);
  for (Index last = position; first < last;) {
    const Index middle = first + (last - first) / 2;
    if (log_.bytes_of(middle, position) > options_.kept_bytes) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

Index KeptEntries::first(Index position, Index acknowledged) const {
  Index first = newest(position);
  // Entries after `acknowledged` are sent with its term.
  if (!log_.exceeds_bound()) first = std::min({first, pinned_, acknowledged});
  return std::max(first, log_.first());
}

bool KeptEntries::is_worth_cutting(Index position) const {
  return position >= cut_ + std::max<Index>(options_.kept_entries / 8, 1) ||
         (position > cut_ && log_.bytes_of(cut_ + 1, position) >= options_.kept_bytes / 8);
}

}  // namespace tubed::cluster
