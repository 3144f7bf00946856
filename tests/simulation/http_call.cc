#include "tests/simulation/http_call.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "api/problem.h"
#include "json/json.h"
#include "loop/http_server.h"
#include "text/numbers.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

namespace {

constexpr Duration kHttpPatience = 2s;
constexpr std::string_view kHeadEnd = "\r\n\r\n";

std::string_view header(std::string_view head, std::string_view name) {
  const std::string key = fmt::format("\r\n{}: ", name);
  const std::size_t begin = head.find(key);
  if (begin == std::string_view::npos) return {};
  const std::string_view value = head.substr(begin + key.size());
  return value.substr(0, value.find('\r'));
}

}  // namespace

std::string member_of(const std::string& json, std::string_view name) {
  const auto object = json::Json::parse_document(json);
  if (!object || !object->is_object()) return {};
  const json::Json* found = object->find(name);
  if (found == nullptr) return {};
  if (const std::string* text = found->text()) return *text;
  return found->number() ? fmt::to_string(*found->number()) : std::string();
}

HttpCall::HttpCall(World& world, Net& net, Knowledge& known, Chance& chance, std::string name,
                   HttpRequest request, Done done)
    : world_(world),
      known_(known),
      chance_(chance),
      name_(std::move(name)),
      request_(std::move(request)),
      done_(std::move(done)),
      process_(known.process),
      queue_(known.queue),
      begun_(world.now()),
      sent_(begun_) {
  connection_ =
      net.connect(Net::kHttpPort, {.jitter = 400us, .cuts = 15}, {.jitter = 200us, .cuts = 10});
  if (connection_ == nullptr) return;
  const std::string_view method = api::name_of(request_.operation->method);
  world_.note(fmt::format("{} > {} {}", name_, method, request_.target));
  held_ = fmt::format("{} /api/v1{} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Requested-By: simulation\r\n",
                      method, request_.target);
  held_ += fmt::format("Content-Length: {}\r\n\r\n{}", request_.body.size(), request_.body);
  count(1);
  connection_->on_event([this] { read(); });
  const std::size_t now = chance_.percent(25) ? chance_.below(held_.size()) : held_.size();
  held_.erase(0, connection_->send(std::string_view(held_).substr(0, now)));
}

HttpCall::~HttpCall() {
  if (connection_ == nullptr) return;
  connection_->on_event({});
  connection_->close();
  count(-1);
}

// Counts open requests as the server may see them.
void HttpCall::count(int by) {
  if (!request_.waits) known_.open_requests += static_cast<unsigned>(by);
}

void HttpCall::act() {
  if (connection_ == nullptr) return;
  if (!held_.empty() && chance_.percent(20)) {
    held_.erase(0, connection_->send(held_));
    sent_ = world_.now();
  }
  const bool is_stream = request_.operation->kind == api::Kind::events;
  if (!held_.empty() || request_.waits || is_stream || world_.now() - sent_ < kHttpPatience) return;
  fail("no answer");
}

void HttpCall::leave(End end) {
  if (connection_ == nullptr) return;
  world_.note(fmt::format("{} leaves", name_));
  connection_->on_event({});
  if (end == End::reset) {
    connection_->reset();
  } else if (end == End::close) {
    connection_->close();
  } else {
    connection_->end_output();
    known_.half_closed.push_back(connection_);
    constexpr std::size_t kMost = 8;
    if (known_.half_closed.size() > kMost) {
      known_.half_closed.front()->close();
      known_.half_closed.pop_front();
    }
  }
  connection_.reset();
  count(-1);
}

void HttpCall::read() {
  received_.append(connection_->arrived());
  connection_->take(connection_->arrived().size());
  const auto answer = whole_answer();
  // Answers from an earlier queue are ignored.
  if (answer && queue_ == known_.queue) return finish(*answer);
  if (answer || connection_->lost() || connection_->ended()) finish({});
}

