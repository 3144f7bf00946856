// How a header is read: read() peeks at the bytes that have arrived and parses them after those
// that it has taken before. It then takes the bytes of the header from the socket, and no others.
// So the socket is readable again only when more bytes of an incomplete header have arrived.
#include "loop/proxy_headers.h"

#include <array>
#include <utility>

namespace tubed::loop {

struct ProxyHeaders::Entry : PendingPlace<Entry> {
  Entry(ProxyHeaders& of, ProxyOwner& its_owner, os::Socket its_socket, std::string its_peer)
      : headers(of),
        owner(its_owner),
        peer(std::move(its_peer)),
        socket(std::move(its_socket)),
        handle(this) {}
  ~Entry() { stop_watching(); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  bool watch() {
    if (uv_poll_init_socket(headers.loop_.uv(), handle.get(), socket.descriptor()) != 0) {
      handle.forget();
      return false;
    }
    uv_poll_start(handle.get(), UV_READABLE, &ProxyHeaders::on_poll);
    return true;
  }
  // A socket can have only one watcher, and the client's channel will be the next.
  void stop_watching() {
    if (handle.get() == nullptr) return;
    uv_poll_stop(handle.get());
    handle.close();
  }

  ProxyHeaders& headers;
  ProxyOwner& owner;
  std::string peer;
  std::string received;  // the beginning of the header
  os::Socket socket;
  Handle<uv_poll_t> handle;  // destroyed before `socket`, which it watches
};

ProxyHeaders::ProxyHeaders(Loop& loop)
    : loop_(loop), entries_(loop, [this](Entry& entry, auto excess) {
        fail(entry, excess == decltype(excess)::time ? "the PROXY header has taken too long"
                                                     : "too many PROXY headers at once");
      }) {}

ProxyHeaders::~ProxyHeaders() = default;

void ProxyHeaders::set_limits(const HandshakeLimits& limits) {
  entries_.set_limits(limits);
}

bool ProxyHeaders::begin(os::Socket socket, std::string peer, ProxyOwner& owner) {
  auto entry = std::make_unique<Entry>(*this, owner, std::move(socket), std::move(peer));
  if (!entry->watch()) return false;
  entries_.add(std::move(entry));
  return true;
}

void ProxyHeaders::forget(const ProxyOwner& owner) {
  entries_.visit_of(owner, [this](Entry& entry) { take(entry); });
}

std::unique_ptr<ProxyHeaders::Entry> ProxyHeaders::take(Entry& entry) {
  auto taken = entries_.take(entry);
  taken->stop_watching();
  return taken;
}

void ProxyHeaders::on_poll(uv_poll_t* handle, int status, int) {
  auto& entry = owner_of<Entry>(handle);
  entry.headers.read(entry, status < 0);
}

// `is_lost`: the loop no longer watches the connection. Bytes that arrived before can be read.
void ProxyHeaders::read(Entry& entry, bool is_lost) {
  constexpr std::string_view kClosed = "the connection was closed before the PROXY header";
  std::array<char, kMaxProxyHeader> arrived;
  const std::size_t before = entry.received.size();
  const os::Transfer peeked =
      os::peek_into(entry.socket, std::span(arrived).first(kMaxProxyHeader - before));
  if (peeked.kind == os::Transfer::Kind::would_block && !is_lost) return;
  if (peeked.kind != os::Transfer::Kind::done) return fail(entry, kClosed);
  entry.received.append(arrived.data(), peeked.bytes);
  auto header = parse_proxy_header(entry.received);
  if (!header) return fail(entry, header.error().message);
  const std::size_t bytes = *header ? (*header)->bytes - before : peeked.bytes;
  const os::Transfer taken = os::read_into(entry.socket, std::span(arrived).first(bytes));
  if (taken.bytes != bytes || (is_lost && !*header)) return fail(entry, kClosed);
  if (!*header) return;
  const auto done = take(entry);
  done->owner.on_proxied(std::move(done->socket), std::move((*header)->client));
}

void ProxyHeaders::fail(Entry& entry, std::string_view reason) {
  const auto failed = take(entry);
  failed->owner.on_header_failed(failed->peer, reason);
}

}  // namespace tubed::loop
