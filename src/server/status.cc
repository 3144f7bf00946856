// What a server reports of itself: to systemd, as its status, and to a health check.
#include <fmt/format.h>

#include "server/server.h"

namespace tubed::server {

// packaging/systemd/close-sockets reads the word "drained" at its beginning.
std::string Server::status() const {
  const auto jobs = service_.engine().info().jobs;
  if (!queue_closed() || !drained_) {
    return fmt::format("{}: {} ready jobs, {} reserved, {} connections", doing(), jobs.ready,
                       jobs.reserved, client_count_);
  }
  if (jobs.total() == 0) return "drained: no job is left";
  return fmt::format("drained: {} ready jobs, {} delayed, {} buried {}", jobs.ready, jobs.delayed,
                     jobs.buried,
                     service_.log().stats().on_disk ? "stay in the journal" : "are lost");
}

std::string_view Server::doing() const {
  if (stopping()) return drained_ ? "drained" : "stopping";
  if (service_.draining()) return "draining";
  if (journal_is_full()) return "refusing puts, the journal has no space";
  if (service_.engine().memory_is_short()) return "refusing puts, limits.job_memory is reached";
  return "serving";
}

// For lack of memory alone a server stays ready: the workers that make room come the same way.
std::string_view Server::unready() const {
  if (stopping()) return "stopping";
  if (service_.draining()) return "draining";
  return journal_is_full() ? "the journal has no space" : "";
}

bool Server::journal_is_full() const {
  return service_.log().stats().full;
}

}  // namespace tubed::server
