// OwnRemoval: a removal of this node that was requested while it led. It passes leadership on, and
// the next leader removes it.
#pragma once

#include <optional>

#include "base/time.h"
#include "cluster/control.h"

namespace tubed::node {

class OwnRemoval {
 public:
  // `now` is by the node's clock, here and below.
  void begin(const cluster::Request& request, Time now) {
    request_ = request;
    until_ = now + kTimeout;
  }
  // Returns the request if it is to be sent to the leader now, and waits for answered(); otherwise
  // null.
  const cluster::Request* next(Time now) {
    if (now > until_) request_.reset();
    if (!request_ || is_sent_) return nullptr;
    is_sent_ = true;
    return &*request_;
  }
  void answered(const cluster::Response& response) {
    is_sent_ = false;
    if (response.status == 200) request_.reset();
  }

 private:
  static constexpr Duration kTimeout = std::chrono::seconds(10);

  std::optional<cluster::Request> request_;
  Time until_;
  bool is_sent_ = false;
};

}  // namespace tubed::node
