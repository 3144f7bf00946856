#include "server/status.h"

#include <fmt/format.h>

namespace tubed::server {

namespace {

std::string_view state(const commands::Service& service, const Lifecycle& lifecycle) {
  if (lifecycle.stopping()) return lifecycle.drained() ? "drained" : "stopping";
  if (service.draining()) return "draining";
  if (service.log().stats().full) return "refusing puts, the journal has no space";
  if (service.engine().memory_is_short()) return "refusing puts, limits.job_memory is reached";
  return "serving";
}

}  // namespace

std::string status_line(const commands::Service& service, const Lifecycle& lifecycle,
                        std::size_t connections) {
  const auto jobs = service.engine().info().jobs;
  if (lifecycle.phase() < Phase::closing || !lifecycle.drained()) {
    return fmt::format("{}: {} ready jobs, {} reserved, {} connections", state(service, lifecycle),
                       jobs.ready, jobs.reserved, connections);
  }
  if (jobs.total() == 0) return "drained: no job is left";
  return fmt::format("drained: {} ready jobs, {} delayed, {} buried {}", jobs.ready, jobs.delayed,
                     jobs.buried,
                     service.log().stats().on_disk ? "stay in the journal" : "are lost");
}

std::string_view unready_reason(const commands::Service& service, const Lifecycle& lifecycle) {
  if (lifecycle.stopping()) return "stopping";
  if (service.draining()) return "draining";
  return service.log().stats().full ? "the journal has no space" : "";
}

}  // namespace tubed::server
