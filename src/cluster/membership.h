// The members of a cluster in libraft's encoding, which entries and the state of a node use.
//
// libraft does not know standbys that stay. Such a member has a mark after its address, which only
// this file sees.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/core.h"
#include "cluster/member.h"

namespace tubed::cluster {

std::vector<Member> as_members(std::span<const core_member> list);

// Fails if the members are too many or the core does not accept one of them. O(members).
Result<std::string> encode_members(const std::vector<Member>& members);
// Returns nothing if the configuration is damaged. O(bytes).
std::optional<std::vector<Member>> decode_members(std::string_view configuration);

}  // namespace tubed::cluster
