// run() repeats three steps: send the request that is due, draw the frame, and wait for a key, a
// signal, an answer or the next due time. The Controller decides, and the Watcher talks to the
// server on its own thread, so this loop never blocks on the network.
#include "tubectl/top/live_view.h"

#include <array>
#include <csignal>
#include <memory>
#include <utility>

#include <unistd.h>

#include "client/event_loop.h"
#include "tubectl/exit_codes.h"
#include "tubectl/top/controller.h"
#include "tubectl/top/frame.h"
#include "tubectl/top/screen.h"
#include "tubectl/top/watcher.h"

namespace tubed::tubectl::top {
namespace {

using std::chrono::steady_clock;

class LiveView {
 public:
  struct Parts {
    client::SignalInput signals;
    Watcher watcher;
    Screen screen;
  };

  LiveView(Controller controller, const Glyphs& glyphs, Parts parts)
      : glyphs_(glyphs),
        signals_(std::move(parts.signals)),
        watcher_(std::move(parts.watcher)),
        screen_(std::move(parts.screen)),
        controller_(std::move(controller)) {}

  Result<int> run() {
    TRY(watch_inputs());
    while (!ends_ && !controller_.ends()) {
      ask(controller_.tick(steady_clock::now()));
      screen_.draw(compose(controller_.model(), controller_.view(), glyphs_, screen_.size()));
      TRY(wait());
    }
    return 0;
  }

 private:
  void ask(std::optional<Request> request) {
    if (request) watcher_.ask(std::move(*request));
  }

  // Keys and answers are read after each tick, so the handlers do nothing.
  Result<void> watch_inputs() {
    loop_ = TRY(client::EventLoop::create());
    const auto wake = [](client::EventLoop::Ready) { return Result<void>(); };
    watches_[0] = TRY(loop_->watch(signals_.descriptor(), wake));
    watches_[1] = TRY(loop_->watch(watcher_.descriptor(), wake));
    watches_[2] = TRY(loop_->watch(STDIN_FILENO, [this](client::EventLoop::Ready ready) {
      if (ready.hung_up) ends_ = true;  // the terminal has disappeared
      return Result<void>();
    }));
    return {};
  }

  Result<void> wait() {
    TRY(loop_->run_once(controller_.next(steady_clock::now())));
    take_signals();
    while (const auto key = screen_.read()) ask(controller_.press(*key, steady_clock::now()));
    if (auto result = watcher_.take()) controller_.take_result(std::move(*result));
    return {};
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

  Glyphs glyphs_;
  client::SignalInput signals_;
  Watcher watcher_;
  Screen screen_;
  std::unique_ptr<client::EventLoop> loop_;
  std::array<client::EventLoop::Watch, 3> watches_;
  Controller controller_;
  bool ends_ = false;  // by a signal, or without a terminal
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
  LiveView live(Controller(std::move(model), interval, std::move(first), steady_clock::now()),
                glyphs, {std::move(*signals), std::move(*watcher), std::move(*screen)});
  return live.run();
}

}  // namespace tubed::tubectl::top
