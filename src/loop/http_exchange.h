// HttpResponse: a response that is known at once. HttpExchange: a request whose body is read, or
// whose response is known later or made in parts.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tubed::loop {

class HttpConnection;

// Names and values. The server adds Connection, Date, Content-Length and Transfer-Encoding.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  unsigned status = 200;
  const char* content_type = "text/plain; charset=utf-8";  // a literal; null: no such header
  std::string text = {};
  // If set, replaces `text`: a text that outlives the server and is not copied.
  std::string_view persistent = {};
  // If set, makes a streamed response: appends the next part, at most `bytes` bytes, and returns
  // true, or returns false at the end. Called in later ticks; destroyed when the response is sent
  // or the connection is closed.
  std::function<bool(std::size_t bytes, std::string& text)> next_part = {};
  HttpHeaders headers = {};
};

// The header of an exchange's response.
struct HttpHead {
  unsigned status = 200;
  const char* content_type = "text/plain; charset=utf-8";  // a literal; null: no such header
  HttpHeaders headers = {};
  std::optional<std::uint64_t> length = {};  // of the body, in bytes; nothing: not known yet
};

// The server owns an exchange. It destroys it when its response is sent or its connection is
// closed, even while the exchange waits. It calls these functions in this order, in the loop's
// thread:
// 1. take_body(), for each piece of the body that arrives;
// 2. end_body(), once;
// 3. head(), until it returns the header;
// 4. next_part(), until the response is complete; never for a HEAD.
// 5. on_sent(), if the kernel has taken the whole response.
// A client that ends its output before the response has begun counts as disconnected while the
// exchange waits.
class HttpExchange {
 public:
  HttpExchange() = default;
  virtual ~HttpExchange() = default;
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  // Returns how many bytes it has taken, from the front. If it does not take all, it is called
  // again with the rest after resume(). Never called without a body. The default drops the body.
  virtual std::size_t take_body(std::string_view bytes) { return bytes.size(); }
  // Called when the whole body was taken, and for a request without a body.
  virtual void end_body() {}
  // Returns nothing while the header is not known; it is called again after resume().
  virtual std::optional<HttpHead> head() = 0;

  enum class Next : std::uint8_t {
    part,  // a part was appended
    wait,  // nothing was appended; call again after resume()
    end,   // nothing was appended; the response is complete
  };
  // Appends the next part of the body, at most `bytes` bytes, to `text`. A response of announced
  // length is complete after that many bytes, without a further call; if it ends earlier, the
  // connection is closed.
  virtual Next next_part(std::size_t bytes, std::string& text) = 0;

  // True for a response without an end, such as server-sent events: the total timeout does not
  // apply. Must not change.
  virtual bool is_stream() const { return false; }

  // The kernel has taken the whole response, and the exchange is about to be destroyed. The client
  // may still not have received the response.
  virtual void on_sent() {}

 protected:
  // Declares that the exchange waits for an event that may be far away, such as a job. Until its
  // end it counts in HttpServer::waits(), which its owner bounds, and takes no place from other
  // requests. Called at most once, after the header of the request was taken. O(listeners).
  void begin_waiting();

  // Checks whether the client has disconnected; if so, returns true, and the connection is closed
  // in a later tick. For a response that must not be lost. Precondition: the body was taken, and
  // head() has not returned the header. One or two system calls.
  bool client_has_left();
  // Makes the server call the waiting function again in a later tick. May be called at any time in
  // the loop's thread, even from the functions above or without need; it calls nothing and never
  // destroys the exchange. O(1).
  void resume();

 private:
  friend class HttpConnection;
  HttpConnection* connection_ = nullptr;  // null until the server has taken it
};

}  // namespace tubed::loop
