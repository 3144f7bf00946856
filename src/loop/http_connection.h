// HttpConnection: one connection of an HttpServer, with its requests, one after the other. It
// translates between the callbacks of libmicrohttpd and the owner's response or exchange. Part of
// HttpServer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <microhttpd.h>

#include "base/time.h"
#include "loop/http_exchange.h"
#include "loop/http_request.h"

namespace tubed::loop {

class Bridge;
class HttpServer;

class HttpConnection {
 public:
  enum class Progress : std::uint8_t {
    receiving,   // the header of the next request is not complete
    responding,  // with a text
    streaming,   // with a streamed response
    exchanging,  // an exchange has the request
  };

  // `bridge` leads to the client if `descriptor` is not the client's socket.
  HttpConnection(HttpServer& server, MHD_Connection* handle, int descriptor, HttpPeer peer,
                 std::weak_ptr<const Bridge> bridge);
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // --- For the server

  Progress progress() const { return progress_; }
  // When it was accepted, or when its last response was sent.
  Time since() const { return since_; }
  int descriptor() const { return descriptor_; }
  // True for an event stream.
  bool is_stream() const { return is_stream_; }
  // True if the exchange has called begin_waiting().
  bool waits() const { return waits_; }
  // True if the exchange waits for resume(), and libmicrohttpd does not watch the connection.
  bool is_suspended() const { return suspended_; }
  // True while a part of the response is being made or sent.
  bool makes_parts() const { return makes_parts_ && !suspended_ && exchange_ != nullptr; }
  // True if it occupies one of the server's kMaxKept places.
  bool is_kept() const { return is_kept_; }
  // True if the response was made before the body of the request was read.
  bool leaves_body_unread() const { return leaves_body_unread_; }
  // True if poll(2) has reported for a suspended connection that its client has disconnected.
  bool has_disconnected(short events) const;

  // Ends the connection in both directions; it is closed in a later tick. May be repeated.
  void shut_down();
  void set_idle_timeout(std::chrono::seconds timeout);
  bool is_shut_down() const { return is_shut_down_; }

  // --- For the exchange

  void resume();
  void begin_waiting();
  bool client_has_left();

  // --- For the callbacks of libmicrohttpd

  // The request line has arrived.
  void set_target(const char* target);
  // The access handler: called with the header of the request, then with each piece of the body,
  // then without a piece.
  MHD_Result on_request(const char* method, const char* version, const char* data,
                        std::size_t* bytes);
  // The content reader.
  ssize_t read_part(char* buffer, std::size_t bytes);
  // The response was sent, or the connection has ended before that.
  void on_completed(bool sent);

 private:
  struct FreeResponse {
    void operator()(MHD_Response* response) const { MHD_destroy_response(response); }
  };
  using ResponsePointer = std::unique_ptr<MHD_Response, FreeResponse>;

  MHD_Result begin(const char* method, const char* version);
  MHD_Result respond(HttpResponse response);
  bool reads_whole(const HttpHead& head);
  MHD_Result send_head(const HttpHead& head);
  MHD_Result send(unsigned status, const char* content_type, const HttpHeaders& headers,
                  bool has_length, ResponsePointer made);
  bool may_keep();
  void end_request();
  void note_end_of_input();
  void suspend();
  void wake();

  HttpServer& server_;
  MHD_Connection* handle_;
  const int descriptor_;
  Time since_;
  const HttpPeer peer_;
  const std::weak_ptr<const Bridge> bridge_;
  std::string target_;
  std::optional<HttpResponse> response_;    // to a request without a body, until its end
  std::unique_ptr<HttpExchange> exchange_;  // also makes streamed responses
  std::string part_;
  Progress progress_ = Progress::receiving;
  std::uint32_t requests_ = 0;
  bool is_kept_ = false;
  bool keeps_ = false;  // the connection stays open after the response
  bool is_head_ = false;
  bool is_stream_ = false;
  bool waits_ = false;
  bool leaves_body_unread_ = false;
  bool body_ended_ = false;
  bool makes_parts_ = false;
  bool part_is_read_ = false;  // `part_` was read before libmicrohttpd asked for it
  bool suspended_ = false;
  bool resumed_ = false;  // since the last call of the exchange
  bool is_shut_down_ = false;
};

}  // namespace tubed::loop
