// How an exchange runs
//
// libmicrohttpd calls on_request() for the header, for each piece of the body and at the end of the
// request, and read_part() for each part of the response. When the exchange has to wait, the
// connection is suspended: libmicrohttpd neither watches nor calls it until resume(). An exchange
// can wait in three phases:
// - body: take_body() has not taken all bytes; libmicrohttpd keeps the rest and passes it again.
// - head: the header is not known; on_request() is called again without data.
// - parts: next_part() has returned `wait`; read_part() is called again.
//
// libmicrohttpd closes a connection whose response is queued in the call with the header. The
// response to a request without a body is therefore queued in the next call, at the end of the
// request, which follows at once. A response that leaves the body unread is queued with the header:
// no part of that body can be taken for a request.
//
// The exchange may call resume() within the call that makes it wait, before the connection is
// suspended. `resumed_` records that, and suspend() resumes at once.
//
// When libmicrohttpd resumes a connection before the response has begun, it reads from it, and
// closes it if the client has ended its output. A client that ends its output while an exchange
// waits therefore counts as disconnected, and HttpServer looks for such clients.
#include "loop/http_connection.h"

#include <cstring>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "base/assert.h"
#include "base/planted.h"
#include "loop/bridge.h"
#include "loop/http_framing.h"
#include "loop/http_server.h"
#include "os/clock.h"

namespace tubed::loop {

namespace {

// A body up to this size is sent with the header. The daemon's buffer of a response is larger.
constexpr std::uint64_t kMostAtOnce = 8192;

// The exchange of a streamed response, which begins at once.
class StreamedResponse final : public HttpExchange {
 public:
  using NextPart = std::function<bool(std::size_t bytes, std::string& text)>;

  explicit StreamedResponse(NextPart next_part) : next_part_(std::move(next_part)) {}

  std::optional<HttpHead> head() override { return std::nullopt; }
  Next next_part(std::size_t bytes, std::string& text) override {
    return next_part_(bytes, text) ? Next::part : Next::end;
  }

