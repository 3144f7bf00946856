#include "tubectl/jobs/capabilities.h"

#include "client/stats_block.h"

namespace tubed::tubectl {

Result<Capabilities> Capabilities::of(client::Connection& connection) {
  const auto reply = TRY(connection.ask("capabilities"));
  Capabilities capabilities;
  if (reply.is("OK")) capabilities.names_ = client::list_items(reply.body);
  return capabilities;
}

}  // namespace tubed::tubectl
