// tubed: reads the settings, then runs the task that the command line names, or serves.
//
// The order of steps in serve() matters. The listeners and the pid file are opened before the user
// changes, because ports and directories may need root. The journal is recovered afterwards,
// because its files belong to that user. The exit codes are in os/exit_codes.h and
// config/command_line.h.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "access/access_files.h"
#include "base/planted.h"
#include "config/command_line.h"
#include "config/load.h"
#include "config/places.h"
#include "config/print.h"
#include "loop/loop.h"
#include "loop/signal.h"
#include "loop/thread_pool.h"
#include "node/cluster_tasks.h"
#include "os/clock.h"
#include "os/exit_codes.h"
#include "os/log.h"
#include "os/pid_file.h"
#include "os/process.h"
#include "os/service_manager.h"
#include "os/socket.h"
#include "os/startup.h"
#include "server/descriptor_needs.h"
#include "server/drain.h"
#include "server/server.h"
#include "server/tasks.h"

namespace {

using namespace tubed;

// "<3>" marks the line as an error in systemd's journal, and "<4>" as a warning.
int fail_with_line(int code, const std::string& line) {
  std::fprintf(stderr, "%s%s", os::stderr_is_the_journal() ? "<3>" : "", line.c_str());
  return code;
}

int fail(int code, const std::string& message) {
  return fail_with_line(code, "tubed: " + message + '\n');
}

void warn(const std::string& message) {
  std::fprintf(stderr, "%stubed: warning: %s\n", os::stderr_is_the_journal() ? "<4>" : "",
               message.c_str());
}

void warn_of_few_descriptors(os::Log& log, const Settings& settings) {
  const std::uint64_t limit = os::descriptor_limit();
  const std::uint64_t needed = server::most_descriptors(settings);
  if (limit < needed) {
    log.warning("fewer file descriptors than connections",
                {{"descriptors", limit},
                 {"needed", needed},
                 {"limits.connections", std::uint64_t{settings.connections}}});
  }
}

// Runs before the first loop: without a free descriptor, libuv aborts, and so do parts of the
// server that are made before an error can be reported.
Result<void> expect_descriptors(Task task) {
  constexpr std::size_t kServer = 32;
  constexpr std::size_t kTask = 16;
  os::raise_descriptor_limit();  // a backup has all segments open at the same time
  return os::expect_descriptors(task == Task::serve ? kServer : kTask);
}

// True if no other machine can connect to it.
bool is_local(const os::InheritedSocket& inherited) {
  const auto address = parse_listen(os::local_address(inherited.socket));
  return inherited.is_unix || (address && is_local(*address));
}

struct Refusal {
  int code;  // exit code of a start
  std::string message;
};

// Returns the reason why this process cannot serve with these settings. Opens nothing.
std::optional<Refusal> refusal_of(const Settings& settings) {
  if (settings.cluster.enabled() && !os::may_open_tcp()) {
    return Refusal{os::kExitCannotListen,
                   "cluster.name: this service has no network: see CLUSTER MODE in tubed(8)"};
  }
  if (!settings.user.empty() && !os::is_user(settings.user))
    return Refusal{os::kExitNoUser, "no user " + settings.user};
  return std::nullopt;
}

// Reads the files that the settings name, as a start does, with the same errors and warnings. A
// reload and an upgrade of the package are refused if this fails.
int check_settings(const CommandLine& line, const Settings& settings) {
  const auto refusal = refusal_of(settings);
  if (refusal && !TUBED_PLANTED(refused_settings_pass_the_check))
    return fail(kExitConfig, refusal->message);
  const auto files = access::load_access_files(settings);
  if (!files) return fail(kExitConfig, files.error().message);
  const auto of_cluster = node::check_cluster_files(settings);
  if (!of_cluster) return fail(kExitConfig, of_cluster.error().message);
  auto warnings = access::complaints(*files, os::wall_time());
  if (TUBED_PLANTED(warnings_fail_the_check) && !warnings.empty())
    return fail(kExitConfig, warnings.front());
  warnings.insert(warnings.begin(), line.warnings.begin(), line.warnings.end());
  for (const std::string& warning : warnings) warn(warning);
  return 0;
}

int serve(const CommandLine& line, const Settings& settings) {
  os::exit_when_out_of_memory();
  auto inherited = os::inherited_sockets();
  if (!inherited) return fail(os::kExitCannotListen, inherited.error().message);
  if (line.test_mode && !std::ranges::all_of(*inherited, [](auto& one) { return is_local(one); })) {
    return fail(kExitConfig, "in test mode inherited sockets are loopback or unix");
  }
  if (const auto refusal = refusal_of(settings)) return fail(refusal->code, refusal->message);
  os::Log log;
  loop::Loop loop;
  server::Server server(
      loop, log, settings, [&line] { return load_settings(line); }, line.test_mode);
  for (const std::string& warning : line.warnings) log.warning(warning);
  warn_of_few_descriptors(log, settings);
  if (auto loaded = server.load_access(); !loaded) return fail(kExitConfig, loaded.error().message);
  if (auto checked = node::check_cluster_files(settings); !checked)
    return fail(kExitConfig, checked.error().message);
  if (auto listening = server.listen(std::move(*inherited)); !listening) {
    return fail(os::kExitCannotListen, listening.error().message);
  }
  std::unique_ptr<os::PidFile> pid_file;
  if (!settings.pid_file.empty()) {
    auto opened = os::PidFile::open(settings.pid_file);
    if (!opened) return fail(os::kExitJournal, opened.error().message);
    pid_file = std::move(*opened);
  }
  if (!settings.user.empty()) {
    if (auto changed = os::become_user(settings.user); !changed) {
      return fail(os::kExitNoUser, changed.error().message);
    }
  }
  // After the change of user: the limit of processes is that user's.
  const bool uses_files = !settings.journal_directory.empty();
  if (auto started = uses_files ? loop::start_thread_pool() : Result<void>(); !started) {
    return fail(os::kExitNoResources, started.error().message);
  }
  if (auto recovered = server.recover(); !recovered) {
    return fail(os::kExitJournal, recovered.error().message);
  }
  os::trim_heap();  // frees what recovery used
  if (auto begun = server.begin_test_mode(); !begun) {
    return fail(kExitConfig, begun.error().message);
  }
  if (pid_file != nullptr) {
    server.on_drain([&pid_file](bool draining) { pid_file->set_flag(draining); });
  }
  const int code = server.run();
  // After a disk failure the disk may never answer: exit without waiting for the thread pool.
  if (server.failed()) os::exit_now(code);
  loop::ignore_signals_until_exit({SIGHUP, SIGUSR1, SIGUSR2, SIGTERM, SIGINT});
  if (pid_file != nullptr) pid_file->close_with(server.last_status());
  return code;
}

int run(std::span<const char* const> args) {
  auto parsed = parse_command_line(args);
  if (const auto* exit = std::get_if<Exit>(&parsed)) {
    if (exit->code != 0) return fail_with_line(exit->code, exit->text);
    std::fputs(exit->text.c_str(), stdout);
    return 0;
  }
  const auto& line = std::get<CommandLine>(parsed);
  const auto loaded = load_with_lines(line);
  if (!loaded) return fail(kExitConfig, loaded.error().message);
  const Settings& settings = loaded->settings;
  if (line.print_config) {
    const config::Places places(line, loaded->lines);
    std::fputs(print_settings(settings, places).c_str(), stdout);
  }
  if (line.check_config) return check_settings(line, settings);
  if (line.print_config) return 0;
  if (line.task == Task::drain) return server::drain_server(settings);
  if (const auto enough = expect_descriptors(line.task); !enough)
    return fail(os::kExitNoResources, enough.error().message);
  if (is_cluster_task(line.task)) {
    if (const auto started = loop::start_thread_pool(); !started)
      return fail(os::kExitNoResources, started.error().message);
    return node::run_cluster_task(line, settings);
  }
  if (line.task != Task::serve) return server::run_task(line, settings);
  return serve(line, settings);
}

// Flushes standard output. Incomplete output is a failure.
int finish_output(int code) {
  const bool complete = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (complete || code != 0) return code;
  return fail(os::kExitOutput, "standard output: cannot write all of it");
}

}  // namespace

int main(int argc, char** argv) {
  os::clean_start();
  try {
    return finish_output(
        run(std::span<const char* const>(argv, static_cast<std::size_t>(argc)).subspan(1)));
  } catch (const std::system_error& error) {  // from fmt::print()
    return fail(os::kExitOutput, error.what());
  }
}
