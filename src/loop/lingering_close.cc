#include "loop/lingering_close.h"

#include <array>

namespace tubed::loop {

LingeringClose::LingeringClose(Loop& loop, std::unique_ptr<Channel> channel,
                               std::function<void()> ended)
    : channel_(std::move(channel)), ended_(std::move(ended)), timeout_(loop, [this] { ended_(); }) {
  channel_->set_owner(*this);
  channel_->want(true, false);
  timeout_.arm(kTimeout);
}

void LingeringClose::on_ready(Readiness ready) {
  std::array<char, 16 * 1024> buffer;
  const os::Transfer got = channel_->read(std::span<char>(buffer));
  discarded_ += got.kind == os::Transfer::Kind::done ? got.bytes : 0;
  const bool has_ended =
      got.kind == os::Transfer::Kind::end || got.kind == os::Transfer::Kind::failed;
  if (has_ended || ready.broken || discarded_ > kMaxBytes) ended_();
}

}  // namespace tubed::loop
