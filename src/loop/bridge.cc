#include "loop/bridge.h"

namespace tubed::loop {

Bridge::Bridge(Loop& loop, std::unique_ptr<Channel> outer, std::unique_ptr<Channel> inner,
               std::function<void()> ended)
    : outer_(*this, std::move(outer)),
      inner_(*this, std::move(inner)),
      ended_(std::move(ended)),
      linger_(loop, [this] { ended_(); }) {
  outer_.channel->set_owner(outer_);
  inner_.channel->set_owner(inner_);
  update_interest();
}

void Bridge::Side::on_ready(Readiness ready) {
  // The read that returns the end, after all bytes before it, finds a half-close.
  if (ready.broken) bridge.broken_ = true;
  bridge.run(*this, ready);
}

// Passes bytes in the directions that have become ready: a read or write of the other would only
// find that it blocks.
void Bridge::run(Side& side, Readiness ready) {
  Side& other = &side == &outer_ ? inner_ : outer_;
  const bool both = ready.half_closed || ready.broken;
  const bool taken = !(ready.readable || both) || pass(side, other);
  const bool given = !(ready.writable || both) || pass(other, side);
  if (!taken || !given || broken_ || (outer_.output_ended && inner_.output_ended)) return ended_();
  if (outer_.output_ended) linger_.arm(kLinger);
  update_interest();
}

// Makes one read and one write. Returns false if a connection is lost.
bool Bridge::pass(Side& from, Side& to) {
  if (from.empty() && !from.input_ended) {
    const os::Transfer got = from.channel->read(std::span<char>(from.buffer));
    if (got.kind == os::Transfer::Kind::failed) return false;
    from.input_ended = got.kind == os::Transfer::Kind::end;
    from.begin = 0;
    from.end = got.kind == os::Transfer::Kind::done ? got.bytes : 0;
  }
  if (!from.empty()) {
    const os::Transfer sent =
        to.channel->write(std::string_view(from.buffer.data() + from.begin, from.end - from.begin));
    if (sent.kind == os::Transfer::Kind::failed) return false;
    from.begin += sent.bytes;
  }
  if (from.empty() && from.input_ended && !to.output_ended) {
    to.output_ended = true;
    to.channel->end_output();
  }
  return true;
}

void Bridge::update_interest() {
  outer_.channel->want(outer_.empty() && !outer_.input_ended, !inner_.empty());
  inner_.channel->want(inner_.empty() && !inner_.input_ended, !outer_.empty());
}

}  // namespace tubed::loop