 private:
  NextPart next_part_;
};

ssize_t read_part_of(void* connection, std::uint64_t, char* buffer, std::size_t bytes) {
  return static_cast<HttpConnection*>(connection)->read_part(buffer, bytes);
}

}  // namespace

void HttpExchange::resume() {
  if (connection_ != nullptr) connection_->resume();
}

void HttpExchange::begin_waiting() {
  if (connection_ != nullptr) connection_->begin_waiting();
}

bool HttpExchange::client_has_left() {
  return connection_ != nullptr && connection_->client_has_left();
}

HttpConnection::HttpConnection(HttpServer& server, MHD_Connection* handle, int descriptor,
                               HttpPeer peer, std::weak_ptr<const Bridge> bridge)
    : server_(server),
      handle_(handle),
      descriptor_(descriptor),
      since_(os::monotonic_now()),
      peer_(std::move(peer)),
      bridge_(std::move(bridge)) {}

MHD_Result HttpConnection::on_request(const char* method, const char* version, const char* data,
                                      std::size_t* bytes) {
  if (is_shut_down_) return MHD_NO;
  if (progress_ == Progress::receiving) return begin(method, version);
  if (response_) return respond(*std::exchange(response_, std::nullopt));
  TUBED_ASSERT(progress_ == Progress::exchanging);
  resumed_ = false;
  if (*bytes > 0) {
    const std::size_t taken = exchange_->take_body(std::string_view(data, *bytes));
    TUBED_ASSERT(taken <= *bytes);
    *bytes -= taken;
    if (*bytes > 0) suspend();
    return MHD_YES;
  }
  if (!std::exchange(body_ended_, true)) exchange_->end_body();
  const std::optional<HttpHead> head = exchange_->head();
  if (head) return send_head(*head);
  suspend();
  return MHD_YES;
}

MHD_Result HttpConnection::begin(const char* method, const char* version) {
  const HttpRequest request(handle_, method, target_, peer_);
  ++requests_;
  is_head_ = request.is_head();
  if (auto refusal = refuse_framing(request, handle_, method, version)) {
    leaves_body_unread_ = true;
    return respond(std::move(*refusal));
  }
  HttpReply reply = server_.respond(request);
  if (auto* response = std::get_if<HttpResponse>(&reply)) {
    leaves_body_unread_ = request.body_bytes() != 0;
    if (leaves_body_unread_) return respond(std::move(*response));
    progress_ = Progress::responding;
    response_ = std::move(*response);
    return MHD_YES;
  }
  exchange_ = std::move(std::get<std::unique_ptr<HttpExchange>>(reply));
  TUBED_ASSERT(exchange_ != nullptr);
  exchange_->connection_ = this;
  is_stream_ = exchange_->is_stream();
  progress_ = Progress::exchanging;
  return MHD_YES;
}

MHD_Result HttpConnection::respond(HttpResponse response) {
  if (response.next_part) {
    progress_ = Progress::streaming;
    exchange_ = std::make_unique<StreamedResponse>(std::move(response.next_part));
    server_.stream_begun();
    return send_head({.status = response.status,
                      .content_type = response.content_type,
                      .headers = std::move(response.headers)});
  }
  progress_ = Progress::responding;
  const bool is_persistent = !response.persistent.empty();
  const std::string_view text = is_persistent ? response.persistent : response.text;
  // libmicrohttpd does not write to the text.
  return send(response.status, response.content_type, response.headers, true,
              ResponsePointer(MHD_create_response_from_buffer(
                  text.size(), const_cast<char*>(text.data()),
                  is_persistent ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY)));
}

// Reads the body of a short response whose length is known. Returns true if `part_` is the whole
// body: it is sent together with the header, in one write and one record of TLS. Otherwise
// read_part() begins with `part_`.
bool HttpConnection::reads_whole(const HttpHead& head) {
  part_.clear();
  const std::uint64_t length = head.length.value_or(0);
  if (length == 0 || length > kMostAtOnce || is_head_) return false;
  if (server_.budget_for(length) < length) return false;
  resumed_ = false;
  while (part_.size() < length) {
    if (exchange_->next_part(length - part_.size(), part_) != HttpExchange::Next::part) break;
  }
  TUBED_ASSERT(part_.size() <= length);
  server_.spend(part_.size());
  part_is_read_ = part_.size() < length && !part_.empty();
  return part_.size() == length;
}

MHD_Result HttpConnection::send_head(const HttpHead& head) {
  if (reads_whole(head)) {
    return send(head.status, head.content_type, head.headers, true,
                ResponsePointer(MHD_create_response_from_buffer(part_.size(), part_.data(),
                                                                MHD_RESPMEM_MUST_COPY)));
  }
  makes_parts_ = true;
  ResponsePointer made(MHD_create_response_from_callback(head.length.value_or(MHD_SIZE_UNKNOWN),
                                                         HttpServer::kBytesPerTick, &read_part_of,
                                                         this, nullptr));
  return send(head.status, head.content_type, head.headers, head.length.has_value(),
              std::move(made));
}

MHD_Result HttpConnection::send(unsigned status, const char* content_type,
                                const HttpHeaders& headers, bool has_length, ResponsePointer made) {
  if (made == nullptr) return MHD_NO;  // no memory
  if (content_type != nullptr)
    MHD_add_response_header(made.get(), MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
  for (const auto& [name, value] : headers)
    MHD_add_response_header(made.get(), name.c_str(), value.c_str());
  // Otherwise libmicrohttpd would send the end of a chunked body, without the body.
  const bool cuts_chunks = is_head_ && !has_length;
  if (cuts_chunks) MHD_set_response_options(made.get(), MHD_RF_HTTP_VERSION_1_0_ONLY, MHD_RO_END);
  keeps_ = !leaves_body_unread_ && !cuts_chunks && !is_stream_ && may_keep();
  if (!keeps_) MHD_add_response_header(made.get(), MHD_HTTP_HEADER_CONNECTION, "close");
  return MHD_queue_response(handle_, status, made.get());
}

// Takes a place among the kept connections.
bool HttpConnection::may_keep() {
  if (requests_ >= HttpServer::kMaxRequests || !server_.may_keep(is_kept_)) return false;
  if (!std::exchange(is_kept_, true)) server_.connection_kept();
  return true;
}

ssize_t HttpConnection::read_part(char* buffer, std::size_t bytes) {
  server_.note_call();
  if (is_shut_down_) return MHD_CONTENT_READER_END_WITH_ERROR;
  if (std::exchange(part_is_read_, false)) {
    TUBED_ASSERT(part_.size() <= bytes);
    std::memcpy(buffer, part_.data(), part_.size());
    return static_cast<ssize_t>(part_.size());
  }
  bytes = server_.budget_for(bytes);
  if (bytes == 0) return 0;  // libmicrohttpd asks again in the next tick
  part_.clear();
  resumed_ = false;
  const HttpExchange::Next next = exchange_->next_part(bytes, part_);
  TUBED_ASSERT(part_.size() <= bytes);
  if (next == HttpExchange::Next::end) return MHD_CONTENT_READER_END_OF_STREAM;
  if (next == HttpExchange::Next::wait) {
    TUBED_ASSERT(part_.empty());
    suspend();
  }
  server_.spend(part_.size());
  std::memcpy(buffer, part_.data(), part_.size());
  return static_cast<ssize_t>(part_.size());
}

void HttpConnection::suspend() {
  MHD_suspend_connection(handle_);
  suspended_ = true;
  server_.connection_suspended();
  if (std::exchange(resumed_, false)) wake();
}

void HttpConnection::resume() {
  resumed_ = !suspended_;
  wake();
}

void HttpConnection::begin_waiting() {
  if (TUBED_PLANTED(waits_take_requests_places)) return;
  waits_ = true;
  server_.wait_begun();
}

void HttpConnection::wake() {
  if (!std::exchange(suspended_, false)) return;
  MHD_resume_connection(handle_);
  server_.connection_resumed();
}

bool HttpConnection::has_disconnected(short events) const {
  if ((events & (POLLHUP | POLLERR)) != 0) return true;
  if ((events & POLLRDHUP) == 0) return false;
  // The client has ended its output, but the kernel may still hold the rest of the body.
  char byte = 0;
  return body_ended_ || ::recv(descriptor_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

// A TLS client may have left while the bridge has not run since.
bool HttpConnection::client_has_left() {
  pollfd watched{.fd = descriptor_, .events = POLLRDHUP, .revents = 0};
  ::poll(&watched, 1, 0);
  const std::shared_ptr<const Bridge> bridge = bridge_.lock();
  const bool has_left =
      has_disconnected(watched.revents) || (bridge != nullptr && bridge->outer_has_ended());
  if (has_left) shut_down();
  return has_left;
}

void HttpConnection::on_completed(bool sent) {
  if (sent && exchange_ != nullptr) exchange_->on_sent();
  exchange_.reset();
  if (sent && keeps_) end_request();
}

// A client that wants the connection closed is not known here: libmicrohttpd closes it.
void HttpConnection::end_request() {
  progress_ = Progress::receiving;
  since_ = os::monotonic_now();
  target_.clear();
  keeps_ = is_stream_ = body_ended_ = makes_parts_ = part_is_read_ = resumed_ = false;
  if (std::exchange(waits_, false)) server_.wait_ended();
  set_idle_timeout(server_.keep_alive());
  note_end_of_input();
  server_.request_ended(*this);
}

// If the client has ended its output while its request was served, libmicrohttpd has missed that
// event and would keep the connection: this causes another one. Requests that libmicrohttpd has
// read are still answered.
void HttpConnection::note_end_of_input() {
  pollfd watched{.fd = descriptor_, .events = POLLRDHUP, .revents = 0};
  if (::poll(&watched, 1, 0) <= 0) return;
  char byte = 0;
  if (::recv(descriptor_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0) ::shutdown(descriptor_, SHUT_RD);
}

void HttpConnection::set_target(const char* target) {
  target_ = target == nullptr ? "" : target;
  if (requests_ > 0) set_idle_timeout(server_.idle_timeout());
}

void HttpConnection::shut_down() {
  is_shut_down_ = true;
  ::shutdown(descriptor_, SHUT_RDWR);
  wake();
}

void HttpConnection::set_idle_timeout(std::chrono::seconds timeout) {
  MHD_set_connection_option(handle_, MHD_CONNECTION_OPTION_TIMEOUT,
                            static_cast<unsigned>(timeout.count()));
}

}  // namespace tubed::loop
