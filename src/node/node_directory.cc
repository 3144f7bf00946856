#include "node/node_directory.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "disk/directory_tree.h"
#include "node/state_directory.h"

namespace tubed::node {

Result<void> refuse_node(const std::string& directory) {
  const disk::DirectoryTree tree(directory);
  // The state of a node: cluster/node_state.h.
  const auto is_state = [](const std::string& name) {
    constexpr std::string_view kPrefix = "state.";
    return name.starts_with(kPrefix) &&
           std::string_view("0123456789").find(name.back()) != std::string_view::npos;
  };
  const auto names = tree.names(kClusterFolder);
  const auto complete = tree.exists(kCompleteMarker);
  const auto moving = tree.exists(kMovingMarker);
  // If the directory cannot be read, opening the journal reports that.
  if (!names || !complete || !moving) return {};
  if (!*complete && !*moving && std::ranges::none_of(*names, is_state)) return {};
  return Error{
      fmt::format("journal {}: it is that of a node of a cluster; start tubed with the settings of "
                  "the node, or end that with tubed --cluster-leave",
                  directory)};
}

}  // namespace tubed::node
