// Reloads: reads the settings again, by a signal or for clients, has the server apply them, and
// reports the result to the log, to systemd and to the clients that have asked.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "commands/service.h"
#include "config/reload.h"
#include "config/settings.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "os/log.h"
#include "server/lifecycle.h"
#include "server/listeners.h"
#include "server/service_notifier.h"
#include "serving/clients.h"
#include "serving/scheduler.h"

namespace tubed::server {

// Returns the settings as they are read now. The error is one line.
using ReadSettings = std::function<Result<Settings>()>;

class ReloadsHost {
 public:
  // Applies the settings of `fresh` that can change while the server runs, and the files that they
  // name. Returns what has changed. After an error, which is one line, nothing has.
  virtual Result<ReloadPlan> apply_reload(const Settings& fresh) = 0;

 protected:
  ~ReloadsHost() = default;
};

class Reloads {
 public:
  // The parts of the server that a reload uses. They outlive the Reloads.
  struct Parts {
    os::Log& log;
    commands::Service& service;
    serving::Clients& clients;
    serving::Scheduler& scheduler;
    Listeners& listeners;
    ServiceNotifier& notifier;
    Lifecycle& lifecycle;
  };

  Reloads(loop::Loop& loop, const Parts& parts, ReadSettings read, ReloadsHost& host);

  // Reloads in the next iteration of the loop, because a reload may close clients, which must not
  // happen while one of them runs. All clients that ask until then share it. Returns the result if
  // there is no reload; else the client awaits it.
  std::optional<commands::ReloadResult> request(SessionId client);
  // Reloads, and gives the result to the clients that await one. While the server stops, which has
  // answered them, it does nothing.
  void reload();

 private:
  commands::ReloadResult result_of_reload();
  void log_reload(const ReloadPlan& plan);
  commands::ReloadResult not_reloaded(std::string reason);

  const Parts parts_;
  const ReadSettings read_;
  ReloadsHost& host_;
  std::vector<SessionId> clients_;          // that await the pending reload; some may have left
  loop::Timer timer_;                       // armed while clients_ is not empty
  std::vector<std::string> needs_restart_;  // keys, as of the last reload
};

}  // namespace tubed::server
