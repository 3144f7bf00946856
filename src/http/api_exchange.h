// ApiExchange: a request of the HTTP API and the conversation that answers it.
//
// The conversation belongs to a Client whose channel ends here instead of at a socket: the request
// becomes lines of the protocol, the scheduler serves the client like any other, and its commit
// gate holds the response until it is durable. The conversation writes its answers with the script
// of the request, as frames (api/frame.h).
//
// The steps of a request, in their order:
// 1. The body of a put goes to the channel as it arrives; the parameters of another request are
//    collected first.
// 2. The script is made, and its first line sent. A new client is opened, or the client of a
//    reservation is taken, as soon as no other request uses it.
// 3. The head of the frame arrives, and then its content, which is passed on as HTTP takes it.
// 4. The client is closed, or given back to the reservation while it holds a job.
// 5. If the client of HTTP leaves before step 4, or its response is not sent whole, a job that the
//    request has reserved is given back, and no attempt is counted.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "api/script.h"
#include "loop/http_exchange.h"
#include "loop/memory_channel.h"
#include "serving/client.h"

namespace tubed::http {

// A client with a channel in memory. Both exist until the channel reports its end.
struct ApiClient {
  serving::Client* client = nullptr;
  loop::MemoryChannel* channel = nullptr;

  explicit operator bool() const { return client != nullptr; }
};

// One request, as HttpApi has found it.
struct ApiRequest {
  const api::Operation& operation;
  api::Parameters parameters;
  api::ScriptOptions options;
  std::string address = {};
  std::string role = {};               // the name of the client's role; empty: no role
  commands::Admission admission = {};  // its role is valid only in the tick that has found it
  std::optional<serving::ClientIdentity> identity = {};
};

class ApiExchange;

// The part of the API that exchanges call.
class ApiExchangeHost {
 public:
  virtual void begin_tick() = 0;
  // Returns why commands are not run here; no value if they are.
  virtual std::optional<api::Problem> not_serving() const = 0;
  // Finds the role of the request again, because settings and roles may have changed since its
  // header arrived. Returns a problem if the client may no longer send the request.
  virtual std::optional<api::Problem> admit_again(ApiRequest& request) const = 0;
  // The same for a request that already has a client, whose conversation knows its rights.
  virtual std::optional<api::Problem> check_again(const ApiRequest& request) const = 0;
  // Admits a request to the requests that wait, until end_wait(). `role`: of its client; empty: no
  // role. Returns a problem if too many wait already.
  virtual std::optional<api::Problem> begin_wait(std::string_view role) = 0;
  virtual void end_wait(std::string_view role) = 0;
  // Opens a client with the admission and the identity of the request.
  virtual ApiClient open_client(const std::string& address, loop::MemoryPeer& peer,
                                commands::Admission admission,
                                std::optional<serving::ClientIdentity> identity) = 0;
  // Takes the client of the reservation that the request names, and completes its options. Returns
  // no client if another request uses it: reservation_is_free() is called later, unless
  // stop_awaiting() was called.
  virtual std::variant<ApiClient, api::Problem> take_reserved(ApiRequest& request,
                                                              ApiExchange& exchange) = 0;
  virtual void stop_awaiting(ApiExchange& exchange) = 0;
  // The response has been made. The client holds the job of the reservation `token`, or holds no
  // job and is closed.
  virtual void give_back(const ApiClient& client, const std::string& token) = 0;
  // Makes the jobs of the client ready, as if it had never reserved them.
  virtual void take_back(const ApiClient& client) = 0;
  // The same for the client of the reservation `token`, which ends: the response with its job was
  // not sent.
  virtual void undo(const std::string& token) = 0;
  // The client of a request was closed. A reservation with this token has ended.
  virtual void client_lost(const std::string& token) = 0;

 protected:
  ~ApiExchangeHost() = default;
};

class ApiExchange final : public loop::HttpExchange, public loop::MemoryPeer {
 public:
  // The body of a request that puts no job is a short JSON object.
  static constexpr std::size_t kMostParameterBytes = 16 * 1024;
  // Returns how long the body may be that is collected before the script is made.
  static std::size_t most_body_bytes(const api::Operation& operation);

  // `host` outlives it.
  ApiExchange(ApiExchangeHost& host, ApiRequest request);
  ~ApiExchange() override;

  std::size_t take_body(std::string_view bytes) override;
  void end_body() override;
  std::optional<loop::HttpHead> head() override;
  Next next_part(std::size_t bytes, std::string& text) override;
  void on_sent() override { sent_ = true; }

  void on_channel() override;
  void on_channel_closed() override;
  void reservation_is_free();

 private:
  void start();
  bool take_reserved();
  void refuse(const api::Problem& problem);
  void send_end_of_body();
  void send(std::string_view input);
  void send_input();
  void take_output();
  void complete();
  bool returns_unsent_job() const;

  ApiExchangeHost& host_;
  ApiRequest request_;
  std::unique_ptr<api::Script> script_;  // outlives its use by the conversation
  ApiClient client_;
  std::string parameters_;  // the JSON of the body that has arrived
  std::string input_;       // of the script, which the channel has not taken
  bool body_ended_ = false;
  bool line_end_sent_ = false;  // after the body of a put
  bool has_wait_slot_ = false;
  bool awaits_reservation_ = false;
  bool kept_ = false;  // a job that it has reserved belongs to a reservation
  bool sent_ = false;
  std::optional<api::FrameHead> head_;
  bool may_have_run_ = false;    // as api::Problem says
  std::string arrived_;          // of the frame
  std::size_t passed_ = 0;       // bytes of arrived_ that were passed on
  std::uint64_t to_arrive_ = 0;  // bytes of the content
  std::uint64_t to_pass_ = 0;
};

}  // namespace tubed::http
