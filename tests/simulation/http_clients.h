// HTTP clients: each acts at its own times, with one request at a time or several.
#pragma once

#include <memory>
#include <string>

#include "tests/simulation/ledger.h"
#include "tests/simulation/net.h"

namespace tubed::simulation {

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  // Starts acting, until it is destroyed.
  virtual void begin() = 0;
};

// Sends any operations of the table. Leaves some requests before their answer.
std::unique_ptr<HttpClient> any_operations(World& world, Net& net, Knowledge& known,
                                           const std::string& name);
// Keeps a ledger: acknowledged changes must outlast each process.
std::unique_ptr<HttpClient> keep_http_ledger(World& world, Net& net, Knowledge& known,
                                             Ledger& ledger, const std::string& name);
// Waits for a job of its own tube, and sometimes leaves before another client puts it: then the job
// must be ready again.
std::unique_ptr<HttpClient> reserve_and_leave(World& world, Net& net, Knowledge& known,
                                              const std::string& name);
// Sends more waiting requests than the limit on other requests.
std::unique_ptr<HttpClient> crowd(World& world, Net& net, Knowledge& known,
                                  const std::string& name);

}  // namespace tubed::simulation
