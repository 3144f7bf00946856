// Drain mode of a server: puts are refused, and drain.exit says when that ends the server.
#include "server/server.h"

namespace tubed::server {

void Server::drain(bool draining) {
  if (stopping()) return;
  begin_tick();  // it may be drained already
  log_.info(draining ? "draining" : "not draining");
  if (service_.draining() != draining) {
    service_.set_draining(draining);
    draining_since_ = service_.now();
    limit_drain();
  }
  supervision_.refresh();
}

void Server::limit_drain() {
  drain_timer_.disarm();
  const bool ends = service_.draining() && settings_.drain_exit != DrainExit::never;
  if (ends && settings_.drain_timeout > Duration::zero()) {
    drain_timer_.arm(draining_since_ + settings_.drain_timeout - service_.now());
  }
}

// Drain mode ends the server here.
bool Server::is_drained() const {
  if (stopping()) return false;
  const auto jobs = service_.engine().info().jobs;
  switch (settings_.drain_exit) {
    case DrainExit::never:
      return false;
    case DrainExit::when_idle:
      return jobs.reserved == 0;
    case DrainExit::when_empty:
      return jobs.total() == 0;
  }
  return false;
}

void Server::end_drained() {
  drained_ = true;
  stop();
}

}  // namespace tubed::server
