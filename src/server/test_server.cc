#include "server/test_server.h"

#include <fmt/format.h>

#include "loop/pipe_channel.h"
#include "os/clock.h"
#include "os/file.h"
#include "test_mode/control_text.h"

namespace tubed::server {

namespace {

test_mode::ClockMode mode_of(TestClock clock) {
  switch (clock) {
    case TestClock::manual:
      return test_mode::ClockMode::manual;
    case TestClock::automatic:
      return test_mode::ClockMode::automatic;
    case TestClock::real:
      return test_mode::ClockMode::real;
  }
  return test_mode::ClockMode::manual;
}

// Each filter belongs to one connection.
loop::PipeFilters control_filters() {
  return {
      .input = [input = test_mode::ControlInput()](
                   std::string_view bytes, std::string& out) mutable { input.take(bytes, out); },
      .output = [output = test_mode::ControlOutput()](
                    std::string_view bytes, std::string& out) mutable { output.take(bytes, out); }};
}

}  // namespace

Time TestServer::begin_of_time(const Settings& settings) {
  return settings.journal_directory.empty() ? Time(Duration::min() / 2) : os::monotonic_now();
}

TestServer::TestServer(loop::Loop& loop, commands::Service& service, TestModeOptions options,
                       Events events)
    : loop_(loop),
      options_(std::move(options)),
      mode_(service, mode_of(options_.clock), os::monotonic_now(), std::move(events.end_drain)),
      stop_timer_(loop, std::move(events.stop)) {}

Result<void> TestServer::begin(serving::Clients& clients, serving::ClientHost& host) {
  host.begin_tick();
  mode_.recovered();
  if (!options_.use_stdin) return preload();
  // A client is closed in the middle of a tick; the server stops in the next tick.
  auto channel = loop::open_pipe_channel(loop_, os::kStandardInput, os::kStandardOutput,
                                         control_filters(), [this] { stop_timer_.arm({}); });
  if (channel == nullptr) {
    return Error{"standard input is no pipe, socket or terminal: give --no-stdin as well"};
  }
  mode_.set_control(clients.add(std::move(channel), host).session());
  return preload();
}

Result<void> TestServer::announce(const std::string& addresses) const {
  const std::string line = addresses + '\n';
  if (options_.address_file.empty()) return os::write_standard_output(line);
  return os::replace_file(options_.address_file, line);
}

Result<void> TestServer::preload() {
  if (options_.preload.empty()) return {};
  const std::string text = TRY(os::read_file(options_.preload));
  if (auto loaded = mode_.load(text); !loaded) {
    return Error{fmt::format("{}: {}", options_.preload, loaded.error().message)};
  }
  return {};
}

}  // namespace tubed::server
