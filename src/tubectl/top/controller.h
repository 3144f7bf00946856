// Controller: what the live view does with keys, with the answers of the server and with time.
//
// It has the table, the view and the order that waits for the server, and does no input or output:
// its caller reads keys, sends requests and passes the time. An order of the user (pause, kick) is
// kept until the next request can carry it, and is dropped if the server is lost or silent, because
// carrying it out much later would surprise the user. At most one request is in progress, and at
// most one order waits.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/result.h"
#include "tubectl/top/model.h"
#include "tubectl/top/view.h"
#include "tubectl/top/watcher.h"

namespace tubed::tubectl::top {

class Controller {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  Controller(Model model, std::chrono::steady_clock::duration interval, Snapshot first, Moment now);

  // Handles one key, including its order, and returns the request that is due now. The caller sends
  // it before it reads the next key: what an order does never depends on how many keys are read at
  // once.
  [[nodiscard]] std::optional<Request> press(Key key, Moment now);
  // Handles the passage of time: returns the request that is due now, if none is in progress.
  [[nodiscard]] std::optional<Request> tick(Moment now);
  // The answer to the request in progress. An Error: there is no server.
  void take_result(Result<RequestResult> result);
  // When tick() has something to do without any event.
  Moment next(Moment now) const;

  // The user quits.
  bool ends() const { return ends_; }
  Model& model() { return model_; }
  View& view() { return view_; }

 private:
  void take_order();
  void drop_order();
  void forget_message(Moment now);

  std::chrono::steady_clock::duration interval_;
  Model model_;
  View view_;
  bool busy_ = false;           // a request is in progress
  bool ordered_ = false;        // the last request had an order
  std::optional<Order> order_;  // not in a request yet
  Moment asked_;                // the last request
  std::string message_;         // of the view, and since when
  Moment message_since_;
  bool ends_ = false;
};

}  // namespace tubed::tubectl::top
