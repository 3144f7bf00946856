#include "cluster/configurations.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace tubed::cluster {

void Configurations::follow() {
  newest_ = at(log_.last()).second;
  voters_.clear();
  for (const Member& member : core_.members()) {
    if (member.role == MemberRole::voter) voters_.push_back(member.id);
  }
}

bool Configurations::keep_before(Index first) {
  if (first == log_.first()) return false;
  const auto [configuration, index] = at(first - 1);
  if (index == state_.configuration_index) return false;
  state_.configuration = std::string(configuration);
  state_.configuration_index = index;
  return true;
}

std::pair<std::string_view, Index> Configurations::at(Index index) const {
  for (Index i = std::min(index, log_.last()); i >= log_.first(); --i) {
    if (log_.at(i).type == EntryType::change) return {log_.at(i).data.view(), i};
  }
  return {state_.configuration, state_.configuration_index};
}

bool Configurations::would_elect(const std::vector<Member>& members, Index committed,
                                 const Followers& followers, Time recent) const {
  const auto is_new = [this](const Member& member) {
    return member.role == MemberRole::voter &&
           std::ranges::find(voters_, member.id) == voters_.end();
  };
  const bool adds_voter = std::ranges::any_of(members, is_new);
  std::size_t voters = 0;
  std::size_t ready = 0;
  for (const Member& member : members) {
    if (member.role != MemberRole::voter) continue;
    ++voters;
    const bool is_itself = member.id == state_.node;
    const Index match = is_itself ? log_.last() : core_.match(member.id).value_or(0);
    const bool answers = is_itself || followers.has_answered(member.id, recent);
    bool counts = match >= newest_;
    if (is_new(member)) {
      if (match < committed || !answers) return false;
      counts = counts && voters_.size() == 1;
    } else if (adds_voter) {
      counts = counts && answers;
    }
    if (counts) ++ready;
  }
  return ready > voters / 2;
}

}  // namespace tubed::cluster
