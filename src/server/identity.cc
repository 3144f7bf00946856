#include "server/identity.h"

#include "platform/clock.h"
#include "platform/process.h"

namespace tubed::server {

namespace {

commands::CpuTimes cpu_times() {
  const platform::ProcessTimes times = platform::process_times();
  return {.user = times.user, .system = times.system};
}

}  // namespace

commands::Identity identify() {
  platform::MachineNames names = platform::machine_names();
  return {.process_id = platform::process_id(),
          .instance = platform::random_instance_id(),
          .hostname = std::move(names.hostname),
          .os = std::move(names.os),
          .platform = std::move(names.platform),
          .started = platform::monotonic_now(),
          .started_at = platform::wall_time()};
}

commands::Process this_process() {
  return {.cpu_times = cpu_times,
          .resident_bytes = platform::resident_bytes,
          .open_descriptors = [] { return platform::open_descriptors(); },
          .descriptor_limit = platform::descriptor_limit};
}

}  // namespace tubed::server
