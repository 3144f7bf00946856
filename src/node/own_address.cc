#include "node/own_address.h"

#include <utility>

#include <fmt/format.h>

namespace tubed::node {

std::string OwnAddress::at(cluster::Level level, const cluster::Member* self, os::Log& log) {
  const auto own = cluster::parse_member_address(address_);
  if (level >= cluster::kLevelOfNames || !own || !own->has_host_name() || self == nullptr)
    return address_;
  const auto known = cluster::parse_member_address(self->address);
  if (!known) return address_;
  if (!std::exchange(warned_, true)) {
    log.warning("cluster.address has the name of a host, which the cluster does not use yet",
                {{"address", own->endpoint()},
                 {"used", known->endpoint()},
                 {"level", std::uint64_t{level}},
                 {"needed", std::uint64_t{cluster::kLevelOfNames}}});
  }
  return fmt::format("{}@{}", own->name, known->endpoint());
}

}  // namespace tubed::node
