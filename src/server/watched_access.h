// WatchedAccess: which files of certificates and of tokens are watched, and what is logged of
// changes that cannot be used.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "access/access_files.h"
#include "config/settings.h"
#include "loop/file_watch.h"
#include "loop/loop.h"
#include "os/log.h"

namespace tubed::server {

class WatchedAccess {
 public:
  // Calls `changed` in the loop when files of a kind may have changed. `loop` and `log` outlive the
  // object.
  WatchedAccess(loop::Loop& loop, os::Log& log,
                std::function<void(access::WatchedFiles kind)> changed);

  // Watches the files that the settings name, if tls.watch or auth.watch says so. Called after each
  // reload, and with the process' final user.
  void watch(const Settings& settings);

  // The files of this kind cannot be used, and the old ones stay in force: logs the reason, but the
  // same reason once only.
  void refused(access::WatchedFiles kind, const std::string& reason);
  // The files can be used. True if the last were refused.
  bool accepted(access::WatchedFiles kind);

 private:
  struct Kind {
    Kind(loop::Loop& loop, loop::FileWatch::Events events) : files(loop, std::move(events)) {}

    loop::FileWatch files;
    std::string refusal;  // that was logged; empty: none since the files could be used
  };

  loop::FileWatch::Events events_of(access::WatchedFiles kind,
                                    const std::function<void(access::WatchedFiles)>& changed);
  Kind& of(access::WatchedFiles kind);

  os::Log& log_;
  Kind certificates_;
  Kind tokens_;
};

}  // namespace tubed::server
