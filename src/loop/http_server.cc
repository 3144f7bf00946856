// How the HTTP server works
//
// libmicrohttpd parses requests and formats responses. It runs in its external mode: it has no
// thread and no listening socket, only an epoll descriptor and a timeout. `events_` watches that
// descriptor, `daemon_timer_` has the timeout, and each calls run_daemon(), which lets the daemon
// do its work. If the daemon has more to do at once, `idle_` calls it again in the next tick; until
// then events and timeouts do not call it, so it runs once per tick.
//
// A connection goes through these steps; Progress has their names.
// 1. A Listener accepts it and on_connection() gives it to the daemon, which calls on_notice().
// 2. receiving: the daemon reads the request and calls on_request() once its header is complete.
// 3. responding: a response with a text is handed to the daemon as a whole.
//    streaming: the daemon calls read_stream() in later ticks. All streamed responses together make
//    kBytesPerTick bytes per tick, in equal parts, so that the loop serves its other work too.
// 4. The daemon closes the connection and calls on_notice() again. Every response has the header
//    `Connection: close`, so that a scraper does not occupy a connection between two scrapes.
//
// Slow clients must not keep a health check from being answered. Therefore:
// - When kMaxConnections are open, accepting pauses, and the oldest connection without a complete
//   request is shut down.
// - When more than kMaxStreams responses are streamed, the oldest of these is shut down.
// - The daemon closes a connection that moves no byte for the idle timeout. `total_timer_` ends a
//   connection that moves a byte now and then after the total timeout.
//
// A connection of TLS is a TlsChannel, and a Bridge passes its bytes to one end of a socket pair
// whose other end the daemon has: certificates, limits and versions are those of all listeners.
//
// To shut down means shutdown(2) only: the daemon owns the descriptor, sees the end and closes it.
#include "loop/http_server.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <microhttpd.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "os/clock.h"

