// The level in use, as a node stores and raises it (levels.h).
#include <algorithm>

#include "cluster/node.h"

namespace tubed::cluster {

bool Node::raise_level(Level level) {
  if (level <= state_.level) return true;
  state_.level = level;
  store_node();
  return !failed_;
}

Level Node::common_level() const {
  Level common = options_.level;
  for (const Member& member : members()) {
    if (member.id != state_.node) common = std::min(common, host_.level_of(member.id));
  }
  return common;
}

void Node::store_node() {
  if (const auto stored = store_node_state(storage_, state_); !stored) fail(stored.error().message);
}

}  // namespace tubed::cluster
