// The steps are numbered in client_forwarder.h.
#include "node/client_forwarder.h"

#include <algorithm>
#include <utility>

#include "base/planted.h"
#include "os/clock.h"

namespace tubed::node {

using os::Log;

namespace {

// Returns the connection, which now carries the client's bytes.
Result<FrameChannel::Released> connection_of(Result<PeerDial::Answer> result) {
  const PeerDial::Answer answer = TRY(std::move(result));
  if (answer.welcome.status != cluster::WelcomeStatus::ok)
    return Error{std::string(to_string(answer.welcome.status))};
  if (answer.channel->unsent() != 0) return Error{"a welcome was sent too early"};
  FrameChannel::Released released = answer.channel->release();
  if (!released.connection) return Error{"the connection is lost"};
  return released;
}

}  // namespace

// One client. Until it is passed on, nothing is read from it: it may have ended its output after
// commands.
class ClientForwarder::Forwarded final : public loop::ChannelOwner {
 public:
  Forwarded(ClientForwarder& all, std::unique_ptr<loop::Channel> from,
            cluster::ForwardedClient facts, const Times& times)
      : channel(std::move(from)),
        client(std::move(facts)),
        deadline(os::monotonic_now() + times.leader_wait),
        stall(times.stall),
        all_(all) {
    channel->set_owner(*this);
    channel->want(false, false);
  }

  bool waits() const { return pipe == nullptr; }

  std::unique_ptr<loop::Channel> channel;  // null once it is passed on
  const cluster::ForwardedClient client;
  const Time deadline;
  const Duration stall;
  std::unique_ptr<PeerDial> dial;
  std::unique_ptr<BytePipe> pipe;
  cluster::NodeId leader = 0;  // to which it is passed on
  Clients::iterator place;

 private:
  void on_ready(loop::Readiness ready) override {
    if (ready.broken) all_.remove(*this);
  }

