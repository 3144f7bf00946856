// Capabilities: the commands and forms of commands of a server that beanstalkd lacks.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/connection.h"

namespace tubed::tubectl {

class Capabilities {
 public:
  // Asks the server. A server that does not know `capabilities` has none: beanstalkd, and tubed
  // 2.0.0. Precondition: no reply is pending.
  static Result<Capabilities> of(client::Connection& connection);

  // "flush-tube", or "flush-tube:state".
  bool has(std::string_view name) const { return std::ranges::find(names_, name) != names_.end(); }

 private:
  std::vector<std::string> names_;
};

}  // namespace tubed::tubectl