// Returns nothing if more must arrive.
std::optional<HttpAnswer> HttpCall::whole_answer() const {
  const std::string_view text = received_;
  const std::size_t end = text.find(kHeadEnd);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view head = text.substr(0, end + 2);
  const std::string_view body = text.substr(end + kHeadEnd.size());
  HttpAnswer answer{
      .status = static_cast<unsigned>(leading_number(head.substr(head.find(' ') + 1))),
      .type = std::string(header(head, "Content-Type")),
      .body = std::string(body)};
  // One event of a stream is enough.
  if (answer.type.starts_with("text/event-stream"))
    return body.find("\n\n") == std::string_view::npos ? std::nullopt : std::optional(answer);
  const std::string_view length = header(head, "Content-Length");
  if (length.empty() && answer.status != 204 && !connection_->ended()) return std::nullopt;
  if (!length.empty() && body.size() < leading_number(length)) return std::nullopt;
  return answer;
}

void HttpCall::finish(const HttpAnswer& answer) {
  world_.note(fmt::format("{} < {} {}", name_, answer.status, answer.body));
  connection_->on_event({});
  std::exchange(connection_, nullptr)->close();
  if (answer.status != 0) judge(answer);
  count(-1);
  const Done done = std::move(done_);
  done(answer);
}

bool HttpCall::may_have(unsigned status) const {
  // Possible for each operation.
  constexpr std::array<unsigned, 7> kAlways = {400, 401, 403, 413, 421, 503, 507};
  if (std::ranges::find(kAlways, status) != kAlways.end()) return true;
  const api::Operation& operation = *request_.operation;
  switch (operation.kind) {
    case api::Kind::put:
      if (status == 201) return true;
      break;
    case api::Kind::reserve:
    case api::Kind::reserve_many:
      if (status == 201 || status == 204 || status == 429) return true;
      if (status == 200) return false;
      break;
    case api::Kind::held:
    case api::Kind::all_held:
      if (status == 404 || status == 409) return true;
      break;
    case api::Kind::history:  // of a tube that has none
      if (status == 404) return true;
      break;
    case api::Kind::cluster:
      return status == api::no_cluster().status;
    default:
      break;
  }
  // Of the jobs of a list each has its own.
  if (status == 409 && operation.needs_state) return operation.kind != api::Kind::each;
  if (status == 404 && operation.kind == api::Kind::each) return false;
  if (status == 200 || (status == 429 && !operation.waits.empty())) return true;
  const commands::Command* row = api::command_of(operation);
  if (row == nullptr) return false;
  return std::ranges::any_of(row->replies, [status](const commands::ReplyText& text) {
    const auto* problem = api::find_problem(text.reply.substr(0, text.reply.find(' ')));
    return problem != nullptr && problem->status == status;
  });
}

void HttpCall::judge(const HttpAnswer& answer) {
  if (!may_have(answer.status)) return fail(fmt::format("the status {}", answer.status));
  if (answer.type.find("json") != std::string::npos) {
    if (!json::Json::parse_document(answer.body)) return fail("the body is no JSON");
    const bool is_problem = answer.type.find("problem") != std::string::npos;
    if (is_problem != (answer.status >= 400)) return fail("a problem has another type");
    if (is_problem && member_of(answer.body, "status") != fmt::to_string(answer.status))
      return fail("a problem has another status");
  } else if (answer.status >= 400) {
    return fail("a problem is no JSON");
  }
  const std::string detail = member_of(answer.body, "detail");
  // Waiting requests take no place.
  if (detail == "As many requests are under way as there may be." &&
      known_.open_requests < loop::HttpServer::kMaxExchanges)
    return fail(fmt::format("busy with {} requests", known_.open_requests));
  if (detail == "As many requests wait as there may be.") return fail("no place to wait");
  const bool is_change = request_.operation->method != api::Method::get;
  const bool is_of_process = process_ == known_.process && known_.stopping_since;
  if (is_change && answer.status < 300 && is_of_process && begun_ > *known_.stopping_since)
    fail("a request has run while the server stops");
}

void HttpCall::fail(std::string_view what) {
  world_.fail(fmt::format("{}: {}: {} {}", name_, what, api::name_of(request_.operation->method),
                          request_.target));
}

}  // namespace tubed::simulation
