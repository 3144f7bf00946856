#include "loop/http_server.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <microhttpd.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "os/clock.h"

namespace tubed::loop {

namespace {

// For a request's lines, and a part of the answer in half of it.
constexpr std::size_t kConnectionBytes = 32 * 1024;

// To whom no descriptor is left for. The Listener adds the last line end.
constexpr std::string_view kNoDescriptor =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n";

// An answer that is made while it is sent.
struct Pieces {
  HttpServer& server;
  std::function<bool(std::size_t bytes, std::string& text)> next;
  std::string text;
};

ssize_t take_piece(void* context, std::uint64_t, char* block, std::size_t bytes) {
  auto& pieces = *static_cast<Pieces*>(context);
  bytes = pieces.server.take_of_block(bytes);
  if (bytes == 0) return 0;  // it asks again in the next turn
  pieces.text.clear();
  if (!pieces.next(bytes, pieces.text)) return MHD_CONTENT_READER_END_OF_STREAM;
  TUBED_ASSERT(pieces.text.size() <= bytes);  // 0: it asks again in the next turn, too
  std::memcpy(block, pieces.text.data(), pieces.text.size());
  return static_cast<ssize_t>(pieces.text.size());
}

void forget_pieces(void* context) {
  delete static_cast<Pieces*>(context);
}

MHD_Response* body_of(HttpServer& server, HttpResponse& response) {
  if (!response.next_piece) {
    return MHD_create_response_from_buffer(response.text.size(), response.text.data(),
                                           MHD_RESPMEM_MUST_COPY);
  }
  auto pieces = std::make_unique<Pieces>(Pieces{server, std::move(response.next_piece), {}});
  MHD_Response* body = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, HttpServer::kBlockBytes,
                                                         &take_piece, pieces.get(), &forget_pieces);
  if (body != nullptr) static_cast<void>(pieces.release());  // it is the response's now
  return body;
}

MHD_Result reply(HttpServer& server, MHD_Connection* connection, HttpResponse response,
                 bool is_head, bool tell_methods = false) {
  const std::unique_ptr<MHD_Response, decltype(&MHD_destroy_response)> reply(
      body_of(server, response), &MHD_destroy_response);
  if (reply == nullptr) return MHD_NO;
  MHD_add_response_header(reply.get(), MHD_HTTP_HEADER_CONTENT_TYPE, response.content_type);
  // Who asks every few seconds would otherwise keep one of few places all the time.
  MHD_add_response_header(reply.get(), MHD_HTTP_HEADER_CONNECTION, "close");
  // Chunks would be ended also where there are none.
  if (is_head) MHD_set_response_options(reply.get(), MHD_RF_HTTP_VERSION_1_0_ONLY, MHD_RO_END);
  if (tell_methods) MHD_add_response_header(reply.get(), MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  return MHD_queue_response(connection, response.status, reply.get());
}

int descriptor_of(MHD_Connection* connection) {
  return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

bool has_body(MHD_Connection* connection) {
  const auto header = [&](const char* name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  };
  const char* length = header(MHD_HTTP_HEADER_CONTENT_LENGTH);
  return header(MHD_HTTP_HEADER_TRANSFER_ENCODING) != nullptr ||
         (length != nullptr && std::string_view(length) != "0");
}

MHD_Result on_request(void* context, MHD_Connection* connection, const char* url,
                      const char* method, const char*, const char*, std::size_t*, void**) {
  auto& server = *static_cast<HttpServer*>(context);
  const std::string_view word = method;
  const bool is_head = word == MHD_HTTP_METHOD_HEAD;
  server.request_taken(descriptor_of(connection), false);
  if (word != MHD_HTTP_METHOD_GET && !is_head) {
    return reply(server, connection, {.status = 405, .text = "only GET and HEAD\n"}, is_head, true);
  }
  if (has_body(connection)) {
    return reply(server, connection, {.status = 413, .text = "a request has no body here\n"},
                 is_head);
  }
  HttpResponse response = server.answer(url);
  if (response.next_piece) server.request_taken(descriptor_of(connection), true);
  return reply(server, connection, std::move(response), is_head);
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
  // Without MHD_USE_ERROR_LOG it tells nobody of broken requests.
  return MHD_start_daemon(
      MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, nullptr, nullptr, &on_request, &server,
      MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(HttpServer::kMaxConnections),
      MHD_OPTION_CONNECTION_TIMEOUT, static_cast<unsigned>(seconds),
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, MHD_OPTION_NOTIFY_CONNECTION,
      &on_notice, &server, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
}

}  // namespace

void HttpServer::Stop::operator()(MHD_Daemon* daemon) const {
  MHD_stop_daemon(daemon);
}

HttpServer::HttpServer(Loop& loop, HttpOwner& owner, Duration idle_timeout, Duration whole_timeout)
    : loop_(loop),
      owner_(owner),
      whole_timeout_(whole_timeout),
      whole_timer_(loop, [this] { end_the_overdue(); }),
      daemon_(start_daemon(*this, idle_timeout)),
      // What is left over takes its turn, and sees that time has passed as well.
      timer_(loop,
             [this] {
               if (!has_work_) work();
             }),
      idle_(this),
      events_(this) {
  TUBED_ASSERT(daemon_ != nullptr);
  const int epoll = MHD_get_daemon_info(daemon_.get(), MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
  TUBED_ASSERT(uv_poll_init(loop.uv(), events_.get(), epoll) == 0);
  uv_idle_init(loop.uv(), idle_.get());
  uv_poll_start(events_.get(), UV_READABLE, [](uv_poll_t* handle, int, int) {
    auto& server = owner_of<HttpServer>(handle);
    // What is left over takes its turn, and sees the new events as well.
    if (!server.has_work_) server.work();
  });
}

HttpServer::~HttpServer() {
  // First of all: a connection that goes would let the next one in.
  listeners_.clear();
}

void HttpServer::listen(os::Socket socket, std::string path) {
  listeners_.push_back(
      std::make_unique<Listener>(loop_, std::move(socket), std::move(path), kNoDescriptor, *this));
}

void HttpServer::on_connection(os::Socket socket) {
  // The daemon owns it from here on, whatever comes of it. Its address is for nobody.
  const int descriptor = socket.release();
  MHD_add_connection(daemon_.get(), descriptor, nullptr, 0);
  work_next_turn(true);
}

void HttpServer::on_accept_trouble(const std::string& reason, std::uint64_t) {
  owner_.on_http_trouble(reason);
}

std::size_t HttpServer::take_of_block(std::size_t bytes) {
  // Who stands first would else take it all each turn, and the last be closed for being idle.
  const std::size_t part = kBlockBytes / std::max<std::size_t>(1, pages());
  const std::size_t taken = std::min({bytes, part, block_left_});
  block_left_ -= taken;
  return taken;
}

void HttpServer::connection_opened(int descriptor) {
  connections_.push_back({descriptor, os::monotonic_now()});
  if (connections_.size() == 1) watch_the_oldest();
  if (connections_.size() < kMaxConnections) return;
  for (const auto& listener : listeners_) listener->pause();
  end_the_oldest_in(Stage::request);  // it makes room for the next one
}

void HttpServer::request_taken(int descriptor, bool is_page) {
  const auto found = std::ranges::find(connections_, descriptor, &Open::descriptor);
  TUBED_ASSERT(found != connections_.end());
  if (found->stage == Stage::ended) return;
  found->stage = is_page ? Stage::page : Stage::short_answer;
  if (pages() > kMaxPages) end_the_oldest_in(Stage::page);
}

void HttpServer::connection_closed(int descriptor) {
  const bool was_full = connections_.size() == kMaxConnections;
  std::erase_if(connections_, [&](const Open& one) { return one.descriptor == descriptor; });
  watch_the_oldest();
  if (!was_full) return;
  for (const auto& listener : listeners_) listener->resume();
}

// The daemon sees the end, and closes it.
void HttpServer::end(Open& connection) {
  connection.stage = Stage::ended;
  ::shutdown(connection.descriptor, SHUT_RDWR);
}

void HttpServer::end_the_oldest_in(Stage stage) {
  const auto oldest = std::ranges::find(connections_, stage, &Open::stage);
  if (oldest != connections_.end()) end(*oldest);
}

std::size_t HttpServer::pages() const {
  return static_cast<std::size_t>(std::ranges::count(connections_, Stage::page, &Open::stage));
}

// A client that sends or takes a byte now and then is never idle, and would keep its place.
void HttpServer::end_the_overdue() {
  const Time now = os::monotonic_now();
  for (Open& one : connections_) {
    if (now - one.since >= whole_timeout_) end(one);
  }
  // One that the daemon still has then is tried again.
  whole_timer_.arm(std::chrono::seconds(1));
}

void HttpServer::watch_the_oldest() {
  if (connections_.empty()) return whole_timer_.disarm();
  whole_timer_.arm(connections_.front().since + whole_timeout_ - os::monotonic_now());
}

void HttpServer::work() {
  block_left_ = kBlockBytes;
  MHD_run(daemon_.get());
  MHD_UNSIGNED_LONG_LONG milliseconds = 0;
  const bool waits = MHD_get_timeout(daemon_.get(), &milliseconds) == MHD_YES;
  work_next_turn(waits && milliseconds == 0);
  if (waits && milliseconds > 0) {
    timer_.arm(std::chrono::milliseconds(milliseconds));
  } else {
    timer_.disarm();
  }
}

void HttpServer::work_next_turn(bool asked) {
  if (std::exchange(has_work_, asked) == asked) return;
  if (asked) {
    uv_idle_start(idle_.get(), [](uv_idle_t* handle) { owner_of<HttpServer>(handle).work(); });
  } else {
    uv_idle_stop(idle_.get());
  }
}

}  // namespace tubed::loop
