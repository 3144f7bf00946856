// Connector: connects to the server on a thread of its own; touches never wait for a silent machine
// or for the resolver.
//
// One attempt is in progress at a time. The destructor does not wait: the thread ends with the
// attempt, or with the program.
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

  // Precondition: !busy(). Fails if no attempt can be made now.
  Result<void> start();
  // True from start() until take() has returned the result.
  bool busy() const { return attempt_ != nullptr; }
  // No value: the attempt is still in progress.
  std::optional<Result<client::Connection>> take();
  // Forgets the attempt and its result. Precondition: busy().
  void abandon() { attempt_.reset(); }
  // For the event loop: readable when take() has a result. Precondition: busy().
  int descriptor() const;

 private:
  struct Attempt;

  const client::Target& server_;
  std::shared_ptr<Attempt> attempt_;
};

}  // namespace tubed::tubectl::work
