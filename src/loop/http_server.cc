// How the HTTP server works
//
// The daemon of libmicrohttpd (http_daemon.h) parses requests and formats responses.
//
// A connection goes through these steps; HttpConnection::Progress has their names.
// 1. A Listener accepts it and on_connection() gives it to the daemon, which calls on_notice(); an
//    HttpConnection is made.
// 2. receiving: the daemon reads the header of the request and calls on_request(), which asks the
//    owner.
// 3. responding: a response with a text is handed to the daemon as a whole.
//    streaming: a response in parts is made in later ticks.
//    exchanging: an exchange takes the body of the request, if any, and then makes the response
//    in parts, or as a whole if it is short and complete. While it waits, the connection is
//    suspended (http_connection.cc).
//    All responses in parts together make kBytesPerTick bytes per tick, in equal parts, so that the
//    loop serves its other work too.
// 4. A connection that is kept returns to step 2 when its response was sent. The client may have
//    sent the next request already: the daemon has it in its buffer, or reads it then.
// 5. The daemon closes another connection, whose response has had the header `Connection: close`,
//    and calls on_notice() again. After a response that left the body unread, a LingeringClose
//    discards what still arrives.
//
// Slow clients must not keep a health check from being answered. Therefore:
// - When kMaxConnections are open, accepting pauses, and one connection is shut down (make_room):
//   the oldest without a complete header, else the oldest with a text, else the oldest exchange.
//   The newest kSpared connections are spared, since they have not had the time to be served.
// - When more than kMaxStreams responses are streamed, the oldest of these is shut down. The owner
//   bounds exchanges and event streams.
// - An exchange that waits for something far away occupies none of the kMaxConnections, and is
//   never shut down for another. The owner bounds these.
// - At most kMaxKept connections are kept, so that others remain for new clients. A client learns
//   with the response that its connection is closed, and loses no request by it.
// - The daemon closes a connection that moves no byte for the idle timeout, or between two requests
//   for the time of set_keep_alive(). `total_timer_` ends a connection that moves a byte now and
//   then after the total timeout.
// - The daemon does not watch suspended connections; check_suspended() finds those whose client has
//   disconnected.
//
// A connection of TLS is a TlsChannel, and a Bridge passes its bytes to one end of a socket pair
// whose other end the daemon has: certificates, limits and versions are those of all listeners.
//
// To shut down means shutdown(2) only: the daemon owns the descriptor, sees the end and closes it.
#include "loop/http_server.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>

#include "loop/http_connection.h"
#include "os/clock.h"

