#include "node/cluster_admin.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "api/cluster_json.h"
#include "node/leadership.h"
#include "os/clock.h"
#include "os/socket.h"

namespace tubed::node {

using loop::HttpReply;
using loop::HttpRequest;
using loop::HttpResponse;

namespace {

constexpr const char* kJson = "application/json";
constexpr std::size_t kMostBody = 4096;
constexpr std::array<std::string_view, 6> kChanges{"/cluster/add",     "/cluster/add-standby",
                                                   "/cluster/promote", "/cluster/remove",
                                                   kSetAddressPath,    "/cluster/transfer"};

HttpResponse http_response(const cluster::Response& response) {
  std::string text = response.body;
  if (!text.ends_with('\n')) text += '\n';
  return {.status = response.status, .content_type = kJson, .text = std::move(text)};
}

}  // namespace

// A change. Its body is read first, and the answer may come later, or after the connection has
// ended.
class ClusterAdmin::Change final : public loop::HttpExchange {
 public:
  Change(ClusterAdminHost& host, std::string path)
      : host_(host), request_{.path = std::move(path), .body = {}} {}

  std::size_t take_body(std::string_view bytes) override {
    // A longer body cannot be a known JSON object.
    if (request_.body.size() < kMostBody) request_.body += bytes;
    return bytes.size();
  }
  void end_body() override {
    host_.begin_tick();
    host_.change(request_, [answered = std::weak_ptr(self_)](const cluster::Response& response) {
      const auto self = answered.lock();
      if (self == nullptr) return;
      (*self)->response_ = http_response(response);
      (*self)->resume();
    });
  }
  std::optional<loop::HttpHead> head() override {
    if (!response_) return std::nullopt;
    return loop::HttpHead{.status = response_->status,
                          .content_type = response_->content_type,
                          .length = response_->text.size()};
  }
  Next next_part(std::size_t bytes, std::string& text) override {
    if (response_->text.empty()) return Next::end;
    text.append(response_->text, 0, bytes);
    response_->text.erase(0, bytes);
    return Next::part;
  }

 private:
  ClusterAdminHost& host_;
  cluster::Request request_;
  std::optional<HttpResponse> response_;
  // Destroyed with the exchange: a late answer finds it expired.
  std::shared_ptr<Change*> self_ = std::make_shared<Change*>(this);
};

ClusterAdmin::ClusterAdmin(loop::Loop& loop, os::Log& log, ClusterAdminHost& host)
    : log_(log), host_(host), http_(loop, *this) {}

Result<void> ClusterAdmin::listen(const Listen& address, std::uint32_t backlog) {
  // Only the user of the server, unless the address sets another mode.
  constexpr unsigned kOwnerOnly = 0600;
  auto socket = TRY(os::listen_unix(
      address.path, {address.mode.value_or(kOwnerOnly), address.group}, static_cast<int>(backlog)));
  http_.listen(std::move(socket), address.path);
  return {};
}

HttpReply ClusterAdmin::respond(const HttpRequest& request) {
  host_.begin_tick();
  const std::string_view path = request.path();
  if (path == "/cluster") {
    if (request.method() != "GET" && !request.is_head())
      return http_response(refusal(405, "only GET and HEAD"));
    return http_response({.status = 200, .body = api::cluster_json(host_.cluster_state())});
  }
  if (std::ranges::find(kChanges, path) == kChanges.end())
    return http_response(refusal(404,
                                 "tubed answers /cluster here, and /cluster/add, "
                                 "/cluster/add-standby, /cluster/promote, /cluster/remove, "
                                 "/cluster/set-address and /cluster/transfer"));
  if (request.method() != "POST") return http_response(refusal(405, "only POST"));
  return std::make_unique<Change>(host_, std::string(path));
}

void ClusterAdmin::on_http_error(const std::string& reason) {
  log_.limited(os::Log::Level::error, os::monotonic_now(), "cannot take connections of operators",
               {{"reason", reason}});
}

}  // namespace tubed::node
