#include "cluster/founding.h"

#include "cluster/entry.h"
#include "cluster/membership.h"
#include "cluster/node_state.h"

namespace tubed::cluster {

namespace {

// The founders' configuration is the entry at this index and term, which no raft log holds.
constexpr Index kFoundingIndex = 1;
constexpr Term kFoundingTerm = 1;

}  // namespace

Applied founding_position(std::uint64_t cluster) {
  return {.index = kFoundingIndex,
          .term = kFoundingTerm,
          .chain = chain_after(cluster, kFoundingIndex,
                               {.term = kFoundingTerm, .type = EntryType::change, .data = {}})};
}

Result<void> found(journal::Storage& storage, const RaftLogOptions& log, NodeId node,
                   const std::vector<Member>& members, Level level) {
  const NodeState state{.cluster = log.cluster,
                        .node = node,
                        .term = kFoundingTerm,
                        .voted_for = 0,
                        .configuration = TRY(encode_members(members)),
                        .configuration_index = kFoundingIndex,
                        .level = level};
  NullRaftLogHost host;
  const auto made = TRY(RaftLog::open(storage, host, log));
  TRY(made->reset(kFoundingIndex));
  return store_node_state(storage, state);
}

}  // namespace tubed::cluster
