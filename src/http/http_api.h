// HttpApi: the HTTP API and the console: the rights of each request, and the source of its answer.
//
// A request goes through these checks, in this order; the first that fails is the answer:
// 1. http.api is not off, and the path is one of the API or of the console. The console's files
//    and the description of the API need no rights. The server has not begun to stop: a request
//    whose body arrives after that is refused too, before it opens a client.
// 2. The Host, the Origin and Sec-Fetch-Site (api/guard.h), of /metrics too.
// 3. The client has a role, if HTTP has authentication (Authenticator).
// 4. The operation exists (404, 405), and http.api allows it. If it has a command, the server is in
//    no cluster or leads it: another node opens no conversations. Every node shows its own
//    statistics.
// 5. No more requests are under way than HttpServer allows; a body is not too long. The end of a
//    reservation and a command of the family admin have places of their own: finished jobs and
//    operators do not wait for others. A request that waits takes a place in WaitSlots instead.
// 6. The role may run the command. The conversation decides that, as for any other client. An
//    operation without a command has its own family.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "access/authenticator.h"
#include "api/operation.h"
#include "config/settings.h"
#include "http/admin_http.h"
#include "http/api_exchange.h"
#include "http/event_streams.h"
#include "http/history_keeper.h"
#include "http/reservations.h"
#include "http/wait_slots.h"
#include "loop/http_server.h"
#include "loop/loop.h"
#include "os/log.h"
#include "serving/clients.h"
#include "serving/scheduler.h"

namespace tubed::http {

class HttpApi final : public HttpSite, public ApiExchangeHost {
 public:
  // Everything that is passed by reference outlives it.
  HttpApi(loop::Loop& loop, os::Log& log, commands::Service& service, serving::Clients& clients,
          serving::Scheduler& scheduler, access::Authenticator& authenticator);

  // Applies settings.
  void apply(const Settings& settings);
  bool is_on() const { return http_.api != HttpApiLevel::off; }
  HistoryKeeper& history() { return history_; }

  bool serves(std::string_view path) const override;
  loop::HttpReply respond(const loop::HttpRequest& request,
                          const loop::HttpServer& server) override;
  std::optional<loop::HttpReply> refuse_metrics(const loop::HttpRequest& request) override;

 private:
  // The client of a request.
  struct Caller {
    std::string address;
    access::Authenticator::Admitted admitted;

    const commands::ActiveRole* active() const { return admitted.admission.role; }
    const Role* role() const { return active() == nullptr ? nullptr : &active()->role(); }
  };

  void begin_tick() override { scheduler_.begin_tick(); }
  bool is_stopping() const;
  std::optional<api::Problem> not_serving() const override;
  std::optional<api::Problem> admit_again(ApiRequest& request) const override;
  std::optional<api::Problem> check_again(const ApiRequest& request) const override;
  std::optional<api::Problem> begin_wait(std::string_view role) override;
  void end_wait(std::string_view role) override { wait_slots_.give_back(role); }
  ApiClient open_client(const std::string& address, loop::MemoryPeer& peer,
                        commands::Admission admission,
                        std::optional<serving::ClientIdentity> identity) override;
  std::variant<ApiClient, api::Problem> take_reserved(ApiRequest& request,
                                                      ApiExchange& exchange) override;
  void stop_awaiting(ApiExchange& exchange) override { reservations_.stop_awaiting(exchange); }
  void give_back(const ApiClient& client, const std::string& token) override {
    reservations_.keep(token, client);
  }
  void take_back(const ApiClient& client) override { reservations_.take_back(client); }
  void undo(const std::string& token) override { reservations_.undo(token); }
  void client_lost(const std::string& token) override { reservations_.forget(token); }

  std::variant<Caller, loop::HttpReply> find_caller(const loop::HttpRequest& request);
  std::optional<api::Problem> check_level(const api::Operation& operation) const;
  std::optional<api::Problem> check(const api::Operation& operation,
                                    const loop::HttpRequest& request,
                                    const loop::HttpServer& server, const Caller& caller) const;
  loop::HttpReply run(const api::Operation& operation, api::Parameters parameters,
                      const loop::HttpRequest& request, Caller caller);
  loop::HttpReply run_command(const api::Operation& operation, api::Parameters parameters,
                              const loop::HttpRequest& request, Caller caller);
  std::string access_of(const Caller& caller) const;
  loop::HttpReply cluster_reply() const;
  bool has_role_still(const std::string& role,
                      const std::optional<serving::ClientIdentity>& identity) const;
  EventStreams::FindRights rights_of(const Caller& caller);
  loop::HttpReply history_reply(const api::Parameters& parameters, const Caller& caller);

  loop::Loop& loop_;
  commands::Service& service_;
  serving::Clients& clients_;
  serving::Scheduler& scheduler_;
  access::Authenticator& authenticator_;
  HttpApiSettings http_;
  std::string settings_json_;    // all settings in force
  loop::MemoryReports reports_;  // of the clients of requests
  Reservations reservations_;
  WaitSlots wait_slots_;
  EventStreams events_;
  HistoryKeeper history_;
  std::size_t refusals_ = 0;  // that are to be answered later
};

}  // namespace tubed::http