namespace tubed::loop {

void HttpExchange::resume() {}

namespace {

// Memory of one connection, for the header of its request; half of it buffers a streamed response.
constexpr std::size_t kConnectionBytes = 32 * 1024;

// For a connection that cannot be served because no descriptor is free. The Listener adds the last
// line end.
constexpr std::string_view kNoDescriptor =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n";

struct ResponseStream {
  HttpServer& server;
  std::function<bool(std::size_t bytes, std::string& text)> next_part;
  std::string text;
};

// Fills the daemon's buffer with the next part. 0: the daemon asks again in the next tick.
ssize_t read_stream(void* context, std::uint64_t, char* buffer, std::size_t bytes) {
  auto& stream = *static_cast<ResponseStream*>(context);
  bytes = stream.server.take_budget(bytes);
  if (bytes == 0) return 0;
  stream.text.clear();
  if (!stream.next_part(bytes, stream.text)) return MHD_CONTENT_READER_END_OF_STREAM;
  TUBED_ASSERT(stream.text.size() <= bytes);
  std::memcpy(buffer, stream.text.data(), stream.text.size());
  return static_cast<ssize_t>(stream.text.size());
}

void free_stream(void* context) {
  delete static_cast<ResponseStream*>(context);
}

// Null: no memory.
MHD_Response* make_response(HttpServer& server, HttpResponse& response) {
  if (!response.next_part) {
    return MHD_create_response_from_buffer(response.text.size(), response.text.data(),
                                           MHD_RESPMEM_MUST_COPY);
  }
  auto stream =
      std::make_unique<ResponseStream>(ResponseStream{server, std::move(response.next_part), {}});
  MHD_Response* made = MHD_create_response_from_callback(
      MHD_SIZE_UNKNOWN, HttpServer::kBytesPerTick, &read_stream, stream.get(), &free_stream);
  if (made != nullptr) static_cast<void>(stream.release());  // free_stream() deletes it
  return made;
}

MHD_Result send_response(HttpServer& server, MHD_Connection* connection, HttpResponse response,
                         bool is_head) {
  const std::unique_ptr<MHD_Response, decltype(&MHD_destroy_response)> made(
      make_response(server, response), &MHD_destroy_response);
  if (made == nullptr) return MHD_NO;
  MHD_add_response_header(made.get(), MHD_HTTP_HEADER_CONTENT_TYPE, response.content_type);
  MHD_add_response_header(made.get(), MHD_HTTP_HEADER_CONNECTION, "close");
  // Otherwise the daemon would send the end of a chunked body, without a body.
  if (is_head) MHD_set_response_options(made.get(), MHD_RF_HTTP_VERSION_1_0_ONLY, MHD_RO_END);
  for (const auto& [name, value] : response.headers)
    MHD_add_response_header(made.get(), name.c_str(), value.c_str());
  return MHD_queue_response(connection, response.status, made.get());
}

int descriptor_of(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

MHD_Result on_request(void* context, MHD_Connection* connection, const char* url,
                      const char* method, const char*, const char*, std::size_t*, void**) {
  auto& server = *static_cast<HttpServer*>(context);
  const bool is_head = std::string_view(method) == MHD_HTTP_METHOD_HEAD;
  server.request_received(descriptor_of(connection), false);
  HttpReply reply = server.respond(HttpRequest(connection, method, url, {}));
  if (!std::holds_alternative<HttpResponse>(reply)) return MHD_NO;
  auto& response = std::get<HttpResponse>(reply);
  if (response.next_part) server.request_received(descriptor_of(connection), true);
  return send_response(server, connection, std::move(response), is_head);
}

void on_notice(void* context, MHD_Connection* connection, void**,
               MHD_ConnectionNotificationCode code) {
  auto& server = *static_cast<HttpServer*>(context);
  const int descriptor = descriptor_of(connection);
  code == MHD_CONNECTION_NOTIFY_STARTED ? server.connection_opened(descriptor)
                                        : server.connection_closed(descriptor);
}

MHD_Daemon* start_daemon(HttpServer& server, Duration idle_timeout) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(idle_timeout).count();
  // Without MHD_USE_ERROR_LOG the daemon prints nothing about malformed requests.
  return MHD_start_daemon(
      MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, nullptr, nullptr, &on_request, &server,
      MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(HttpServer::kMaxConnections),
      MHD_OPTION_CONNECTION_TIMEOUT, static_cast<unsigned>(seconds),
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, MHD_OPTION_NOTIFY_CONNECTION,
      &on_notice, &server, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
}

}  // namespace

void HttpServer::StopDaemon::operator()(MHD_Daemon* daemon) const {
  MHD_stop_daemon(daemon);
}

HttpServer::HttpServer(Loop& loop, HttpOwner& owner, Duration idle_timeout, Duration total_timeout)
    : loop_(loop),
      owner_(owner),
      total_timeout_(total_timeout),
      handshakes_(loop),
      total_timer_(loop, [this] { shut_down_overdue(); }),
      daemon_(start_daemon(*this, idle_timeout)),
      daemon_timer_(loop,
                    [this] {
                      if (!work_pending_) run_daemon();
                    }),
      idle_(this),
      events_(this) {
  TUBED_ASSERT(daemon_ != nullptr);
  const int epoll = MHD_get_daemon_info(daemon_.get(), MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
  TUBED_ASSERT(uv_poll_init(loop.uv(), events_.get(), epoll) == 0);
  uv_idle_init(loop.uv(), idle_.get());
  uv_poll_start(events_.get(), UV_READABLE, [](uv_poll_t* handle, int, int) {
    auto& server = owner_of<HttpServer>(handle);
    if (!server.work_pending_) server.run_daemon();
  });
}

HttpServer::~HttpServer() {
  // Before the daemon stops: the end of a connection would resume a listener.
  listeners_.clear();
}

void HttpServer::listen(os::Socket socket, std::string path) {
  listeners_.push_back(
      std::make_unique<Listener>(loop_, std::move(socket), std::move(path), refusal(), *this));
}

void HttpServer::set_tls(std::shared_ptr<const TlsContext> tls) {
  tls_ = std::move(tls);
  // A client of TLS cannot read a response before its handshake is done.
  for (const auto& listener : listeners_) listener->set_refusal(refusal());
}

std::string_view HttpServer::refusal() const {
  return tls_ == nullptr ? kNoDescriptor : std::string_view();
}

void HttpServer::on_connection(os::Socket socket) {
  if (tls_ == nullptr) return add_to_daemon(std::move(socket));
  if (!handshakes_.begin(std::move(socket), tls_, *this))
    owner_.on_http_error("the kernel watches no more connections");
}

void HttpServer::on_secured(std::unique_ptr<Channel> channel, const TlsPeer&) {
  auto ends = os::socket_pair();
  auto inner = ends ? open_channel(loop_, std::move(ends->first), {}) : nullptr;
  if (inner == nullptr) return owner_.on_http_error("no descriptor for a connection of TLS");
  bridges_.push_front(nullptr);
  const auto place = bridges_.begin();
  *place = std::make_unique<Bridge>(loop_, std::move(channel), std::move(inner),
                                    [this, place] { bridges_.erase(place); });
  add_to_daemon(std::move(ends->second));
}

void HttpServer::on_handshake_failed(const std::string& peer, std::string_view reason) {
  owner_.on_handshake_failed(peer, reason);
}

void HttpServer::add_to_daemon(os::Socket socket) {
  // The daemon owns the descriptor even if the call fails. It needs no address of the peer.
  const int descriptor = socket.release();
  MHD_add_connection(daemon_.get(), descriptor, nullptr, 0);
  set_work_pending(true);
}

void HttpServer::on_accept_error(const std::string& reason, std::uint64_t) {
  owner_.on_http_error(reason);
}

std::size_t HttpServer::take_budget(std::size_t bytes) {
  // In equal parts. Otherwise the first stream would take everything in each tick, and the last
  // stream would reach the idle timeout.
  const std::size_t part = kBytesPerTick / std::max<std::size_t>(1, streams());
  const std::size_t taken = std::min({bytes, part, budget_left_});
  budget_left_ -= taken;
  return taken;
}

void HttpServer::connection_opened(int descriptor) {
  connections_.push_back({descriptor, os::monotonic_now()});
  if (connections_.size() == 1) arm_total_timer();
  if (connections_.size() < kMaxConnections) return;
  for (const auto& listener : listeners_) listener->pause();
  shut_down_oldest(Progress::receiving);  // which makes room for another connection
}

void HttpServer::request_received(int descriptor, bool is_streamed) {
  const auto found = std::ranges::find(connections_, descriptor, &HttpConnection::descriptor);
  TUBED_ASSERT(found != connections_.end());
  if (found->progress == Progress::ended) return;
  found->progress = is_streamed ? Progress::streaming : Progress::responding;
  if (streams() > kMaxStreams) shut_down_oldest(Progress::streaming);
}

void HttpServer::connection_closed(int descriptor) {
  const bool was_full = connections_.size() == kMaxConnections;
  std::erase_if(connections_, [&](const HttpConnection& connection) {
    return connection.descriptor == descriptor;
  });
  arm_total_timer();
  if (!was_full) return;
  for (const auto& listener : listeners_) listener->resume();
}

void HttpServer::shut_down(HttpConnection& connection) {
  connection.progress = Progress::ended;
  ::shutdown(connection.descriptor, SHUT_RDWR);
}

void HttpServer::shut_down_oldest(Progress progress) {
  const auto oldest = std::ranges::find(connections_, progress, &HttpConnection::progress);
  if (oldest != connections_.end()) shut_down(*oldest);
}

std::size_t HttpServer::streams() const {
  return static_cast<std::size_t>(
      std::ranges::count(connections_, Progress::streaming, &HttpConnection::progress));
}

void HttpServer::shut_down_overdue() {
  const Time now = os::monotonic_now();
  for (HttpConnection& connection : connections_) {
    if (now - connection.since >= total_timeout_) shut_down(connection);
  }
  // A connection that the daemon has not closed by then is shut down again.
  total_timer_.arm(std::chrono::seconds(1));
}

void HttpServer::arm_total_timer() {
  if (connections_.empty()) return total_timer_.disarm();
  total_timer_.arm(connections_.front().since + total_timeout_ - os::monotonic_now());
}

void HttpServer::run_daemon() {
  budget_left_ = kBytesPerTick;
  MHD_run(daemon_.get());
  MHD_UNSIGNED_LONG_LONG milliseconds = 0;
  const bool waits = MHD_get_timeout(daemon_.get(), &milliseconds) == MHD_YES;
  set_work_pending(waits && milliseconds == 0);
  if (waits && milliseconds > 0) {
    daemon_timer_.arm(std::chrono::milliseconds(milliseconds));
  } else {
    daemon_timer_.disarm();
  }
}

void HttpServer::set_work_pending(bool pending) {
  if (std::exchange(work_pending_, pending) == pending) return;
  if (pending) {
    uv_idle_start(idle_.get(),
                  [](uv_idle_t* handle) { owner_of<HttpServer>(handle).run_daemon(); });
  } else {
    uv_idle_stop(idle_.get());
  }
}

}  // namespace tubed::loop