  ClientForwarder& all_;
};

ClientForwarder::ClientForwarder(loop::Loop& loop, Log& log, const PeerLimits& limits,
                                 ClientForwarderHost& host)
    : loop_(loop),
      log_(log),
      limits_(limits),
      host_(host),
      retry_wait_(limits.retry),
      retry_timer_(loop, [this] { go_on(); }),
      deadline_timer_(loop, [this] { end_waits(); }),
      former_timer_(loop, [this] { end_former(); }),
      end_timer_(loop, [this] { finish_end(); }) {}

ClientForwarder::~ClientForwarder() = default;

void ClientForwarder::forward(std::unique_ptr<loop::Channel> channel,
                              cluster::ForwardedClient client, const Times& times) {
  waiting_.push_back(
      std::make_unique<Forwarded>(*this, std::move(channel), std::move(client), times));
  waiting_.back()->place = std::prev(waiting_.end());
  if (waiting_.size() == 1) arm_deadline();
  go_on();
}

void ClientForwarder::leader_changed() {
  retry_wait_ = limits_.retry;
  retry_timer_.arm({});
  former_timer_.arm(limits_.user_timeout);
}

// Steps 1 and 2.
void ClientForwarder::go_on() {
  if (host_.serves()) return serve_waiting();
  const auto leader = host_.leader();
  if (!leader) {
    if (!waiting_.empty()) retry_timer_.arm(limits_.last_retry);
    return;
  }
  drop_dials(leader->node);
  for (const auto& client : waiting_) {
    if (dials_ >= kMostDials) return;
    if (client->dial == nullptr) dial(*client, *leader);
  }
}

// Ends attempts to reach a former leader.
void ClientForwarder::drop_dials(cluster::NodeId except) {
  std::size_t left = dials_;
  for (auto next = waiting_.begin(); left > 0 && next != waiting_.end(); ++next) {
    Forwarded& client = **next;
    if (client.dial == nullptr) continue;
    --left;
    if (client.leader == except) continue;
    client.dial.reset();
    --dials_;
  }
}

void ClientForwarder::serve_waiting() {
  host_.begin_tick();
  while (!waiting_.empty()) {
    Forwarded& client = *waiting_.front();
    auto channel = std::move(client.channel);
    const cluster::ForwardedClient facts = client.client;
    remove(client);
    host_.serve(std::move(channel), facts);
  }
}

void ClientForwarder::dial(Forwarded& client, const ClientForwarderHost::Leader& leader) {
  ++dials_;
  client.leader = leader.node;
  client.dial = std::make_unique<PeerDial>(
      loop_, leader.address, host_.begin_client(leader, client.client),
      // Without a limit for unacknowledged bytes: the leader may be slow to read.
      loop::ConnectOptions{.limit = limits_.welcome},
      [this, &client](Result<PeerDial::Answer> result) { dialled(client, std::move(result)); });
}

void ClientForwarder::dialled(Forwarded& client, Result<PeerDial::Answer> answer) {
  --dials_;
  client.dial.reset();
  auto result = connection_of(std::move(answer));
  std::unique_ptr<loop::Channel> server;
  if (result) server = loop::open_channel(loop_, std::move(result->connection), {});
  if (server == nullptr) {
    last_failure_ =
        result ? "the kernel refuses to watch another descriptor" : result.error().message;
    retry_timer_.arm(retry_wait_);
    retry_wait_ = std::min(2 * retry_wait_, limits_.last_retry);
    return;
  }
  retry_wait_ = limits_.retry;
  last_failure_.clear();
  client.pipe = std::make_unique<BytePipe>(loop_, std::move(client.channel), std::move(server),
                                           std::move(result->read_ahead), client.stall,
                                           [this, &client](BytePipe::End end) {
                                             host_.begin_tick();
                                             if (end == BytePipe::End::complete)
                                               host_.hold(client.pipe->release_client());
                                             remove(client);
                                           });
  passed_on_.splice(passed_on_.end(), waiting_, client.place);
  arm_deadline();
  go_on();
}

void ClientForwarder::remove(Forwarded& client) {
  if (client.dial != nullptr) {
    --dials_;
    retry_timer_.arm({});  // another may have its place
  }
  const bool waited = client.waits();
  (waited ? waiting_ : passed_on_).erase(client.place);
  if (waited) arm_deadline();
  if (ending_ && passed_on_.empty()) end_timer_.arm({});
}

// --- The end of step 1

void ClientForwarder::arm_deadline() {
  if (waiting_.empty()) return deadline_timer_.disarm();
  deadline_timer_.arm(waiting_.front()->deadline - os::monotonic_now());
}

void ClientForwarder::end_waits() {
  host_.begin_tick();
  const Time now = os::monotonic_now();
  std::size_t count = 0;
  while (!waiting_.empty() && waiting_.front()->deadline <= now) {
    ++count;
    host_.hold(std::move(waiting_.front()->channel));
    remove(*waiting_.front());
  }
  arm_deadline();
  if (count == 0) return;
  log_.limited(Log::Level::warning, now, "clients have waited in vain for a leader",
               {{"clients", count},
                {"reason", last_failure_.empty() ? "no leader is known" : last_failure_}});
}

// --- Step 4

void ClientForwarder::end_former() {
  const auto leader = host_.leader();
  if (!leader && !host_.serves() &&
      !TUBED_PLANTED(forwarder_ends_clients_of_a_leader_without_news)) {
    if (!passed_on_.empty()) former_timer_.arm(limits_.user_timeout);
    return;
  }
  const cluster::NodeId current = leader ? leader->node : 0;
  std::erase_if(passed_on_, [&](const auto& one) { return one->leader != current; });
  if (ending_ && passed_on_.empty()) end_timer_.arm({});
}

void ClientForwarder::security_changed() {
  passed_on_.clear();
  drop_dials(0);
  retry_timer_.arm({});
  if (ending_) end_timer_.arm({});
}

// --- The end

void ClientForwarder::end(Duration limit, std::function<void()> ended) {
  ending_ = true;
  ended_ = std::move(ended);
  waiting_.clear();
  dials_ = 0;
  deadline_timer_.disarm();
  for (const auto& client : passed_on_) client->pipe->end_input();
  end_timer_.arm(passed_on_.empty() ? Duration() : limit);
}

void ClientForwarder::finish_end() {
  passed_on_.clear();
  if (ended_) std::exchange(ended_, nullptr)();
}

}  // namespace tubed::node
