#include "http/http_api.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "api/block_json.h"
#include "api/cluster_json.h"
#include "api/guard.h"
#include "base/planted.h"
#include "commands/authorization.h"
#include "commands/table.h"
#include "config/types.h"
#include "console/files.h"
#include "http/api_answers.h"
#include "http/settings_json.h"
#include "json/json.h"
#include "serving/not_serving.h"
#include "stats/stats.h"
#include "text/ascii.h"

namespace tubed::http {

using api::Kind;
using api::Method;
using api::Operation;
using api::Problem;
using loop::HttpReply;
using loop::HttpRequest;
using loop::HttpResponse;
using loop::HttpServer;

namespace {

constexpr std::string_view kApiPath = "/api/";
constexpr std::string_view kConsolePath = "/console/";
constexpr std::string_view kDescriptionPath = "/api/v1/openapi.json";
constexpr std::string_view kBearer = "Bearer ";
// Refusals of wrong tokens that wait for their time. Further refusals are sent at once.
constexpr std::size_t kMostRefusals = 32;
// Requests that end a reservation or administrate, beyond HttpServer::kMaxExchanges.
constexpr std::size_t kKeptExchanges = 16;

bool is_read(std::string_view method) {
  return method == "GET" || method == "HEAD";
}

// A HEAD is answered as a GET is.
std::optional<Method> method_of(const HttpRequest& request) {
  return request.is_head() ? Method::get : api::method_named(request.method());
}

Problem unauthorized() {
  return {.status = 401,
          .kind = "unauthorized",
          .title = "Unauthorized",
          .detail = "The request needs a token, a certificate or a user that has a role.",
          .reply = "UNAUTHORIZED"};
}

Problem busy(std::string detail) {
  return {.status = 503, .kind = "busy", .title = "Busy", .detail = std::move(detail)};
}

// True if jobs or operators wait for it.
bool has_kept_place(const Operation& operation) {
  if (api::is_of_reservation(operation.kind)) return operation.method != Method::get;
  return api::access_of(operation) == Access::admin;
}

HttpResponse method_not_allowed(const std::string& allowed) {
  HttpResponse response =
      http_response(Problem{.status = 405,
                            .kind = "method-not-allowed",
                            .title = "Method not allowed",
                            .detail = "The path has no operation with this method."});
  response.headers.emplace_back("Allow", allowed);
  return response;
}

// The scheme is case-insensitive. [RFC 9110, section 11.1]
std::optional<std::string_view> token_of(const HttpRequest& request) {
  const auto header = request.header("Authorization");
  if (!header || header->size() <= kBearer.size()) return std::nullopt;
  if (!equal_but_for_case(header->substr(0, kBearer.size()), kBearer)) return std::nullopt;
  return header->substr(kBearer.size());
}

api::RequestHeaders guard_headers(const HttpRequest& request) {
  return {.host = request.header("Host"),
          .origin = request.header("Origin"),
          .fetch_site = request.header("Sec-Fetch-Site"),
          .requested_by = request.header(api::kRequestedBy)};
}

// True if the client names JSON among the types that it accepts.
bool wants_json(const HttpRequest& request) {
  const auto accept = request.header("Accept");
  return accept && accept->find("application/json") != std::string_view::npos;
}

// The console loads nothing from elsewhere, runs no inline script, and is shown in no frame.
constexpr const char* kContentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

HttpReply serve_file(const HttpRequest& request) {
  const console::File* file = console::find_file(request.path());
  if (file == nullptr) return http_response(api::not_found("The console has no such file."));
  if (!is_read(request.method())) return method_not_allowed("GET, HEAD");
  HttpResponse response{.content_type = file->type};
  response.headers = {
      {"Cache-Control", "no-cache"},      {"ETag", file->tag},
      {"Vary", "Accept-Encoding"},        {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"}, {"Content-Security-Policy", kContentSecurityPolicy}};
  if (request.header("If-None-Match") == file->tag) {
    response.status = 304;
    return response;
  }
  const auto accepted = request.header("Accept-Encoding");
  const bool compressed = accepted && accepted->find("gzip") != std::string_view::npos;
  if (compressed) response.headers.emplace_back("Content-Encoding", "gzip");
  response.persistent = compressed ? file->gzip : file->plain;
  return response;
}

// The answer 401 to a wrong token, at its time.
class LaterRefusal final : public loop::HttpExchange {
 public:
  LaterRefusal(loop::Loop& loop, Duration delay, std::size_t& count)
      : count_(++count), response_(http_response(unauthorized())), timer_(loop, [this] {
          is_due_ = true;
          resume();
        }) {
    timer_.arm(delay);
  }
  ~LaterRefusal() override { --count_; }

  std::optional<loop::HttpHead> head() override {
    if (!is_due_) return std::nullopt;
    return loop::HttpHead{.status = response_.status,
                          .content_type = response_.content_type,
                          .headers = response_.headers,
                          .length = response_.text.size()};
  }
  Next next_part(std::size_t bytes, std::string& text) override {
    if (response_.text.empty()) return Next::end;
    text.append(response_.text, 0, bytes);
    response_.text.erase(0, bytes);
    return Next::part;
  }

 private:
  std::size_t& count_;
  HttpResponse response_;
  bool is_due_ = false;
  loop::Timer timer_;
};

// In the order of the families.
json::Json verbs_of(const Role& role) {
  std::vector<json::Json> verbs;
  if (role.produce) verbs.emplace_back("produce");
  if (role.work) verbs.emplace_back("work");
  if (role.inspect) verbs.emplace_back("inspect");
  if (role.admin) verbs.emplace_back("admin");
  return json::Json::array(std::move(verbs));
}

json::Json text_or_null(const std::string& text) {
  return text.empty() ? json::Json() : json::Json(text);
}

json::Json tubes_of(const Role& role) {
  if (role.tubes.empty()) return {};
  return json::Json::array({role.tubes.begin(), role.tubes.end()});
}

}  // namespace

HttpApi::HttpApi(loop::Loop& loop, os::Log& log, commands::Service& service,
                 serving::Clients& clients, serving::Scheduler& scheduler,
                 access::Authenticator& authenticator)
    : loop_(loop),
      service_(service),
      clients_(clients),
      scheduler_(scheduler),
      authenticator_(authenticator),
      reports_(loop),
      reservations_(loop, service, [this] { begin_tick(); }),
      events_(loop, service, [this] { begin_tick(); }),
      history_(loop, log, service, [this] { begin_tick(); }) {}

void HttpApi::apply(const Settings& settings) {
  http_ = settings.http;
  settings_json_ = settings_json(settings);
  history_.set_on(is_on());
}

bool HttpApi::serves(std::string_view path) const {
  return is_on() && (path == "/" || path.starts_with(kApiPath) || path.starts_with(kConsolePath));
}

// --- Who may request what

std::variant<HttpApi::Caller, HttpReply> HttpApi::find_caller(const HttpRequest& request) {
  auto admission = authenticator_.admit(request.peer(), http_, token_of(request));
  if (auto* admitted = std::get_if<access::Authenticator::Admitted>(&admission))
    return Caller{.address = request.peer().address, .admitted = std::move(*admitted)};
  const Duration delay = std::get<access::Authenticator::Refusal>(admission).delay;
  if (delay == Duration::zero() || refusals_ >= kMostRefusals) return http_response(unauthorized());
  return std::make_unique<LaterRefusal>(loop_, delay, refusals_);
}

std::optional<HttpReply> HttpApi::refuse_metrics(const HttpRequest& request) {
  // A browser always sends a Host: without one, no page of another site has made the request.
  if (request.header("Host") && !TUBED_PLANTED(metrics_for_any_host)) {
    const auto problem = api::check_origin(guard_headers(request), false, http_.hosts);
    if (problem) return http_response(*problem);
  }
  if (http_.auth == AuthMode::none && http_.role.empty()) return std::nullopt;
  auto caller = find_caller(request);
  if (auto* reply = std::get_if<HttpReply>(&caller)) return std::move(*reply);
  const Role* role = std::get<Caller>(caller).role();
  if (role == nullptr || may(*role, Access::inspect)) return std::nullopt;
  return http_response(api::problem_of(protocol::word::kDenied));
}

HttpReply HttpApi::respond(const HttpRequest& request, const HttpServer& server) {
  if (!request.path().starts_with(kApiPath) || request.path() == kDescriptionPath)
    return serve_file(request);
  if (is_stopping()) return http_response(api::stopping());
  if (const auto problem =
          api::check_origin(guard_headers(request), !is_read(request.method()), http_.hosts))
    return http_response(*problem);
  auto caller = find_caller(request);
  if (auto* reply = std::get_if<HttpReply>(&caller)) return std::move(*reply);
  auto target = api::parse_target(request.target());
  if (!target) return http_response(api::bad_request("the path or the query is malformed"));
  if (target->segments.size() < 3 || target->segments[1] != "v1")
    return http_response(api::not_found("There is no such path; the API is below /api/v1/."));
  auto routed = api::route(method_of(request), std::span(target->segments).subspan(2));
  if (routed.operation == nullptr && routed.allowed.empty())
    return http_response(api::not_found("The API has no such path."));
  if (routed.operation == nullptr) return method_not_allowed(routed.allowed);
  auto& found = std::get<Caller>(caller);
  if (const auto problem = check(*routed.operation, request, server, found))
    return http_response(*problem);
  api::Parameters parameters = std::move(routed.path);
  for (auto& one : target->query) parameters.push_back(std::move(one));
  return run(*routed.operation, std::move(parameters), request, std::move(found));
}

std::optional<Problem> HttpApi::check_level(const Operation& operation) const {
  if (http_.api == HttpApiLevel::full || operation.method == Method::get) return std::nullopt;
  return api::forbidden("http.api = \"read\": the API changes nothing.");
}

std::optional<Problem> HttpApi::check(const Operation& operation, const HttpRequest& request,
                                      const HttpServer& server, const Caller& caller) const {
  if (auto problem = check_level(operation)) return problem;
  const Role* role = caller.role();
  const bool denied =
      role != nullptr && (!may(*role, operation.access) ||
                          (operation.access == Access::admin && !role->tubes.empty()));
  if (operation.line.empty() && denied) return api::problem_of(protocol::word::kDenied);
  if (!operation.line.empty()) {
    auto problem = not_serving();
    if (problem && operation.kind != Kind::stats) return problem;
    if (problem && role != nullptr && !may(*role, Access::inspect))
      return api::problem_of(protocol::word::kDenied);
  }
  if (operation.kind == Kind::events && server.event_streams() >= HttpServer::kMaxEventStreams)
    return busy("As many streams of events are open as there may be.");
  const std::size_t places =
      HttpServer::kMaxExchanges + (has_kept_place(operation) ? kKeptExchanges : 0);
  if (server.exchanges() >= places) return busy("As many requests are under way as there may be.");
  // A request for a reservation uses the conversation of the reservation.
  const bool opens_client = !operation.line.empty() && !api::is_of_reservation(operation.kind);
  if (opens_client && caller.active() != nullptr && caller.active()->is_full())
    return api::problem_of(protocol::word::kOutOfMemory);
  if (api::reserves_jobs(operation.kind) && reservations_.is_full())
    return busy("As many jobs are reserved over HTTP as there may be.");
  const auto bytes = request.body_bytes();
  if (operation.kind == Kind::put && !request.header("Content-Length")) {
    return Problem{.status = 411,
                   .kind = "length-required",
                   .title = "Length required",
                   .detail = "The body of a job is sent with Content-Length."};
  }
  const std::uint64_t most = operation.kind == Kind::put ? service_.engine().limits().job_bytes
                                                         : ApiExchange::most_body_bytes(operation);
  if (bytes.value_or(0) <= most) return std::nullopt;
  if (operation.kind != Kind::put) return api::body_too_long(most / 1024);
  service_.counters().count(stats::Counter::put_too_big);
  return api::problem_of(protocol::word::kJobTooBig);
}

// --- What a request is answered from

HttpReply HttpApi::run(const Operation& operation, api::Parameters parameters,
                       const HttpRequest& request, Caller caller) {
  const bool is_stats_of_node = operation.kind == Kind::stats && !service_.host().serves();
  if (operation.line.empty() || is_stats_of_node) {
    if (const auto problem = api::check_names(operation, parameters))
      return http_response(*problem);
  }
  if (is_stats_of_node) return http_response(api::json_of(service_.stats_block()) + '\n');
  switch (operation.kind) {
    case Kind::access:
      return http_response(access_of(caller));
    case Kind::settings:
      return http_response(settings_json_);
    case Kind::history:
      return history_reply(parameters, caller);
    case Kind::cluster:
      return cluster_reply();
    case Kind::events:
      return events_.open(rights_of(caller));
    case Kind::command:
    case Kind::stats:
    case Kind::body:
    case Kind::tubes:
    case Kind::jobs:
    case Kind::put:
    case Kind::put_many:
    case Kind::reserve:
    case Kind::reserve_many:
    case Kind::each:
    case Kind::held:
    case Kind::all_held:
      break;
  }
  return run_command(operation, std::move(parameters), request, std::move(caller));
}

HttpReply HttpApi::run_command(const Operation& operation, api::Parameters parameters,
                               const HttpRequest& request, Caller caller) {
  ApiRequest made{.operation = operation, .parameters = {}, .options = {}};
  made.options.body_bytes = request.body_bytes().value_or(0);
  made.options.body_as_json = wants_json(request);
  if (api::reserves_jobs(operation.kind)) made.options.token = Reservations::make_token();
  made.parameters = std::move(parameters);
  made.address = std::move(caller.address);
  if (caller.role() != nullptr) made.role = caller.role()->name;
  made.admission = std::move(caller.admitted.admission);
  made.identity = std::move(caller.admitted.identity);
  return std::make_unique<ApiExchange>(*this, std::move(made));
}

std::variant<ApiClient, Problem> HttpApi::take_reserved(ApiRequest& request,
                                                        ApiExchange& exchange) {
  const auto taken = reservations_.take(*api::find(request.parameters, "token"), request.role);
  if (taken.found == Reservations::Found::busy) {
    reservations_.await(taken.token, exchange);
    return ApiClient();
  }
  const engine::Queries& queries = service_.engine().queries();
  const auto job = queries.job_info(service_.now(), taken.job);
  if (taken.found != Reservations::Found::free) {
    const commands::ActiveRole* role = service_.roles().find(request.role);
    if (!job || (role != nullptr && !may_use(role->role(), job->tube)))
      return api::problem_of(protocol::word::kNotFound);
    return api::wrong_state(job->state, true);
  }
  const bool names_job = request.operation.line.find("{id}") != std::string_view::npos;
  if (taken.job == 0 && names_job && request.operation.kind == Kind::held) {
    reservations_.keep(taken.token, taken.client);
    return api::bad_parameter("token", "is that of several jobs: each job has its own");
  }
  request.options.token = taken.token;
  request.options.held_jobs = taken.job == 0 ? queries.held_jobs(taken.client.client->session())
                                             : std::vector<JobId>{taken.job};
  request.options.held = api::HeldJob{.id = taken.job, .priority = job ? job->priority : 0};
  return taken.client;
}

ApiClient HttpApi::open_client(const std::string& address, loop::MemoryPeer& peer,
                               commands::Admission admission,
                               std::optional<serving::ClientIdentity> identity) {
  auto channel = std::make_unique<loop::MemoryChannel>(reports_, address, peer);
  ApiClient opened{.client = nullptr, .channel = channel.get()};
  serving::Client& client =
      clients_.add(std::move(channel), scheduler_, std::move(admission), serving::Arrival::request);
  if (identity) client.identity = std::make_unique<serving::ClientIdentity>(std::move(*identity));
  // Dirty: the scheduler then knows it as a client to be read from when input is no longer paused.
  scheduler_.mark_dirty(client);
  opened.client = &client;
  return opened;
}

// A client that is added after the others have been stopped could run a command when the log is
// closed.
bool HttpApi::is_stopping() const {
  return clients_.stopping() && !TUBED_PLANTED(api_open_while_stopping);
}

std::optional<Problem> HttpApi::not_serving() const {
  if (is_stopping()) return api::stopping();
  if (service_.host().serves()) return std::nullopt;
  const stats::ClusterState& cluster = *service_.host().cluster();
  const bool leads = cluster.role == stats::ClusterRole::leader;
  return api::not_the_leader(serving::not_serving_detail(cluster), leads ? "" : cluster.leader);
}

std::optional<Problem> HttpApi::check_again(const ApiRequest& request) const {
  if (!has_role_still(request.role, request.identity)) return unauthorized();
  return check_level(request.operation);
}

std::optional<Problem> HttpApi::admit_again(ApiRequest& request) const {
  if (TUBED_PLANTED(api_role_of_the_header)) return std::nullopt;
  if (const auto problem = check_again(request)) return problem;
  request.admission.role = request.role.empty() ? nullptr : service_.roles().find(request.role);
  // Other requests may have begun meanwhile.
  if (request.admission.role != nullptr && request.admission.role->is_full())
    return api::problem_of(protocol::word::kOutOfMemory);
  return std::nullopt;
}

std::optional<Problem> HttpApi::begin_wait(std::string_view role) {
  switch (wait_slots_.take(role)) {
    case WaitSlots::Taken::taken:
      return std::nullopt;
    case WaitSlots::Taken::all_are_used:
      return busy("As many requests wait as there may be.");
    case WaitSlots::Taken::share_is_used:
      return Problem{.status = 429,
                     .kind = "too-many-waits",
                     .title = "Too many requests",
                     .detail = "As many requests of the role wait as its share allows."};
  }
  return std::nullopt;
}

HttpReply HttpApi::cluster_reply() const {
  const stats::ClusterState* cluster = service_.host().cluster();
  if (cluster == nullptr) return http_response(api::no_cluster());
  return http_response(api::cluster_json(*cluster));
}

HttpReply HttpApi::history_reply(const api::Parameters& parameters, const Caller& caller) {
  const std::string* span = api::find(parameters, "span");
  const bool is_day = span != nullptr && *span == "day";
  if (span != nullptr && !is_day && *span != "hour")
    return http_response(api::bad_parameter("span", "is neither hour nor day"));
  const std::string* tube = api::find(parameters, "tube");
  if (tube == nullptr) {
    return http_response(is_day ? history_.day().to_json(caller.role())
                                : history_.hour().to_json());
  }
  if (!is_tube_name(*tube))
    return http_response(api::bad_parameter("tube", "is not the name of a tube"));
  if (caller.role() != nullptr && !may_use(*caller.role(), *tube))
    return http_response(api::problem_of(protocol::word::kDenied));
  constexpr std::size_t kHour = 60;
  if (auto json = history_.day().tube_json(*tube, is_day ? api::DayHistory::kMinutes : kHour))
    return http_response(std::move(*json));
  if (service_.engine().queries().tube_info(service_.now(), *tube))
    return http_response(api::DayHistory::empty_tube_json());
  return http_response(api::problem_of(protocol::word::kNotFound));
}

std::string HttpApi::access_of(const Caller& caller) const {
  using namespace config::types;
  const Role* role = caller.role();
  json::Json access = {{"api", kHttpApiLevels[static_cast<std::size_t>(http_.api)]},
                       {"auth", kAuthentications[static_cast<std::size_t>(http_.auth)]},
                       {"role", role == nullptr ? json::Json() : json::Json(role->name)},
                       {"verbs", role == nullptr ? json::Json() : verbs_of(*role)},
                       {"tubes", role == nullptr ? json::Json() : tubes_of(*role)},
                       {"version", stats::version()},
                       {"title", text_or_null(http_.title)},
                       {"color", text_or_null(http_.color)}};
  return json::to_line(access) + '\n';
}

// True if a client whose request began with this role (empty: no role) would have it now.
bool HttpApi::has_role_still(const std::string& role,
                             const std::optional<serving::ClientIdentity>& identity) const {
  if (!is_on()) return false;
  if (role.empty()) return http_.auth == AuthMode::none && http_.role.empty();
  if (service_.roles().find(role) == nullptr) return false;
  return identity ? authenticator_.still_has(*identity) : http_.role == role;
}

// A stream asks each second, because the role may have changed or been removed.
EventStreams::FindRights HttpApi::rights_of(const Caller& caller) {
  const std::string name = caller.role() == nullptr ? "" : caller.role()->name;
  return [this, name, identity = caller.admitted.identity]() -> EventStreams::Rights {
    if (!has_role_still(name, identity)) return {};
    if (name.empty()) return {.may_inspect = true};
    const Role& role = service_.roles().find(name)->role();
    if (!may(role, Access::inspect)) return {};
    return {.may_inspect = true, .role = role};
  };
}

}  // namespace tubed::http
