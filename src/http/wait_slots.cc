#include "http/wait_slots.h"

namespace tubed::http {

WaitSlots::Taken WaitSlots::take(std::string_view role) {
  if (used_ >= kMost) return Taken::all_are_used;
  if (!role.empty()) {
    const auto found = used_by_role_.find(role);
    const std::size_t used = found == used_by_role_.end() ? 0 : found->second;
    if (used >= kMost - used_) return Taken::share_is_used;
    if (found == used_by_role_.end()) {
      used_by_role_.emplace(role, 1);
    } else {
      ++found->second;
    }
  }
  ++used_;
  return Taken::taken;
}

void WaitSlots::give_back(std::string_view role) {
  --used_;
  const auto found = used_by_role_.find(role);
  if (found != used_by_role_.end() && --found->second == 0) used_by_role_.erase(found);
}

}  // namespace tubed::http
