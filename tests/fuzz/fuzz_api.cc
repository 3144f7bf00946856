// Fuzzes the HTTP API without HTTP: a request passes the guard, the table of operations and its
// script, which runs in a conversation with a small engine.
//
// The input is a byte of options, then lines: method and target, Host, Origin, X-Requested-By. The
// rest is the body. For every request, the response is one whole frame, its text is JSON where it
// says so, and only commands of the operation ran: the body of a put is never a command. The host
// and the origin matter only to the guard, so an input with a wrong host or origin reaches the rest
// as well.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/guard.h"
#include "api/script.h"
#include "api/target.h"
#include "base/assert.h"
#include "commands/authorization.h"
#include "json/json.h"
#include "stats/counters.h"
#include "tests/commands/talk.h"

namespace {

using namespace tubed;
using commands::Conversation;
using commands::Service;

const std::vector<std::string> kHosts = {"queue.example"};

struct Options {
  bool draining;
  bool with_role;
  bool narrow_role;
  bool body_as_json;
  bool byte_by_byte;
  bool small;
};

Options options_of(std::uint8_t byte) {
  const auto bit = [byte](int place) { return (byte >> place & 1) != 0; };
  return {bit(0), bit(1), bit(2), bit(3), bit(4), bit(5)};
}

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

Role role_of(const Options& options) {
  Role role;
  role.name = "1";
  role.produce = true;
  role.inspect = true;
  role.work = !options.narrow_role;
  role.admin = !options.narrow_role;
  role.tubes = {"default", "a*"};
  return role;
}

bool is_json(std::string_view text) {
  return json::Json::parse(std::string(R"({"value":)").append(text).append("}")).has_value();
}

// --- The guard

void check_guard(const api::RequestHeaders& headers, bool may_change) {
  const auto problem = api::check_origin(headers, may_change, kHosts);
  if (problem) return TUBED_ASSERT(is_json(api::to_json(*problem)));
  const std::string_view host = *headers.host;
  // A DNS name that is not in the settings has a letter outside of brackets.
  const bool is_numeric = host.find_first_not_of("0123456789.:") == std::string_view::npos;
  const bool is_named = (host.front() | 0x20) == 'l' || (host.front() | 0x20) == 'q';
  TUBED_ASSERT(is_numeric || is_named || host.starts_with('['));
  if (headers.origin)
    TUBED_ASSERT(headers.origin->size() == host.size() + 7 ||
                 headers.origin->size() == host.size() + 8);
  if (may_change) TUBED_ASSERT(headers.requested_by && !headers.requested_by->empty());
}

// --- The queue

// A small queue that runs one request.
class SmallQueue {
 public:
  explicit SmallQueue(const Options& options)
      : options_(options),
        talk_({.job_bytes = 512,
               .job_memory_bytes = options.small ? 2048U : 1U << 20,
               .tubes = options.small ? 3U : 8U,
               .work_per_turn = 3}) {
    service_.begin_tick(commands::kStart);
    service_.set_roles({role_of(options)});
    Conversation other(service_);
    other.receive(
        "put 5 0 60 1\r\na\r\nput-in-tube a 5 0 60 2 idp:k\r\n\xff\n\r\nput-in-tube a 5 99 60 0\r\n"
        "\r\nput-in-tube b 0 0 60 3 grp:g\r\nabc\r\nreserve-job 4\r\nbury 4 0\r\n");
    service_.set_draining(options.draining);
    before_ = counts();
  }

  void run(const api::Operation& operation, api::Script& script, std::string_view body) {
    commands::Admission admission;
    if (options_.with_role) admission.role = service_.roles().find("1");
    auto conversation = options_.with_role ? std::make_unique<Conversation>(service_, admission)
                                           : std::make_unique<Conversation>(service_);
    conversation->answers().set_writer(&script);
    std::string input = script.first_input();
    script.on_input([&input](std::string_view line) { input += line; });
    script.on_look([&](JobId id) { return commands::visible_state(conversation->context(), id); });
    if (operation.kind == api::Kind::put) input.append(body).append("\r\n");
    std::string output;
    // A wait lasts at most kMostWaitSeconds.
    for (std::uint32_t seconds = 0; seconds <= api::kMostWaitSeconds + 1; ++seconds) {
      send(*conversation, input, output);
      if (script.done() && input.empty()) break;
      service_.begin_tick(service_.tick_time() + std::chrono::seconds(1));
    }
    TUBED_ASSERT(script.done());
    check_response(operation, output);
    check_commands(operation);
    service_.engine().check_invariants();
    conversation->answers().set_writer(nullptr);
  }

