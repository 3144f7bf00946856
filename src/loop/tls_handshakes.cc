// An entry is in `entries_` from begin() until its channel is handed over, fails or is forgotten.
// When the channel is ready, the entry stops watching it and joins `runnable_`. An idle handle runs
// entries from the front of that queue in each iteration of the loop until kWorkPerTick has passed,
// at least one step.
#include "loop/tls_handshakes.h"

#include <optional>

#include "os/clock.h"

namespace tubed::loop {

struct TlsHandshakes::Entry final : ChannelOwner, PendingPlace<Entry> {
  Entry(TlsHandshakes& of, TlsOwner& its_owner, std::unique_ptr<TlsChannel> its_channel)
      : handshakes(of), owner(its_owner), channel(std::move(its_channel)), peer(channel->peer()) {}

  void on_ready(Readiness ready) override {
    if (ready.readable || ready.writable || ready.broken || ready.half_closed)
      handshakes.queue(*this);
  }

  TlsHandshakes& handshakes;
  TlsOwner& owner;
  std::unique_ptr<TlsChannel> channel;
  std::string peer;  // kept because a reset connection no longer has an address
  std::optional<std::list<Entry*>::iterator> queued;
};

TlsHandshakes::TlsHandshakes(Loop& loop)
    : loop_(loop),
      entries_(loop,
               [this](Entry& entry, auto excess) {
                 fail(entry, excess == decltype(excess)::time ? "the handshake has taken too long"
                                                              : "too many handshakes at once");
               }),
      idle_(this) {
  uv_idle_init(loop.uv(), idle_.get());
}

TlsHandshakes::~TlsHandshakes() = default;

void TlsHandshakes::set_limits(const HandshakeLimits& limits) {
  entries_.set_limits(limits);
}

bool TlsHandshakes::begin(os::Socket socket, std::shared_ptr<const TlsContext> context,
                          TlsOwner& owner, ProxiedClient proxied) {
  Connection connection(std::move(socket));
  if (!connection.begin_tls(std::move(context), TlsSession::Side::server)) return false;
  auto channel = TlsChannel::open(loop_, std::move(connection), std::move(proxied));
  if (channel == nullptr) return false;
  Entry& entry = entries_.add(std::make_unique<Entry>(*this, owner, std::move(channel)));
  entry.channel->set_owner(entry);
  entry.channel->want(true, false);
  return true;
}

void TlsHandshakes::forget(const TlsOwner& owner) {
  entries_.visit_of(owner, [this](Entry& entry) { take(entry); });
}

// Removes the entry from all lists.
std::unique_ptr<TlsHandshakes::Entry> TlsHandshakes::take(Entry& entry) {
  if (entry.queued) runnable_.erase(*entry.queued);
  return entries_.take(entry);
}

void TlsHandshakes::queue(Entry& entry) {
  if (entry.queued) return;
  entry.channel->pause();
  entry.queued = runnable_.insert(runnable_.end(), &entry);
  uv_idle_start(idle_.get(),
                [](uv_idle_t* handle) { owner_of<TlsHandshakes>(handle).run_queued(); });
}

void TlsHandshakes::run_queued() {
  const Time begin = os::monotonic_now();
  while (!runnable_.empty()) {
    Entry& entry = *runnable_.front();
    runnable_.pop_front();
    entry.queued.reset();
    step(entry);
    if (os::monotonic_now() - begin >= kWorkPerTick) break;
  }
  if (runnable_.empty()) uv_idle_stop(idle_.get());
}

void TlsHandshakes::step(Entry& entry) {
  switch (entry.channel->shake_hands()) {
    case TlsChannel::Handshake::reads:
      return entry.channel->want(true, false);
    case TlsChannel::Handshake::writes:
      return entry.channel->want(false, true);
    case TlsChannel::Handshake::failed:
      return fail(entry, entry.channel->failure());
    case TlsChannel::Handshake::done: {
      const auto done = take(entry);
      const TlsPeer peer = done->channel->peer_of_session();
      done->owner.on_secured(std::move(done->channel), peer);
      return;
    }
  }
}

void TlsHandshakes::fail(Entry& entry, std::string_view reason) {
  const auto failed = take(entry);
  failed->owner.on_handshake_failed(failed->peer, reason);
}

}  // namespace tubed::loop