namespace tubed::loop {

namespace {

using Progress = HttpConnection::Progress;

// Memory of a connection, for the header of its request and the buffer of its body or response.
constexpr std::size_t kConnectionBytes = 32 * 1024;

// The newest connections, which make_room() does not shut down.
constexpr std::size_t kSpared = 16;

// The daemon's own limit, which is never reached. While all connections are in use, TLS handshakes
// in progress add connections beyond kMaxConnections, a few per tick, and the same number is shut
// down.
constexpr std::size_t kDaemonConnections = 2 * HttpServer::kMaxConnections + HttpServer::kMaxWaits;

// The limit on LingeringCloses. A further connection closes the oldest.
constexpr std::size_t kMaxLingering = 16;

// Sent to a connection that cannot be served because no descriptor is free. The Listener adds the
// last line end.
constexpr std::string_view kNoDescriptor =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
    "Connection: close\r\n";

HttpConnection* connection_of(MHD_Connection* handle) {
  return static_cast<HttpConnection*>(
      MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context);
}

// Called with the target as the client has sent it, before libmicrohttpd unescapes it.
void* on_target(void*, const char* target, MHD_Connection* handle) {
  connection_of(handle)->set_target(target);
  return nullptr;
}

MHD_Result on_request(void* context, MHD_Connection* handle, const char*, const char* method,
                      const char* version, const char* data, std::size_t* bytes, void**) {
  static_cast<HttpServer*>(context)->note_call();
  return connection_of(handle)->on_request(method, version, data, bytes);
}

void on_completed(void*, MHD_Connection* handle, void**, MHD_RequestTerminationCode code) {
  connection_of(handle)->on_completed(code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
}

void on_notice(void* context, MHD_Connection* handle, void** connection,
               MHD_ConnectionNotificationCode code) {
  auto& server = *static_cast<HttpServer*>(context);
  server.note_call();
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    const auto* info = MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD);
    *connection = server.connection_opened(handle, info->connect_fd);
  } else {
    server.connection_closed(static_cast<HttpConnection*>(*connection));
  }
}

MHD_Daemon* start_daemon(HttpServer& server) {
  // Without MHD_USE_ERROR_LOG the daemon prints nothing about malformed requests.
  return MHD_start_daemon(
      MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME, 0, nullptr, nullptr,
      &on_request, &server, MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(kDaemonConnections),
      MHD_OPTION_CONNECTION_TIMEOUT, static_cast<unsigned>(HttpServer::kIdleTimeout.count()),
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, MHD_OPTION_NOTIFY_CONNECTION,
      &on_notice, &server, MHD_OPTION_URI_LOG_CALLBACK, &on_target, &server,
      MHD_OPTION_NOTIFY_COMPLETED, &on_completed, &server, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
      MHD_OPTION_END);
}

// Counts the connections that satisfy `predicate` and were not shut down.
template <class Predicate>
std::size_t count(const std::vector<std::unique_ptr<HttpConnection>>& connections,
                  Predicate predicate) {
  return static_cast<std::size_t>(
      std::ranges::count_if(connections, [&](const std::unique_ptr<HttpConnection>& connection) {
        return !connection->is_shut_down() && predicate(*connection);
      }));
}

// Shuts down the oldest connection with this progress, except event streams and waits. Returns
// false if no such connection exists.
bool shut_down_oldest(std::span<const std::unique_ptr<HttpConnection>> connections,
                      Progress progress) {
  for (const auto& connection : connections) {
    const bool is_spared = connection->is_stream() || connection->waits();
    if (connection->is_shut_down() || connection->progress() != progress || is_spared) continue;
    connection->shut_down();
    return true;
  }
  return false;
}

}  // namespace

HttpServer::HttpServer(Loop& loop, HttpOwner& owner)
    : loop_(loop),
      owner_(owner),
      handshakes_(loop),
      total_timer_(loop, [this] { shut_down_overdue(); }),
      check_timer_(loop, [this] { check_suspended(); }),
      daemon_(loop, start_daemon(*this), [this] { budget_left_ = kBytesPerTick; }) {}

HttpServer::~HttpServer() {
  stopping_ = true;
  // Before the daemon stops, because the end of a connection would resume a listener.
  listeners_.clear();
  // The daemon stops only when no connection is suspended.
  for (const auto& connection : connections_) {
    if (connection->is_suspended()) connection->shut_down();
  }
}

void HttpServer::listen(os::Socket socket, std::string path) {
  listeners_.push_back(
      std::make_unique<Listener>(loop_, std::move(socket), std::move(path), refusal(), *this));
}

void HttpServer::set_tls(std::shared_ptr<const TlsContext> tls) {
  tls_ = std::move(tls);
  // A TLS client cannot read a response before its handshake is done.
  for (const auto& listener : listeners_) listener->set_refusal(refusal());
}

void HttpServer::tune(Duration keepalive_idle) {
  for (const auto& listener : listeners_) os::tune_connection(listener->socket(), keepalive_idle);
}

std::string_view HttpServer::refusal() const {
  return tls_ == nullptr ? kNoDescriptor : std::string_view();
}

void HttpServer::set_timeouts(std::chrono::seconds idle, Duration total) {
  idle_timeout_ = idle;
  total_timeout_ = total;
  for (const auto& connection : connections_) connection->set_idle_timeout(idle);
  arm_total_timer();
  daemon_.run_soon();  // the timeout of the daemon may have changed
}

