// Clients of HTTP: each acts at moments of its own, with one request at a time or several.
#pragma once

#include <memory>
#include <string>

#include "tests/simulation/ledger.h"
#include "tests/simulation/net.h"

namespace tubed::simulation {

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  // Acts from now on, until it is destroyed.
  virtual void begin() = 0;
};

// Any operations of the table. Some requests are left before their answer.
std::unique_ptr<HttpClient> any_operations(World& world, Net& net, Knowledge& known,
                                           const std::string& name);
// Keeps a ledger: what was answered has to outlast each process.
std::unique_ptr<HttpClient> keep_http_ledger(World& world, Net& net, Knowledge& known,
                                             Ledger& ledger, const std::string& name);
// Waits for a job of a tube of its own, and sometimes leaves before another client puts it: then
// the job has to be ready again.
std::unique_ptr<HttpClient> reserve_and_leave(World& world, Net& net, Knowledge& known,
                                              const std::string& name);
// More requests wait than others may be under way.
std::unique_ptr<HttpClient> crowd(World& world, Net& net, Knowledge& known,
                                  const std::string& name);

}  // namespace tubed::simulation