 private:
  void send(Conversation& conversation, std::string& input, std::string& output) const {
    do {
      const std::string bytes = std::exchange(input, {});
      const std::size_t step = options_.byte_by_byte ? 1 : std::max<std::size_t>(bytes.size(), 1);
      for (std::size_t at = 0; at < bytes.size(); at += step)
        conversation.receive(std::string_view(bytes).substr(at, step));
      conversation.resume();
      output += protocol::take_replies(conversation.replies());
    } while (!input.empty() || conversation.can_resume());
  }

  static void check_response(const api::Operation& operation, std::string output) {
    const auto head = api::take_frame_head(output);
    TUBED_ASSERT(head && head->bytes == output.size());
    if (head->content == api::Content::bytes) {
      TUBED_ASSERT(operation.kind == api::Kind::body && head->status == 200);
    } else if (head->status == 204) {
      TUBED_ASSERT(output.empty());
    } else {
      TUBED_ASSERT(is_json(output));
      TUBED_ASSERT((head->status >= 400) == (head->content == api::Content::problem));
    }
  }

  // Returns the commands and their counts.
  std::vector<std::pair<std::string_view, std::uint64_t>> counts() const {
    std::vector<std::pair<std::string_view, std::uint64_t>> all;
    for (const stats::CommandCount& command : service_.server_state().commands)
      all.emplace_back(command.command, command.count);
    return all;
  }

  void check_commands(const api::Operation& operation) const {
    const std::string_view word = operation.line.substr(0, operation.line.find(' '));
    const auto is_of_operation = [&](std::string_view name) {
      constexpr auto kOfReserve = std::to_array<std::string_view>({"watch", "ignore", "stats-job"});
      const bool reserves = api::reserves_jobs(operation.kind);
      return name == word || (reserves && std::ranges::find(kOfReserve, name) != kOfReserve.end());
    };
    const auto after = counts();
    for (std::size_t i = 0; i < after.size(); ++i)
      TUBED_ASSERT(after[i] == before_[i] || is_of_operation(after[i].first));
    const stats::ServerCounters& counters = service_.counters();
    TUBED_ASSERT(counters.count_of(stats::Counter::unknown_command) == 0);
    TUBED_ASSERT(counters.count_of(stats::Counter::expected_crlf) == 0);
    TUBED_ASSERT(counters.count_of(stats::Counter::bad_format) <= 1);
  }

  const Options& options_;
  commands::Talk talk_;
  Service& service_ = talk_.service;
  std::vector<std::pair<std::string_view, std::uint64_t>> before_;
};

// --- A request

void request(const Options& options, std::optional<api::Method> method, std::string_view line,
             std::string_view body) {
  auto target = api::parse_target(line);
  if (!target) return;
  for (const std::string& segment : target->segments) {
    std::string path = "/";
    api::append_segment(segment, path);
    TUBED_ASSERT(path.size() > api::kMaxTargetBytes ||
                 api::parse_target(path)->segments == std::vector<std::string>{segment});
  }
  api::Routed routed = api::route(method, std::span(target->segments));
  if (routed.operation == nullptr || routed.operation->line.empty()) return;
  const api::Operation& operation = *routed.operation;
  api::Parameters parameters = std::move(routed.path);
  for (auto& one : target->query) parameters.push_back(std::move(one));
  if (!api::has_job_body(operation.kind) && !body.empty()) {
    if (const auto problem = api::add_json(body, parameters))
      return TUBED_ASSERT(is_json(api::to_json(*problem)));
  }
  api::remove_units(parameters);
  SmallQueue queue(options);
  api::ScriptOptions made_with{
      .token = "cafe", .body_bytes = body.size(), .body_as_json = options.body_as_json};
  if (operation.kind == api::Kind::held) made_with.held = {.id = 1, .priority = 7};
  if (operation.kind == api::Kind::all_held) made_with.held_jobs = {1, 2};
  if (operation.kind == api::Kind::put_many) made_with.batch = body;
  auto script = api::script_of(operation, std::move(parameters), made_with);
  if (const auto* problem = std::get_if<api::Problem>(&script))
    return TUBED_ASSERT(is_json(api::to_json(*problem)));
  queue.run(operation, *std::get<std::unique_ptr<api::Script>>(script), body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::string_view target = take_line(text);
  const std::string_view name = target.substr(0, target.find(' '));
  target.remove_prefix(std::min(name.size() + 1, target.size()));
  const std::string_view host = take_line(text);
  const std::string_view origin = take_line(text);
  const std::string_view requested_by = take_line(text);
  const auto method = api::method_named(name);
  const auto header = [](std::string_view value) {
    return value.empty() ? std::nullopt : std::optional(value);
  };
  check_guard({.host = header(host),
               .origin = header(origin),
               .fetch_site = {},
               .requested_by = header(requested_by)},
              method != api::Method::get);
  const Options options = options_of(data[0]);
  request(options, method, target, text);
  return 0;
}
