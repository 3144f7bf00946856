#include "server/watched_access.h"

#include <string_view>
#include <utility>

namespace tubed::server {

using access::WatchedFiles;

WatchedAccess::WatchedAccess(loop::Loop& loop, os::Log& log,
                             std::function<void(WatchedFiles kind)> changed)
    : log_(log),
      certificates_(loop, events_of(WatchedFiles::certificates, changed)),
      tokens_(loop, events_of(WatchedFiles::tokens, changed)) {}

loop::FileWatch::Events WatchedAccess::events_of(WatchedFiles kind,
                                                 const std::function<void(WatchedFiles)>& changed) {
  const std::string_view setting = kind == WatchedFiles::certificates ? "tls.watch" : "auth.watch";
  return {.changed = [changed, kind] { changed(kind); },
          .failed =
              [this, setting](const std::string& directory, std::string_view reason) {
                log_.warning("cannot watch files", {{"setting", setting},
                                                    {"directory", directory},
                                                    {"reason", reason},
                                                    {"note", "a reload reads them"}});
              }};
}

WatchedAccess::Kind& WatchedAccess::of(WatchedFiles kind) {
  return kind == WatchedFiles::certificates ? certificates_ : tokens_;
}

void WatchedAccess::watch(const Settings& settings) {
  for (const WatchedFiles kind : {WatchedFiles::certificates, WatchedFiles::tokens}) {
    of(kind).refusal.clear();
    of(kind).files.set(access::watched_files(settings, kind));
  }
}

void WatchedAccess::refused(WatchedFiles kind, const std::string& reason) {
  if (of(kind).refusal == reason) return;
  of(kind).refusal = reason;
  log_.error("not reloaded", {{"reason", reason}, {"note", "the old files stay in force"}});
}

bool WatchedAccess::accepted(WatchedFiles kind) {
  return !std::exchange(of(kind).refusal, {}).empty();
}

}  // namespace tubed::server
