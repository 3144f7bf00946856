#include "cluster/membership.h"

#include <cstddef>
#include <iterator>

#include <fmt/format.h>

namespace tubed::cluster {

std::vector<Member> as_members(std::span<const core_member> list) {
  std::vector<Member> members;
  for (const core_member& member : list) {
    members.push_back(
        {.id = member.id, .role = static_cast<MemberRole>(member.role), .address = member.address});
  }
  return members;
}

Result<std::string> encode_members(const std::vector<Member>& members) {
  std::vector<core_member> list;
  for (const Member& member : members) {
    list.push_back({.id = member.id,
                    .role = static_cast<int>(member.role),
                    .address = member.address.c_str()});
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
