#include "tubectl/cluster/admin.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "client/http.h"
#include "tubectl/exit_codes.h"
#include "tubectl/json.h"
#include "tubectl/terminal.h"

namespace tubed::tubectl::cluster {
namespace {

constexpr int kOk = 200;
constexpr int kNotFound = 404;
constexpr int kUnavailableNow = 503;
constexpr std::string_view kClusterPath = "/cluster";

Failure cannot_connect(const Error& error) {
  if (error.kind == Error::Kind::denied) {
    return {
        .code = kExitNotAllowed,
        .reason = error.message + "; run this as root or as a user who may write to the socket"};
  }
  if (client::nothing_listens(error)) {
    return {.code = kExitUnavailable,
            .reason = error.message + "; does tubed run, and is this its setting cluster.admin?",
            .may_pass = true,
            .is_gone = true};
  }
  return {.code = kExitUnavailable, .reason = error.message, .may_pass = true};
}

// The server's own message, or the status if it sent none.
Failure refused_with(const client::HttpAnswer& answer, std::string_view path) {
  const auto json = Json::parse_document(answer.body);
  const Json* const error = json && json->is_object() ? json->find("error") : nullptr;
  const std::string* const text = error != nullptr ? error->text() : nullptr;
  const bool may_pass = answer.status == kUnavailableNow;
  if (text != nullptr && !text->empty()) {
    return {.code = kExitFailure,
            .reason = fmt::format("{} ({})", one_line(*text), answer.status),
            .may_pass = may_pass};
  }
  if (answer.status == kNotFound) {
    return {.code = kExitFailure,
            .reason =
                fmt::format("the server has no {}: it is in no cluster ({})", path, answer.status)};
  }
  return {.code = kExitFailure,
          .reason = fmt::format("the server answered with the status {}", answer.status),
          .may_pass = may_pass};
}

}  // namespace

Admin::Admin(const std::string& address) : address_(*client::parse_address(address)) {}

Outcome<std::string> Admin::ask(std::string_view method, const std::string& path,
                                const std::string& json, Duration most) const {
  auto connection = client::connect_to(address_, std::min(most, client::kTimeout));
  if (!connection) return cannot_connect(connection.error());
  const auto answer = client::exchange_http(
      std::move(*connection), {.method = method, .path = path, .json = json}, {.timeout = most});
  if (!answer) {
    return Failure{
        .code = kExitUnavailable,
        .reason = fmt::format("{}: {}", client::to_string(address_), answer.error().message),
        .may_pass = true,
        .is_gone = answer.error().message == client::kHttpClosed};
  }
  if (answer->status != kOk) return refused_with(*answer, path);
  return answer->body;
}

Outcome<std::string> Admin::document(Duration most) const {
  auto document = ask("GET", std::string(kClusterPath), "", most);
  if (const auto* const text = std::get_if<std::string>(&document)) {
    if (const auto state = read_state(*text); !state) {
      return Failure{
          .code = kExitUnavailable,
          .reason = fmt::format("{}: {}", client::to_string(address_), state.error().message)};
    }
  }
  return document;
}

Outcome<State> Admin::look(Duration most) const {
  auto document = this->document(most);
  if (auto* const failure = std::get_if<Failure>(&document)) return std::move(*failure);
  return std::move(*read_state(std::get<std::string>(document)));
}

Outcome<std::monostate> Admin::change(std::string_view action, const std::string& json,
                                      Duration most) const {
  auto answer = ask("POST", fmt::format("{}/{}", kClusterPath, action), json, most);
  auto* const failure = std::get_if<Failure>(&answer);
  if (failure == nullptr) return std::monostate();
  return std::move(*failure);
}

}  // namespace tubed::tubectl::cluster
