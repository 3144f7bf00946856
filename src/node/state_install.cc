#include "node/state_install.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cluster/node_state.h"
#include "cluster/raft_recovery.h"
#include "disk/directory_lock.h"
#include "disk/file_storage.h"
#include "journal/segment.h"
#include "node/state_directory.h"

// The steps are numbered in state_install.h.
namespace tubed::node {

using disk::DirectoryTree;
using disk::FileStorage;

namespace {

constexpr std::string_view kMarkerText =
    "A state that was fetched from another node replaces that of this node. tubed removes this\n"
    "file when that is finished.\n";

// True for a segment, complete or not.
bool is_segment(std::string_view name) {
  constexpr std::string_view kUnfinished = ".new";
  if (name.ends_with(kUnfinished)) name.remove_suffix(kUnfinished.size());
  return journal::sequence_of(name).has_value();
}

// Keeps other processes from using the directory until the result is destroyed.
Result<os::Descriptor> lock(const std::string& directory) {
  auto opened = TRY(disk::open_directory(directory));
  return disk::lock_directory(opened.number(), directory,
                              disk::owner_of_new_files(opened.number()));
}

// Returns the current state of the node. Nothing: it has no state.
Result<std::optional<cluster::NodeState>> own_state(loop::Loop& loop, const std::string& directory,
                                                    DirectoryTree& tree,
                                                    const FetchedState& fetched) {
  const bool is_node = TRY(tree.exists(kClusterFolder));
  if (!is_node) return std::optional<cluster::NodeState>();
  auto storage =
      TRY(FileStorage::open(loop, directory + "/" + kClusterFolder, FileStorage::Mode::owner));
  auto state = TRY(cluster::load_node_state(*storage));
  if (!state) return state;
  if (state->cluster != fetched.cluster) return Error{"this node belongs to another cluster"};
  auto log = TRY(cluster::examine_raft_log(*storage, state->cluster));
  if (log.last() > fetched.position.index) {
    return Error{fmt::format("the state goes to entry {}, and this node has entries up to {}",
                             fetched.position.index, log.last())};
  }
  return state;
}

// Step 1.
Result<void> store_state(const std::string& directory, const FetchedState& fetched,
                         cluster::NodeId node, DirectoryTree& tree) {
  loop::Loop loop;  // for the storages, which do nothing in the background here
  auto own = TRY(own_state(loop, directory, tree, fetched));
  if (own && own->node != node) return Error{"this is another node of the cluster"};
  cluster::NodeState state{.cluster = fetched.cluster,
                           .node = node,
                           .term = fetched.position.term,
                           .voted_for = 0,
                           .configuration = fetched.configuration,
                           .configuration_index = fetched.configuration_index,
                           .level = fetched.level};
  if (own) state.level = std::max(state.level, own->level);
  // The node's term is never lower than the term of an entry. It may have voted in its own term.
  if (own && own->term >= state.term) {
    state.term = own->term;
    state.voted_for = own->voted_for;
  }
  auto storage =
      TRY(FileStorage::open(loop, directory + "/" + kFetchCluster, FileStorage::Mode::owner));
  return cluster::store_node_state(*storage, state);
}

// Steps 3 and 4.
Result<void> remove_old(DirectoryTree& tree) {
  auto names = TRY(tree.names(""));
  for (const std::string& name : names) {
    if (is_segment(name)) TRY(tree.remove(name));
  }
  TRY(tree.remove(kClusterFolder));
  return tree.move(kCompleteMarker, kMovingMarker);
}

// Steps 5 and 6.
Result<void> move_new(DirectoryTree& tree) {
  auto names = TRY(tree.names(kFetchFolder));
  for (const std::string& name : names) {
    if (is_segment(name)) TRY(tree.move(fmt::format("{}/{}", kFetchFolder, name), name));
  }
  const bool has_cluster = TRY(tree.exists(kFetchCluster));
  if (has_cluster) TRY(tree.move(kFetchCluster, kClusterFolder));
  TRY(tree.remove(kMovingMarker));
  return tree.remove(kFetchFolder);
}

}  // namespace

Result<void> install(const std::string& directory, const FetchedState& fetched,
                     cluster::NodeId node, const DirectoryTree::Hook& before_step) {
  const auto locked = TRY(lock(directory));
  DirectoryTree tree(directory, before_step);
  TRY(store_state(directory, fetched, node, tree));
  TRY(tree.store(kCompleteMarker, kMarkerText));
  TRY(remove_old(tree));
  return move_new(tree);
}

Result<void> finish_install(const std::string& directory, const DirectoryTree::Hook& before_step) {
  DirectoryTree tree(directory, before_step);
  const bool fetched = TRY(tree.exists(kFetchFolder));
  if (!fetched) return {};
  const auto locked = TRY(lock(directory));
  const bool complete = TRY(tree.exists(kCompleteMarker));
  if (complete) TRY(remove_old(tree));
  const bool moving = TRY(tree.exists(kMovingMarker));
  return moving ? move_new(tree) : tree.remove(kFetchFolder);
}

}  // namespace tubed::node
