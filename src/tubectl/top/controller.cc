#include "tubectl/top/controller.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/planted.h"

namespace tubed::tubectl::top {
namespace {

// Interval of attempts to reach a lost server, and of checks whether a server is silent.
constexpr std::chrono::seconds kRetry{1};
// A server that takes longer to answer is called silent.
constexpr std::chrono::seconds kSilence{3};
// How long a message is shown.
constexpr std::chrono::seconds kMessageTime{5};

}  // namespace

Controller::Controller(Model model, std::chrono::steady_clock::duration interval, Snapshot first,
                       Moment now)
    : interval_(interval), model_(std::move(model)), asked_(now) {
  model_.rate_over(interval_ / 2);
  model_.update(std::move(first));
}

std::optional<Request> Controller::press(Key key, Moment now) {
  if (view_.press(key, model_)) ends_ = true;
  if (TUBED_PLANTED(top_takes_the_last_order)) return std::nullopt;
  take_order();
  return tick(now);
}

std::optional<Request> Controller::tick(Moment now) {
  if (TUBED_PLANTED(top_takes_the_last_order)) take_order();
  forget_message(now);
  if (busy_) {
    const auto silent = std::chrono::duration_cast<std::chrono::seconds>(now - asked_);
    if (silent >= kSilence) {
      model_.lost(fmt::format("the server has not answered for {} s", silent.count()));
      drop_order();
    }
    return std::nullopt;
  }
  const bool details = view_.page() == View::Page::details;
  const bool wants_details =
      details && (!model_.details || model_.details->tube != view_.tube()) && !model_.trouble();
  if (!order_ && now < next(now) && !wants_details) return std::nullopt;
  busy_ = true;
  asked_ = now;
  ordered_ = order_.has_value();
  return Request{std::exchange(order_, std::nullopt), details ? view_.tube() : ""};
}

// A frozen view requests nothing by itself, so it waits for an hour or for a key.
Controller::Moment Controller::next(Moment now) const {
  if (busy_) return now + kRetry;
  if (view_.frozen() && !order_) return now + std::chrono::hours(1);
  return asked_ + (model_.trouble()
                       ? std::max<std::chrono::steady_clock::duration>(kRetry, interval_)
                       : interval_);
}

void Controller::take_result(Result<RequestResult> result) {
  busy_ = false;
  if (!result) {
    model_.lost(fmt::format("{}; trying again", result.error().message));
    if (ordered_)
      view_.show_message("the connection was lost: it is unknown whether that was done");
    return drop_order();
  }
  RequestResult& seen = result.value();
  model_.update(std::move(seen.snapshot));
  if (seen.details) model_.details = std::move(seen.details);
  if (!seen.message.empty()) view_.show_message(std::move(seen.message));
}

void Controller::take_order() {
  auto order = view_.take_order();
  if (!order) return;
  if (model_.trouble()) {
    view_.show_message("no server is connected");
  } else if (order_) {
    view_.show_message("not done: wait until the server has answered");
  } else {
    order_ = std::move(order);
  }
}

// Drops an order that would otherwise be carried out long after it was given.
void Controller::drop_order() {
  if (std::exchange(order_, std::nullopt)) view_.show_message("not done: no server is connected");
}

// Removes a message after kMessageTime.
void Controller::forget_message(Moment now) {
  if (view_.message() != message_) {
    message_ = view_.message();
    message_since_ = now;
  } else if (now - message_since_ >= kMessageTime) {
    view_.show_message("");
  }
}

}  // namespace tubed::tubectl::top
