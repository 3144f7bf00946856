// run() repeats three steps: ask the server if a query is due, draw the frame, and wait for a key,
// a signal, an answer or the next due time. The Watcher talks to the server on its own thread, so
// this loop never blocks on the network; at most one query is in progress. An order of the user
// (pause, kick) is kept until the next query can carry it, and is dropped if the server is lost or
// silent, because carrying it out much later would surprise the user.
#include "tubectl/top/live_view.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "client/event_loop.h"
#include "tubectl/exit_codes.h"
#include "tubectl/top/frame.h"
#include "tubectl/top/screen.h"
#include "tubectl/top/view.h"
#include "tubectl/top/watcher.h"

namespace tubed::tubectl::top {
namespace {

using std::chrono::steady_clock;

// The interval of attempts to reach a lost server, and of checks whether a server is silent.
constexpr std::chrono::seconds kRetry{1};
// A server that takes longer to answer is called silent.
constexpr std::chrono::seconds kSilence{3};
// The time for which a message is shown.
constexpr std::chrono::seconds kMessageTime{5};

class LiveView {
 public:
  struct Parts {
    client::SignalInput signals;
    Watcher watcher;
    Screen screen;
  };

  LiveView(Model model, const Glyphs& glyphs, steady_clock::duration interval, Parts parts)
      : interval_(interval),
        glyphs_(glyphs),
        signals_(std::move(parts.signals)),
        watcher_(std::move(parts.watcher)),
        screen_(std::move(parts.screen)),
        model_(std::move(model)) {}

  Result<int> run(Snapshot first) {
    TRY(watch_inputs());
    model_.update(std::move(first));
    asked_ = steady_clock::now();
    while (!ends_) {
      ask_if_due();
      screen_.draw(compose(model_, view_, glyphs_, screen_.size()));
      TRY(wait());
    }
    return 0;
  }

 private:
  // When something is to be done though nothing comes. A frozen view asks nothing by itself, so it
  // waits for an hour or for a key.
  steady_clock::time_point next() const {
    if (watcher_.busy()) return steady_clock::now() + kRetry;
    if (view_.frozen() && !order_) return steady_clock::now() + std::chrono::hours(1);
    return asked_ +
           (model_.trouble() ? std::max<steady_clock::duration>(kRetry, interval_) : interval_);
  }

  void ask_if_due() {
    const auto now = steady_clock::now();
    forget_message(now);
    if (watcher_.busy()) {
      const auto silent = std::chrono::duration_cast<std::chrono::seconds>(now - asked_);
      if (silent >= kSilence) {
        model_.lost(fmt::format("the server has not answered for {} s", silent.count()));
        drop_order();
      }
      return;
    }
    const bool wants_details = view_.page() == View::Page::details &&
                               (!model_.details || model_.details->tube != view_.tube());
    if (!order_ && now < next() && !(wants_details && !model_.trouble())) return;
    asked_ = now;
    const bool details = view_.page() == View::Page::details;
    ordered_ = order_.has_value();
    watcher_.ask({std::exchange(order_, std::nullopt), details ? view_.tube() : ""});
  }

  // Keys and the watcher's answers are read after each tick, so their handlers do nothing.
  Result<void> watch_inputs() {
    loop_ = TRY(client::EventLoop::create());
    const auto wake = [](client::EventLoop::Ready) { return Result<void>(); };
    watches_[0] = TRY(loop_->watch(signals_.descriptor(), wake));
    watches_[1] = TRY(loop_->watch(watcher_.descriptor(), wake));
    watches_[2] = TRY(loop_->watch(STDIN_FILENO, [this](client::EventLoop::Ready ready) {
      if (ready.hung_up) ends_ = true;  // the terminal is gone
      return Result<void>();
    }));
    return {};
  }

  Result<void> wait() {
    TRY(loop_->run_once(next()));
    take_signals();
    while (const auto key = screen_.read()) {
      if (view_.press(*key, model_)) ends_ = true;
    }
    if (auto order = view_.take_order()) take_order(std::move(*order));
    take_result();
    return {};
  }

  void take_order(Order order) {
    if (model_.trouble()) {
      view_.show_message("no server is connected");
    } else if (order_) {
      view_.show_message("not done: wait until the server has answered");
    } else {
      order_ = std::move(order);
    }
  }

  // An order is not carried out long after it was given.
  void drop_order() {
    if (std::exchange(order_, std::nullopt)) view_.show_message("not done: no server is connected");
  }

  void take_signals() {
    while (const auto signal = signals_.take()) {
      if (*signal == SIGWINCH) {
        screen_.resize();
      } else {
        ends_ = true;
      }
    }
  }

  void take_result() {
    auto result = watcher_.take();
    if (!result) return;
    if (!*result) {
      model_.lost(fmt::format("{}; trying again", result->error().message));
      if (ordered_)
        view_.show_message("the connection was lost: it is unknown whether that was done");
      drop_order();
      return;
    }
    RequestResult& seen = result->value();
    model_.update(std::move(seen.snapshot));
    if (seen.details) model_.details = std::move(seen.details);
    if (!seen.message.empty()) view_.show_message(std::move(seen.message));
  }

  // Removes a message that was shown long enough.
  void forget_message(steady_clock::time_point now) {
    if (view_.message() != message_) {
      message_ = view_.message();
      message_since_ = now;
    } else if (now - message_since_ >= kMessageTime) {
      view_.show_message("");
    }
  }

  steady_clock::duration interval_;
  Glyphs glyphs_;
  client::SignalInput signals_;
  Watcher watcher_;
  Screen screen_;
  std::unique_ptr<client::EventLoop> loop_;
  std::array<client::EventLoop::Watch, 3> watches_;
  Model model_;
  View view_;
  std::optional<Order> order_;  // not given to the server yet
  bool ordered_ = false;        // the server was given one the last time
  steady_clock::time_point asked_;
  std::string message_;  // of the view, and since when
  steady_clock::time_point message_since_;
  bool ends_ = false;
};

}  // namespace

Result<int> run_live_view(const Server& server, Model model, const Glyphs& glyphs,
                          steady_clock::duration interval) {
  auto connection = TRY(connect(server));
  auto first = TRY(take_snapshot(connection));
  auto signals = client::SignalInput::block({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH});
  if (!signals) return fail(kExitFailure, signals.error().message);
  auto watcher = Watcher::start(server, std::move(connection));
  if (!watcher) return fail(kExitFailure, watcher.error().message);
  auto screen = Screen::open();
  if (!screen) return fail(kExitUsage, screen.error().message);
  LiveView live(std::move(model), glyphs, interval,
                {std::move(*signals), std::move(*watcher), std::move(*screen)});
  return live.run(std::move(first));
}

}  // namespace tubed::tubectl::top
