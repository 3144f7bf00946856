// OwnAddress: the address with which a node introduces itself to the other nodes.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "cluster/levels.h"
#include "cluster/member.h"
#include "os/log.h"

namespace tubed::node {

class OwnAddress {
 public:
  // `address`: NAME@HOST:PORT, by the settings.
  explicit OwnAddress(std::string address) : address_(std::move(address)) {}

  // Returns the address while the cluster uses that level. `self`: this node in the configuration,
  // or null. If other nodes may not know names of hosts, a host that is a name is replaced by that
  // in the configuration, which is numeric then; the first time, a warning is logged.
  // Also logs, once for each address in the configuration, that it has another.
  std::string at(cluster::Level level, const cluster::Member* self, os::Log& log);
  // Returns the address, HOST:PORT, while the cluster uses that level, if it is not `known`;
  // otherwise an empty text.
  std::string other_than(std::string_view known, cluster::Level level) const;
  const std::string& by_settings() const { return address_; }

 private:
  const std::string address_;
  bool warned_ = false;
  std::string differs_from_;  // the last address in the configuration that was logged
};

}  // namespace tubed::node
