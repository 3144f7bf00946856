// Controller: how the live view responds to keys, to answers of the server and to time.
//
// It owns the table, the view and the pending order, and does no input or output: its caller reads
// keys, sends requests and passes the time. An order of the user (pause, kick) waits for the next
// request. It is dropped if the server is lost or silent, because carrying it out much later would
// surprise the user. At most one request is in progress, and at most one order waits.
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
  // it before it reads the next key: the effect of an order never depends on how many keys are read
  // at once.
  [[nodiscard]] std::optional<Request> press(Key key, Moment now);
  // Returns the request that is due at `now`, unless a request is in progress.
  [[nodiscard]] std::optional<Request> tick(Moment now);
  // Takes the answer to the request in progress. An Error: no server is connected.
  void take_result(Result<RequestResult> result);
  // When to call tick() if no event occurs.
  Moment next(Moment now) const;

  // True once the user quits.
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
  std::optional<Order> order_;  // not sent yet
  Moment asked_;                // time of the last request
  std::string message_;         // the view's message, shown since message_since_
  Moment message_since_;
  bool ends_ = false;
};

}  // namespace tubed::tubectl::top
