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
  // Instead of `text`, a text that outlives the server and is not copied.
  std::string_view persistent = {};
  // A streamed response has this function instead of `text`. It appends the next part, at most
  // `bytes` bytes, and returns true; or it returns false: the response is complete. It is called in
  // later ticks, and destroyed when the response is sent or the connection is closed.
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

// The server owns an exchange, and destroys it when its response is sent or its connection is
// closed, whatever the exchange waits for then. It calls these functions in their order here, each
// in the loop's thread:
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

  // Returns how many bytes it has taken, from the first on. If it takes fewer than all, it is
  // called again, with the rest, after resume(). Never called without a body. By default the body
  // is dropped.
  virtual std::size_t take_body(std::string_view bytes) { return bytes.size(); }
  // The whole body was taken. Also called for a request without a body.
  virtual void end_body() {}
  // Nothing: the header is not known yet, and is asked for again after resume().
  virtual std::optional<HttpHead> head() = 0;

  enum class Next : std::uint8_t {
    part,  // it has appended a part
    wait,  // it has appended nothing, and is asked again after resume()
    end,   // it has appended nothing: the response is complete
  };
  // Appends the next part of the response's body, at most `bytes` bytes, to `text`. A response
  // whose length was announced is complete after that many bytes, without a further call; if it
  // ends before, the connection is closed.
  virtual Next next_part(std::size_t bytes, std::string& text) = 0;

  // True for a response without an end, such as server-sent events: it may last longer than the
  // total timeout. Must not change.
  virtual bool is_stream() const { return false; }

  // The exchange is about to be destroyed, and did all that it could: the client may still not have
  // received the response.
  virtual void on_sent() {}

 protected:
  // From now on the exchange waits for an event that may be far away, such as a job: until its end
  // it counts among HttpServer::waits(), whose bound its owner knows, and takes no place from other
  // requests. Called once at most, after the header of the request was taken. O(listeners).
  void begin_waiting();

  // Looks whether the client has disconnected; true: the connection is closed in a later tick. For
  // a response that must not be lost. Precondition: the body was taken, and head() has not returned
  // the header. One or two system calls.
  bool client_has_left();
  // Lets the server go on: it calls the function that had to wait in a later tick. May be called at
  // any time in the loop's thread, also from the functions above and without need; it calls
  // nothing, and never destroys the exchange. O(1).
  void resume();

 private:
  friend class HttpConnection;
  HttpConnection* connection_ = nullptr;  // null until the server has taken it
};

}  // namespace tubed::loop
