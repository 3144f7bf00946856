// Connector: connects to the server on a thread of its own, so that no touch waits for a silent
// machine or for the resolver.
//
// One attempt is in progress at a time. The destructor does not wait: the thread ends by itself,
// with the attempt or with the program.
#pragma once

#include <memory>
#include <optional>

#include "base/result.h"
#include "client/connection.h"
#include "os/descriptor.h"

namespace tubed::tubectl::work {

class Connector {
 public:
  explicit Connector(const client::Target& server) : server_(server) {}

  // Precondition: !busy(). An Error: no attempt can be made now.
  Result<void> start();
  // From start() until take() has given what came of it.
  bool busy() const { return attempt_ != nullptr; }
  // Nothing: it is not there yet.
  std::optional<Result<client::Connection>> take();
  // Forgets the attempt, whatever becomes of it. Precondition: busy().
  void abandon() { attempt_.reset(); }
  // For the event loop: readable when take() has something. Precondition: busy().
  int descriptor() const;

 private:
  struct Attempt;

  const client::Target& server_;
  std::shared_ptr<Attempt> attempt_;
};

}  // namespace tubed::tubectl::work
