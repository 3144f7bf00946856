#include "node/state_transfers.h"

#include <utility>

#include "node/state_install.h"

namespace tubed::node {

using os::Log;

void StateTransfers::fetch(const std::string& address, cluster::Hello hello,
                           const PeerSecurity& security, cluster::Index at_least) {
  const auto source = cluster::parse_member_address(address);
  if (!source) return;
  parts_.log.info("fetching the state", {{"from", source->name}});
  hello.name = source->name;
  fetch_ = std::make_unique<StateFetch>(
      parts_.loop,
      StateFetchOptions{.directory = settings_.journal_directory,
                        .source = *source,
                        .hello = std::move(hello),
                        .security = security,
                        .at_least = at_least,
                        .raft_log = cluster::raft_log_options(0, settings_.cluster.log_size)},
      [this](const Result<FetchedState>& fetched) { fetch_ended(fetched); });
}

void StateTransfers::fetch_ended(const Result<FetchedState>& fetched) {
  host_.begin_tick();
  if (fetched) {
    fetched_ = *fetched;
    parts_.log.info("fetched the state", {{"bytes", fetched_->bytes},
                                          {"position", std::uint64_t{fetched_->position.index}}});
  } else {
    parts_.log.limited(Log::Level::warning, parts_.service.tick_time(), "the fetch has failed",
                       {{"reason", fetched.error().message}});
    fetch_.reset();
  }
  host_.fetch_ended(static_cast<bool>(fetched));
}

void StateTransfers::send(const cluster::Hello& hello, loop::Connection connection,
                          cluster::Node& node) {
  const auto caller = cluster::parse_member_address(hello.address);
  const std::string name = caller ? caller->name : stats::id_text(hello.from);
  parts_.log.info("sending the state", {{"to", name}});
  source_ = std::make_unique<StateSource>(
      parts_.loop, node, std::move(connection),
      StateSourceOptions{.directory = settings_.journal_directory,
                         .rate = source_rate(settings_.cluster.fetch_rate, link_rate_),
                         .greeting = {},
                         .receiver = hello.from},
      [this, name](const Result<StateSent>& sent) { send_ended(name, sent); });
}

void StateTransfers::send_ended(const std::string& to, const Result<StateSent>& sent) {
  host_.begin_tick();
  if (sent) {
    parts_.log.info("sent the state", {{"to", to}, {"bytes", sent->bytes}});
  } else {
    parts_.log.warning("the state was not sent", {{"to", to}, {"reason", sent.error().message}});
  }
  source_.reset();
}

void StateTransfers::settings_changed() {
  if (source_ != nullptr) source_->set_rate(source_rate(settings_.cluster.fetch_rate, link_rate_));
}

void StateTransfers::set_link_rate(double rate) {
  if (rate == link_rate_) return;
  link_rate_ = rate;
  settings_changed();
}

void StateTransfers::stop() {
  fetch_.reset();
  source_.reset();
}

Result<void> StateTransfers::install(cluster::NodeId node) {
  if (!fetched_) return {};
  const FetchedState fetched = *std::exchange(fetched_, std::nullopt);
  const auto installed = node::install(settings_.journal_directory, fetched, node);
  if (installed) {
    ++installed_;
    return {};
  }
  parts_.log.error("the state that was fetched cannot be used",
                   {{"reason", installed.error().message}});
  return finish_install(settings_.journal_directory);
}

}  // namespace tubed::node
