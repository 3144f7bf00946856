#include "server/process_identity.h"

#include <fmt/format.h>

#include "base/planted.h"
#include "os/clock.h"
#include "os/process.h"

namespace tubed::server {

namespace {

stats::CpuTimes cpu_times() {
  const os::ProcessTimes times = os::process_times();
  return {.user = times.user, .system = times.system};
}

}  // namespace

std::string instance_id(std::uint64_t random) {
  constexpr std::uint64_t kLetter = 0xa000'0000'0000'0000;  // makes the first digit a, b, e or f
  return fmt::format("{:016x}", TUBED_PLANTED(id_of_digits) ? random : random | kLetter);
}

stats::ProcessIdentity identify() {
  os::MachineNames names = os::machine_names();
  return {.process_id = os::process_id(),
          .instance = instance_id(os::random_number()),
          .hostname = std::move(names.hostname),
          .os = std::move(names.os),
          .platform = std::move(names.platform),
          .started = os::monotonic_now(),
          .started_at = os::wall_time()};
}

Duration test_wall_offset(Time started) {
  constexpr std::chrono::seconds kWallBegin{946'684'800};
  return kWallBegin - started.time_since_epoch();
}

stats::ProcessIdentity identify_for_tests(Time begin) {
  stats::ProcessIdentity identity = identify();
  identity.started = begin;
  identity.instance = instance_id(0);
  identity.started_at = identity.started.time_since_epoch() + test_wall_offset(identity.started);
  return identity;
}

stats::ProcessProbe this_process() {
  return {.cpu_times = cpu_times,
          .resident_bytes = os::resident_bytes,
          .open_descriptors = [] { return os::open_descriptors(); },
          .descriptor_limit = os::descriptor_limit};
}

stats::ProcessProbe this_process_for_tests() {
  stats::ProcessProbe probe = this_process();
  probe.cpu_times = [] { return stats::CpuTimes{}; };
  return probe;
}

}  // namespace tubed::server
