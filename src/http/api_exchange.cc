#include "http/api_exchange.h"

#include <algorithm>

#include "api/batch.h"
#include "base/planted.h"
#include "commands/authorization.h"
#include "http/api_answers.h"
#include "text/numbers.h"

namespace tubed::http {

namespace {

constexpr std::string_view kLineEnd = "\r\n";
// The bytes of arrived content above which the channel is not asked for more.
constexpr std::size_t kArrivedBytes = loop::MemoryChannel::kBufferBytes;

bool may_wait(const api::Operation& operation, const api::Parameters& parameters) {
  if (operation.waits.empty()) return false;
  const std::string* seconds = api::find(parameters, operation.waits);
  return seconds != nullptr && parse_number<std::uint64_t>(*seconds).value_or(0) > 0;
}

}  // namespace

std::size_t ApiExchange::most_body_bytes(const api::Operation& operation) {
  return operation.kind == api::Kind::put_many ? api::kMostBatchBytes : kMostParameterBytes;
}

ApiExchange::ApiExchange(ApiExchangeHost& host, ApiRequest request)
    : host_(host), request_(std::move(request)) {
  if (request_.operation.kind == api::Kind::put) start();
}

ApiExchange::~ApiExchange() {
  if (has_wait_slot_) host_.end_wait(request_.role);
  if (awaits_reservation_) host_.stop_awaiting(*this);
  if (kept_ && !sent_) host_.undo(request_.options.token);
  if (!client_) return;
  // A reservation continues if no command was sent.
  if (script_ == nullptr) {
    host_.give_back(client_, request_.options.token);
    return;
  }
  client_.client->conversation().answers().set_writer(nullptr);
  if (returns_unsent_job()) {
    // The client is closed in a later iteration of the loop. It gets no job until then.
    if (!TUBED_PLANTED(api_waits_for_a_client_that_left)) client_.client->conversation().abandon();
    host_.take_back(client_);
  }
  client_.channel->disconnect();
  host_.client_lost(request_.options.token);
}

bool ApiExchange::returns_unsent_job() const {
  return api::reserves_jobs(request_.operation.kind) && !TUBED_PLANTED(api_keeps_unsent_jobs);
}

// False: it has been refused, or another request uses the reservation.
bool ApiExchange::take_reserved() {
  host_.begin_tick();
  auto problem = host_.not_serving();
  if (!problem) problem = host_.check_again(request_);
  if (problem) {
    refuse(*problem);
    return false;
  }
  auto taken = host_.take_reserved(request_, *this);
  if (const auto* refusal = std::get_if<api::Problem>(&taken)) {
    refuse(*refusal);
    return false;
  }
  client_ = std::get<ApiClient>(taken);
  awaits_reservation_ = !client_;
  if (client_) client_.channel->set_peer(this);
  return !awaits_reservation_;
}

void ApiExchange::reservation_is_free() {
  awaits_reservation_ = false;
  start();
}

void ApiExchange::start() {
  if (api::is_of_reservation(request_.operation.kind) && !take_reserved()) return;
  api::remove_units(request_.parameters);
  const bool waits = may_wait(request_.operation, request_.parameters);
  auto made = api::script_of(request_.operation, std::move(request_.parameters), request_.options);
  if (const auto* problem = std::get_if<api::Problem>(&made)) return refuse(*problem);
  host_.begin_tick();
  // The server may have begun to stop, or lost its leadership, while the body arrived.
  auto problem = host_.not_serving();
  if (!problem) problem = client_ ? host_.check_again(request_) : host_.admit_again(request_);
  if (!problem && waits) problem = host_.begin_wait(request_.role);
  if (problem) return refuse(*problem);
  if (waits) {
    has_wait_slot_ = true;
    begin_waiting();
  }
  script_ = std::move(std::get<std::unique_ptr<api::Script>>(made));
  if (!client_)
    client_ = host_.open_client(request_.address, *this, std::move(request_.admission),
                                request_.identity);
  client_.client->conversation().answers().set_writer(script_.get());
  script_->on_input([this](std::string_view input) { send(input); });
  script_->on_look([this](JobId id) {
    return commands::visible_state(client_.client->conversation().context(), id);
  });
  send(script_->first_input());
}

void ApiExchange::send(std::string_view input) {
  input_.append(input);
  send_input();
}

void ApiExchange::send_input() {
  if (!client_ || input_.empty()) return;
  const std::size_t bytes = std::min(input_.size(), client_.channel->room());
  client_.channel->send(std::string_view(input_).substr(0, bytes));
  input_.erase(0, bytes);
}

// The response is the problem, and no further command runs.
void ApiExchange::refuse(const api::Problem& problem) {
  api::Response response = api::response_of(problem);
  head_ = response.head;
  head_->bytes = to_pass_ = response.text.size();
  may_have_run_ = problem.may_have_run;
  arrived_ = std::move(response.text);
  if (client_) {
    client_.client->conversation().answers().set_writer(nullptr);
    host_.give_back(std::exchange(client_, {}), request_.options.token);
  }
  resume();
}

std::size_t ApiExchange::take_body(std::string_view bytes) {
  if (request_.operation.kind != api::Kind::put) {
    // The length was checked before: a chunked body may be longer.
    const std::size_t most = most_body_bytes(request_.operation);
    parameters_.append(bytes.substr(0, most + 1 - parameters_.size()));
    return bytes.size();
  }
  if (!client_) return bytes.size();  // refused, and the rest is dropped
  const std::size_t taken = std::min(bytes.size(), client_.channel->room());
  client_.channel->send(bytes.substr(0, taken));
  return taken;
}

void ApiExchange::end_body() {
  body_ended_ = true;
  if (head_ && !client_) return;  // refused: the client was closed
  if (request_.operation.kind == api::Kind::put) return send_end_of_body();
  std::optional<api::Problem> problem;
  const std::size_t most = most_body_bytes(request_.operation);
  if (parameters_.size() > most) {
    problem = api::body_too_long(most / 1024);
  } else if (request_.operation.kind == api::Kind::put_many) {
    request_.options.batch = parameters_;
  } else if (!parameters_.empty()) {
    problem = api::add_json(parameters_, request_.parameters);
  }
  if (problem) return refuse(*problem);
  start();
  parameters_ = {};
}

void ApiExchange::send_end_of_body() {
  if (line_end_sent_ || !client_ || client_.channel->room() < kLineEnd.size()) return;
  // The settings may have changed while the body arrived.
  if (!head_) {
    if (const auto problem = host_.check_again(request_)) return refuse(*problem);
  }
  line_end_sent_ = true;
  client_.channel->send(kLineEnd);
  // The answer may have arrived before the end of the body.
  if (head_ && to_arrive_ == 0) complete();
}

void ApiExchange::on_channel() {
  send_input();
  if (body_ended_ && request_.operation.kind == api::Kind::put) send_end_of_body();
  take_output();
  resume();
}

void ApiExchange::take_output() {
  if (!client_ || script_ == nullptr || arrived_.size() - passed_ >= kArrivedBytes) return;
  std::string& output = client_.channel->output();
  if (output.empty()) return;
  arrived_.erase(0, std::exchange(passed_, 0));
  const bool had_head = head_.has_value();
  const std::size_t before = arrived_.size();
  arrived_.append(output);
  output.clear();
  client_.channel->output_taken();
  if (!had_head) {
    head_ = api::take_frame_head(arrived_);
    if (!head_) return;
    to_arrive_ = to_pass_ = head_->bytes;
  }
  const std::size_t content = arrived_.size() - (had_head ? before : 0);
  to_arrive_ -= std::min<std::uint64_t>(content, to_arrive_);
  const bool body_is_over = request_.operation.kind != api::Kind::put || line_end_sent_;
  if (to_arrive_ == 0 && body_is_over) complete();
}

void ApiExchange::complete() {
  client_.client->conversation().answers().set_writer(nullptr);
  if (returns_unsent_job()) {
    if (client_has_left()) host_.take_back(client_);
    kept_ = true;
  }
  host_.give_back(std::exchange(client_, {}), request_.options.token);
}

// The server has closed the client, or the client has no more output.
void ApiExchange::on_channel_closed() {
  client_ = {};
  host_.client_lost(request_.options.token);
  if (!head_) return refuse(api::closed());
  resume();
}

std::optional<loop::HttpHead> ApiExchange::head() {
  if (!head_) return std::nullopt;
  return http_head(*head_, may_have_run_);
}

loop::HttpExchange::Next ApiExchange::next_part(std::size_t bytes, std::string& text) {
  if (to_pass_ == 0) return Next::end;
  if (passed_ == arrived_.size()) take_output();
  // Without a client the rest never arrives: the connection is closed early.
  if (passed_ == arrived_.size()) return client_ ? Next::wait : Next::end;
  const std::size_t part = std::min(bytes, arrived_.size() - passed_);
  text.append(arrived_, passed_, part);
  passed_ += part;
  to_pass_ -= part;
  return Next::part;
}

}  // namespace tubed::http
