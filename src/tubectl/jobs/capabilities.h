// Capabilities: the commands, and forms of commands, that a server has and beanstalkd lacks.
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
  // Asks the server. The result is empty if the server does not know `capabilities`, such as
  // beanstalkd and tubed 2.0.0. Precondition: no reply is pending.
  static Result<Capabilities> of(client::Connection& connection);

  // `name`: such as "flush-tube" or "flush-tube:state".
  bool has(std::string_view name) const { return std::ranges::find(names_, name) != names_.end(); }

 private:
  std::vector<std::string> names_;
};

}  // namespace tubed::tubectl