void HttpServer::set_keep_alive(std::chrono::seconds idle) {
  if (std::exchange(keep_alive_, idle) == idle) return;
  for (const auto& connection : connections_) {
    if (!connection->is_kept() || connection->progress() != Progress::receiving) continue;
    if (idle == std::chrono::seconds::zero()) {
      connection->shut_down();
    } else {
      connection->set_idle_timeout(idle);
    }
  }
  daemon_.run_soon();
}

std::size_t HttpServer::exchanges() const {
  return count(connections_, [](const HttpConnection& connection) {
    return connection.progress() == Progress::exchanging && !connection.is_stream() &&
           !connection.waits();
  });
}

std::size_t HttpServer::event_streams() const {
  return count(connections_,
               [](const HttpConnection& connection) { return connection.is_stream(); });
}

void HttpServer::on_connection(os::Socket socket) {
  if (tls_ == nullptr) {
    HttpPeer peer{.address = os::peer_address(socket), .process = os::peer_credentials(socket)};
    return add_to_daemon(std::move(socket), std::move(peer));
  }
  if (!handshakes_.begin(std::move(socket), tls_, *this))
    owner_.on_http_error("the kernel watches no more connections");
}

void HttpServer::on_secured(std::unique_ptr<Channel> channel, const TlsPeer& peer) {
  HttpPeer outer{.address = channel->peer(), .certificate = peer, .process = {}, .secured = true};
  auto ends = os::socket_pair();
  auto inner = ends ? open_channel(loop_, std::move(ends->first), {}) : nullptr;
  if (inner == nullptr) return owner_.on_http_error("no descriptor for a connection of TLS");
  bridges_.push_front(nullptr);
  const auto place = bridges_.begin();
  *place = std::make_shared<Bridge>(loop_, std::move(channel), std::move(inner),
                                    [this, place] { bridges_.erase(place); });
  add_to_daemon(std::move(ends->second), std::move(outer), *place);
}

void HttpServer::on_handshake_failed(const std::string& peer, std::string_view reason) {
  owner_.on_handshake_failed(peer, reason);
}

void HttpServer::add_to_daemon(os::Socket socket, HttpPeer peer,
                               std::weak_ptr<const Bridge> bridge) {
  if (connections_.size() >= kDaemonConnections) return;
  opening_peer_ = std::move(peer);
  opening_bridge_ = std::move(bridge);
  // The daemon owns the descriptor even if the call fails. It does not need the peer's address.
  const int descriptor = socket.release();
  MHD_add_connection(daemon_.get(), descriptor, nullptr, 0);
  daemon_.run_soon();
}

void HttpServer::on_accept_error(const std::string& reason, std::uint64_t) {
  owner_.on_http_error(reason);
}

void HttpServer::stream_begun() {
  const std::size_t streams = count(connections_, [](const HttpConnection& connection) {
    return connection.progress() == Progress::streaming;
  });
  if (streams > kMaxStreams) shut_down_oldest(connections_, Progress::streaming);
}

std::size_t HttpServer::budget_for(std::size_t bytes) const {
  // Equal parts: otherwise the first response would take the budget of each tick, and the last
  // would reach the idle timeout.
  const std::size_t responses = count(
      connections_, [](const HttpConnection& connection) { return connection.makes_parts(); });
  const std::size_t part = kBytesPerTick / std::max<std::size_t>(1, responses);
  return std::min({bytes, part, budget_left_});
}

HttpConnection* HttpServer::connection_opened(MHD_Connection* handle, int descriptor) {
  connections_.push_back(std::make_unique<HttpConnection>(
      *this, handle, descriptor, std::move(opening_peer_), std::move(opening_bridge_)));
  if (idle_timeout_ != kIdleTimeout) connections_.back()->set_idle_timeout(idle_timeout_);
  if (connections_.size() == 1) arm_total_timer();
  if (is_full()) {
    for (const auto& listener : listeners_) listener->pause();
    make_room();
  }
  return connections_.back().get();
}

