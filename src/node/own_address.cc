#include "node/own_address.h"

#include <utility>

#include <fmt/format.h>

namespace tubed::node {

std::string OwnAddress::at(cluster::Level level, const cluster::Member* self, os::Log& log) {
  const auto own = cluster::parse_member_address(address_);
  const auto known = self == nullptr ? std::nullopt : cluster::parse_member_address(self->address);
  if (!own || !known) return address_;
  if (level >= cluster::kLevelOfNames || !own->has_host_name()) {
    if (own->endpoint() == known->endpoint()) {
      differs_from_.clear();
    } else if (std::exchange(differs_from_, self->address) != self->address) {
      log.warning("this node listens at another address than the cluster has",
                  {{"address", known->endpoint()},
                   {"cluster.address", own->endpoint()},
                   {"to_keep_it", fmt::format("tubectl cluster set-address {} {}", known->name,
                                              own->endpoint())}});
    }
    return address_;
  }
  if (!std::exchange(warned_, true)) {
    log.warning("cluster.address has the name of a host, which the cluster does not use yet",
                {{"address", own->endpoint()},
                 {"used", known->endpoint()},
                 {"level", std::uint64_t{level}},
                 {"needed", std::uint64_t{cluster::kLevelOfNames}}});
  }
  return fmt::format("{}@{}", own->name, known->endpoint());
}

std::string OwnAddress::other_than(std::string_view known, cluster::Level level) const {
  const auto own = cluster::parse_member_address(address_);
  if (!own || own->endpoint() == known) return {};
  return level < cluster::kLevelOfNames && own->has_host_name() ? std::string() : own->endpoint();
}

}  // namespace tubed::node
