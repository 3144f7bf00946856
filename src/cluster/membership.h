// The members of a cluster in the encoding of libraft, as an entry and a node's state have them.
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

// The error: too many members, or one that the core does not take. O(members).
Result<std::string> encode_members(const std::vector<Member>& members);
// Nothing: the configuration is damaged. O(bytes).
std::optional<std::vector<Member>> decode_members(std::string_view configuration);

}  // namespace tubed::cluster