void HttpServer::connection_closed(HttpConnection* connection) {
  if (connection->leaves_body_unread() && !connection->is_shut_down())
    linger(connection->descriptor());
  if (connection->waits()) --waits_;
  if (connection->is_kept()) --kept_;
  std::erase_if(connections_, [&](const auto& each) { return each.get() == connection; });
  arm_total_timer();
  if (is_full()) return;
  for (const auto& listener : listeners_) listener->resume();
}

bool HttpServer::may_keep(bool is_kept) const {
  return keep_alive_ > std::chrono::seconds::zero() && (is_kept || kept_ < kMaxKept);
}

void HttpServer::request_ended(const HttpConnection& connection) {
  const auto place = std::ranges::find_if(
      connections_, [&](const auto& each) { return each.get() == &connection; });
  std::rotate(place, place + 1, connections_.end());
  arm_total_timer();
}

void HttpServer::wait_begun() {
  ++waits_;
  if (is_full()) return;
  for (const auto& listener : listeners_) listener->resume();
}

// Frees a connection for the next client, unless a connection is already shut down.
void HttpServer::make_room() {
  const auto is_counted = [](const HttpConnection& connection) { return !connection.waits(); };
  if (count(connections_, is_counted) < kMaxConnections) return;
  const auto candidates = std::span(connections_).first(connections_.size() - kSpared);
  static_cast<void>(shut_down_oldest(candidates, Progress::receiving) ||
                    shut_down_oldest(candidates, Progress::responding) ||
                    shut_down_oldest(candidates, Progress::exchanging));
}

void HttpServer::shut_down_overdue() {
  const Time now = os::monotonic_now();
  for (const auto& connection : connections_) {
    if (!connection->is_stream() && now - connection->since() >= total_timeout_)
      connection->shut_down();
  }
  arm_total_timer();
}

void HttpServer::arm_total_timer() {
  const auto oldest =
      std::ranges::find_if(connections_, [](const auto& each) { return !each->is_stream(); });
  if (oldest == connections_.end()) return total_timer_.disarm();
  const Duration left = (*oldest)->since() + total_timeout_ - os::monotonic_now();
  // If the daemon has not closed a connection that was shut down, it is shut down again.
  total_timer_.arm((*oldest)->is_shut_down() ? std::max<Duration>(left, std::chrono::seconds(1))
                                             : left);
}

void HttpServer::connection_suspended() {
  if (!std::exchange(checks_suspended_, true)) check_timer_.arm(kCheckInterval);
}

void HttpServer::check_suspended() {
  std::vector<pollfd> watched;
  std::vector<HttpConnection*> suspended;
  for (const auto& connection : connections_) {
    if (!connection->is_suspended()) continue;
    watched.push_back({.fd = connection->descriptor(), .events = POLLRDHUP, .revents = 0});
    suspended.push_back(connection.get());
  }
  ::poll(watched.data(), watched.size(), 0);
  for (std::size_t i = 0; i < watched.size(); ++i) {
    if (suspended[i]->has_disconnected(watched[i].revents)) suspended[i]->shut_down();
  }
  checks_suspended_ = !suspended.empty();
  if (checks_suspended_) check_timer_.arm(kCheckInterval);
}

// Called before the daemon closes the descriptor.
void HttpServer::linger(int descriptor) {
  if (stopping_) return;
  os::Socket socket(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  auto channel = socket ? open_channel(loop_, std::move(socket), {}) : nullptr;
  if (channel == nullptr) return;
  if (lingering_.size() == kMaxLingering) lingering_.pop_front();
  const auto place = lingering_.insert(lingering_.end(), nullptr);
  *place = std::make_unique<LingeringClose>(loop_, std::move(channel),
                                            [this, place] { lingering_.erase(place); });
}

}  // namespace tubed::loop
