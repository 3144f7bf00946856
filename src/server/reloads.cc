#include "server/reloads.h"

#include <utility>

#include <fmt/ranges.h>

namespace tubed::server {

using os::Log;

Reloads::Reloads(loop::Loop& loop, const Parts& parts, ReadSettings read, ReloadsHost& host)
    : parts_(parts), read_(std::move(read)), host_(host), timer_(loop, [this] { reload(); }) {}

std::optional<commands::ReloadResult> Reloads::request(SessionId client) {
  if (parts_.lifecycle.stopping())
    return commands::ReloadResult{.refusal = "the server is stopping"};
  if (clients_.empty()) timer_.arm({});
  clients_.push_back(client);
  return std::nullopt;
}

void Reloads::reload() {
  if (parts_.lifecycle.stopping()) return;
  parts_.scheduler.begin_tick();
  commands::ReloadResult result = result_of_reload();
  timer_.disarm();
  for (const SessionId session : std::exchange(clients_, {})) {
    // The session may have closed, and its id may belong to another client.
    serving::Client* client = parts_.clients.find(session);
    if (client == nullptr || !client->conversation().command().awaits_reload()) continue;
    client->conversation().command().reloaded(result);
    parts_.scheduler.mark_dirty(*client);
  }
  if (result.refusal.empty()) needs_restart_ = std::move(result.needs_restart);
}

commands::ReloadResult Reloads::result_of_reload() {
  parts_.notifier.reloading();
  const auto fresh = read_();
  if (!fresh) return not_reloaded(fresh.error().message);
  auto plan = host_.apply_reload(*fresh);
  if (!plan) return not_reloaded(plan.error().message);
  log_reload(*plan);
  if (parts_.service.draining()) parts_.lifecycle.drain_settings_changed();
  parts_.notifier.reloaded("");
  return {.changed = std::move(plan->changed),
          .needs_restart = std::move(plan->needs_restart),
          .refusal = {}};
}

// Clients can cause any number of reloads: for them, lines that say nothing new are bounded or left
// out.
void Reloads::log_reload(const ReloadPlan& plan) {
  const bool by_client = !clients_.empty();
  const std::string changed =
      plan.changed.empty() ? "nothing" : fmt::format("{}", fmt::join(plan.changed, ","));
  const char* const note = "flags and the environment are read only at a start";
  if (by_client && plan.changed.empty()) {
    parts_.log.limited(Log::Level::info, parts_.service.tick_time(), "reloaded",
                       {{"changed", changed}, {"note", note}});
  } else {
    parts_.log.info("reloaded", {{"changed", changed}, {"note", note}});
  }
  if (by_client && plan.needs_restart == needs_restart_) return;
  std::vector<std::string> needs_restart = plan.needs_restart;
  parts_.listeners.advise_units(needs_restart);
  if (!needs_restart.empty()) {
    parts_.log.warning("needs a restart",
                       {{"settings", fmt::format("{}", fmt::join(needs_restart, ","))}});
  }
}

commands::ReloadResult Reloads::not_reloaded(std::string reason) {
  if (clients_.empty()) {
    parts_.log.error("not reloaded", {{"reason", reason}});
  } else {
    parts_.log.limited(Log::Level::error, parts_.service.tick_time(), "not reloaded",
                       {{"reason", reason}});
  }
  parts_.notifier.reloaded("not reloaded: " + reason);
  return {.refusal = std::move(reason)};
}

}  // namespace tubed::server
