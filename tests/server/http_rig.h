// HTTP of a server in this process: its API and its other paths, without a daemon.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include "access/authenticator.h"
#include "http/admin_http.h"
#include "http/http_api.h"
#include "loop/signal.h"
#include "os/log.h"
#include "serving/clients.h"
#include "serving/scheduler.h"
#include "tests/loop/http_site.h"

namespace tubed::server_test {

struct HttpRig : serving::TickHost, commands::ServiceHost, http::AdminHttpHost {
  HttpRig() {
    service.set_host(*this);
    loop::ignore_broken_pipes();
    settings.http.api = HttpApiLevel::full;
    clients.set_limits(settings);
    api.apply(settings);
    http.set_site(api);
    os::Socket socket = loop_test::listening();
    address = os::local_address(socket);
    http.listen(std::move(socket), "");
  }
  ~HttpRig() override {
    http.close();
    clients.close_all("test");
  }
  HttpRig(const HttpRig&) = delete;
  HttpRig& operator=(const HttpRig&) = delete;

  commands::Authentication authenticate(std::string_view token, SessionId session) override {
    return authenticator.authenticate(token, session);
  }
  void audit(const commands::AuditEvent& event) override { authenticator.audit(event); }
  bool complete_tick() override { return false; }
  void tick_ended() override {}
  void begin_tick() override { scheduler.begin_tick(); }
  std::string_view unready() const override { return ""; }
  std::string_view not_leader() const override { return ""; }
  void on_handshake_failed(const std::string&, std::string_view) override {}

  // A connection on which this has been sent.
  os::Socket send(std::string_view request) const {
    os::Socket client = loop_test::connect_to(address);
    loop_test::write_all(client, request);
    return client;
  }
  // Reads until the server closes the connection.
  std::string take_all(const os::Socket& client) {
    std::string answer;
    const auto is_closed = [&] {
      char bytes[4096];
      const auto transfer = os::read_into(client, bytes);
      if (transfer.kind == os::Transfer::Kind::done) answer.append(bytes, transfer.bytes);
      return transfer.kind == os::Transfer::Kind::end;
    };
    CHECK(loop_test::run_until(loop, is_closed));
    return answer;
  }
  std::string ask(std::string_view request) { return take_all(send(request)); }

  static std::string request(std::string_view method, std::string_view path,
                             std::string_view body = "", std::string_view headers = "") {
    std::string text(method);
    text.append(" /api/v1").append(path).append(" HTTP/1.1\r\nHost: 127.0.0.1\r\n");
    text.append("X-Requested-By: test\r\nContent-Length: ").append(std::to_string(body.size()));
    return text.append("\r\n").append(headers).append("\r\n").append(body);
  }
  // The status and the body: "200 {…}".
  std::string call(std::string_view method, std::string_view path, std::string_view body = "") {
    const std::string answer = ask(request(method, path, body));
    return loop_test::status_in(answer).substr(9, 3) + ' ' + loop_test::body_of(answer);
  }

  std::uint64_t waiting() const { return service.engine().info().waiting; }
  bool run_until(const std::function<bool()>& condition) {
    return loop_test::run_until(loop, condition);
  }

  Settings settings;
  loop::Loop loop;
  os::Log log{[](std::string_view) { return true; }, [] { return Duration(); }};
  commands::Service service{Limits{}, stats::ProcessIdentity{}, {[] { return stats::CpuTimes{}; }}};
  serving::Clients clients{log, service};
  serving::Scheduler scheduler{loop, service, clients, *this};
  http::AdminHttp http{loop, log, service, *this};
  access::Authenticator authenticator{loop, log, service, clients, scheduler};
  http::HttpApi api{loop, log, service, clients, scheduler, authenticator};
  std::string address;
};

// The value of the first member of this name, if it is a text.
inline std::string text_member(const std::string& json, const std::string& name) {
  const std::string key = '"' + name + "\":\"";
  const auto begin = json.find(key);
  if (begin == std::string::npos) return {};
  return json.substr(begin + key.size(), json.find('"', begin + key.size()) - begin - key.size());
}

}  // namespace tubed::server_test
