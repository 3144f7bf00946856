// HttpServer: a small HTTP/1.1 server in the loop: GET and HEAD, one answer a connection.
//
// libmicrohttpd does the protocol, without a thread of its own; what it has left to do it does in
// the next turn, one block of text for all connections. It knows nothing of what it serves.
// Slow clients keep out no health check, however many there are. When kMaxConnections are open, the
// one that has waited longest without a whole request is closed. When more than kMaxPages answers
// in pieces are being sent, the oldest of them is.
//
// Invariant: it has at most kMaxConnections; further ones wait in the kernel. None is older than
// `whole_timeout`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "loop/listener.h"
#include "loop/loop.h"
#include "loop/timer.h"

struct MHD_Daemon;

namespace tubed::loop {

struct HttpResponse {
  unsigned status = 200;
  const char* content_type = "text/plain; charset=utf-8";
  std::string text = {};
  // In place of `text`: appends the next bytes, `bytes` at most, or says false at the end. It is
  // called in later turns, and destroyed when the client has it all, or has gone.
  std::function<bool(std::size_t bytes, std::string& text)> next_piece = {};
};

class HttpOwner {
 public:
  // `path` is what was asked for, without its query.
  virtual HttpResponse answer(std::string_view path) = 0;
  // For this reason connections were refused.
  virtual void on_http_trouble(const std::string& reason) = 0;

 protected:
  ~HttpOwner() = default;
};

class HttpServer final : public ListenerOwner {
 public:
  static constexpr std::size_t kMaxConnections = 128;
  // How many answers in pieces are sent at a time; all other places are for short answers.
  static constexpr std::size_t kMaxPages = 16;
  // Of all answers together, in one turn of the loop.
  static constexpr std::size_t kBlockBytes = 32 * 1024;

  // `loop` and `owner` outlive the server. `idle_timeout`: a connection that moves no byte for so
  // long is closed; in whole seconds. `whole_timeout`: and so is one that is not done by then.
  HttpServer(Loop& loop, HttpOwner& owner, Duration idle_timeout = std::chrono::seconds(10),
             Duration whole_timeout = std::chrono::seconds(60));
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // `socket` listens; `path`: of a unix socket, removed when the server goes.
  void listen(os::Socket socket, std::string path);

  // Called by what libmicrohttpd calls.
  HttpResponse answer(std::string_view path) { return owner_.answer(path); }
  void connection_opened(int descriptor);
  void connection_closed(int descriptor);
  // The request is whole; `is_page`: its answer is made in pieces.
  void request_taken(int descriptor, bool is_page);
  // Up to `bytes`, as many as this turn may still make; each page gets its part.
  std::size_t take_of_block(std::size_t bytes);

 private:
  struct Stop {
    void operator()(MHD_Daemon* daemon) const;
  };

  void on_connection(os::Socket socket) override;
  void on_accept_trouble(const std::string& reason, std::uint64_t refused) override;
  void work();
  void work_next_turn(bool asked);
  void end_the_overdue();
  void watch_the_oldest();

  enum class Stage : std::uint8_t { request, short_answer, page, ended };
  struct Open {
    int descriptor;
    Time since;
    Stage stage = Stage::request;
  };
  void end(Open& connection);
  void end_the_oldest_in(Stage stage);
  std::size_t pages() const;

  Loop& loop_;
  HttpOwner& owner_;
  Duration whole_timeout_;
  std::vector<Open> connections_;  // the oldest first
  std::size_t block_left_ = 0;     // of this turn
  std::vector<std::unique_ptr<Listener>> listeners_;
  Timer whole_timer_;  // outlives the daemon, which tells of its last connections when it goes
  std::unique_ptr<MHD_Daemon, Stop> daemon_;
  Timer timer_;
  bool has_work_ = false;
  // They go before the daemon closes what is watched.
  Handle<uv_idle_t> idle_;
  Handle<uv_poll_t> events_;
};

}  // namespace tubed::loop
