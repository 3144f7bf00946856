// Watcher: speaks to the server beside the screen, so that keys count while it is slow or silent.
//
// It owns the connection, and connects anew when that is gone. One thing is under way at a time.
// Whoever destroys it does not wait: its thread ends by itself, with the answer or the program.
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

// What is asked for: the snapshot always, the rest where it is there.
struct Request {
  std::optional<Order> order;  // carried out first
  std::string details_of;      // a tube
};

struct RequestResult {
  Snapshot snapshot;
  std::string message;  // what came of the order
  std::optional<Details> details;
};

class Watcher {
 public:
  // Goes on with `client`.
  static Result<Watcher> start(const Server& server, client::Connection connection);
  ~Watcher();
  Watcher(Watcher&&) = default;
  Watcher& operator=(Watcher&&) = delete;

  // Precondition: !busy().
  void ask(Request request);
  // True from ask() until take() has given the answer.
  bool busy() const { return busy_; }
  // Nothing: it is not there yet. An Error: there is no server; the next ask() connects again.
  std::optional<Result<RequestResult>> take();
  // For poll(): readable when take() has something.
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
