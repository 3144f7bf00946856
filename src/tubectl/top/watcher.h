// Watcher: talks to the server on a thread of its own; the screen reacts to keys even if the server
// is slow or silent.
//
// It owns the connection and reconnects after a loss. One request is in progress at a time. The
// destructor does not wait: the thread ends after the answer, or with the program.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "tubectl/commands/command.h"
#include "tubectl/snapshot.h"
#include "tubectl/top/model.h"
#include "tubectl/top/view.h"

namespace tubed::tubectl::top {

// A request to the server. The answer always has a snapshot, and the rest if requested.
struct Request {
  std::optional<Order> order;  // carried out first
  std::string details_of;      // a tube
};

struct RequestResult {
  Snapshot snapshot;
  std::string message;  // the result of the order
  std::optional<Details> details;
};

class Watcher {
 public:
  // Takes over `connection`.
  static Result<Watcher> start(const Server& server, client::Connection connection);
  ~Watcher();
  Watcher(Watcher&&) = default;
  Watcher& operator=(Watcher&&) = delete;

  // Precondition: !busy().
  void ask(Request request);
  // True from ask() until take() has returned the answer.
  bool busy() const { return busy_; }
  // No value: the answer has not arrived. An Error: no server is connected; the next ask() connects
  // again.
  std::optional<Result<RequestResult>> take();
  // For the event loop: readable when take() has a result.
  int descriptor() const;

 private:
  struct Shared;

  explicit Watcher(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  static void work(const std::shared_ptr<Shared>& shared, const Server& server,
                   std::optional<client::Connection> connection);

  std::shared_ptr<Shared> shared_;
  bool busy_ = false;
};

}  // namespace tubed::tubectl::top
