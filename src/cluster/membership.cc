#include "cluster/membership.h"

#include <cstddef>
#include <iterator>

#include <fmt/format.h>

namespace tubed::cluster {

namespace {

// After the address of a standby that stays.
constexpr std::string_view kStays = " stays";

}  // namespace

std::vector<Member> as_members(std::span<const core_member> list) {
  std::vector<Member> members;
  for (const core_member& member : list) {
    std::string_view address = member.address;
    const bool stays = member.role == CORE_STANDBY && address.ends_with(kStays);
    if (stays) address.remove_suffix(kStays.size());
    members.push_back({.id = member.id,
                       .role = static_cast<MemberRole>(member.role),
                       .address = std::string(address),
                       .stays = stays});
  }
  return members;
}

Result<std::string> encode_members(const std::vector<Member>& members) {
  std::vector<std::string> addresses;
  for (const Member& member : members) {
    const bool stays = member.stays && member.role == MemberRole::standby;
    addresses.push_back(fmt::format("{}{}", member.address, stays ? kStays : ""));
  }
  std::vector<core_member> list;
  for (std::size_t i = 0; i < members.size(); ++i) {
    list.push_back({.id = members[i].id,
                    .role = static_cast<int>(members[i].role),
                    .address = addresses[i].c_str()});
  }
  void* data = nullptr;
  std::size_t bytes = 0;
  const int code = core_encode(list.data(), static_cast<unsigned>(list.size()), &data, &bytes);
  if (code != 0) return Error{fmt::format("members of the cluster: {}", core_error(code))};
  std::string text(static_cast<const char*>(data), bytes);
  core_free(data);
  return text;
}

std::optional<std::vector<Member>> decode_members(std::string_view configuration) {
  core_member list[CORE_MOST_MEMBERS];
  unsigned count = 0;
  const int code = core_decode(configuration.data(), configuration.size(), list,
                               static_cast<unsigned>(std::size(list)), &count);
  if (code != 0) return std::nullopt;
  return as_members(std::span(list).first(count));
}

}  // namespace tubed::cluster
