// How input becomes commands: receive() gives bytes to take(), which runs the stages in a loop.
// Each stage consumes a prefix of the input and may change the stage; run_line() and
// take_body_end() run commands. In the usual case the bytes are whole commands and are consumed
// where they are, in the client's read buffer. Only the rest is copied (keep) and continued by a
// later receive() or resume().
//
// may_go_on() checks before each step whether another step is permitted, and records why not
// (stop_). The cost of each step is subtracted from the quantum (quantum.h). A command in slices
// has its Operation between two slices; while it is in progress, take() runs it again before it
// looks at the input.
#include "commands/conversation.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/planted.h"
#include "commands/authorization.h"
#include "commands/handlers.h"
#include "commands/line_end.h"

namespace tubed::commands {

using namespace protocol;

namespace {

// How many bytes of list-tubes are written before the client reads them.
constexpr std::size_t kListAheadBytes = 128 * 1024;

// Returns the limit of the command with which a long line begins; 0: limits.line_bytes.
std::size_t longer_limit(std::string_view input, std::size_t line_bytes) {
  const Command* command = find_command(input.substr(0, input.find(' ')));
  if (command == nullptr) return 0;
  const bool has_tag = input.substr(0, line_bytes).find(':') != std::string_view::npos;
  return command->long_with_tags && !has_tag ? 0 : command->line_bytes;
}

void write_timed_out(const Waiting& wait, Replies& replies) {
  if (wait.for_batch) return replies.write(JobBatch());
  replies.write(word::kTimedOut);
}

}  // namespace

Conversation::Conversation(Service& service)
    : service_(service),
      session_(service.engine().open()),
      replies_(service, session_),
      pending_(service.input()) {
  service_.conversations().opened(session_, *this);
  service_.counters().count(stats::Counter::connection);
}

Conversation::~Conversation() {
  audit_unfinished();
  abandon_body();
  service_.conversations().closed(session_);
  const bool leaks = TUBED_PLANTED(session_is_leaked) && !wait_;
  if (leaks && !service_.engine().holds_jobs(session_)) return;
  service_.engine().close(session_, service_.now(), service_);
}

// --- Input

void Conversation::receive(std::string_view bytes) {
  if (has_quit()) return;
  if (wait_ || !pending_.empty() || command_.in_progress()) {
    pending_.append(bytes);
    if (wait_) return abort_waits();
    return work();
  }
  // The usual case: whole commands, which are not copied.
  const std::size_t taken = do_work(bytes);
  if (taken == bytes.size()) return;
  pending_.append(bytes.substr(taken));
  abort_waits();
}

std::span<char> Conversation::body_space() {
  if (stage_ != Stage::body || !body_.is_stored() || !pending_.empty()) return {};
  return body_.space();
}

void Conversation::body_received(std::size_t count) {
  TUBED_ASSERT(stage_ == Stage::body && body_.is_stored() && count <= body_.left());
  body_.received(count);
  if (body_.left() == 0) stage_ = Stage::body_end;
}

void Conversation::half_close() {
  may_wait_ = false;
  if (command_.unpark()) return work();
  if (!wait_) return;
  write_timed_out(cancel_wait(), replies_);
  work();
}

Waiting Conversation::cancel_wait() {
  service_.engine().cancel_wait(session_);
  return *std::exchange(wait_, std::nullopt);
}

void Conversation::end_input() {
  if (!has_quit()) end_ = End::input_ended;
  half_close();
}

void Conversation::stop_waiting() {
  may_wait_ = false;
  if (command_.awaits_reload()) return command_.reloaded({.refusal = "the server is stopping"});
  if (command_.unpark()) end_ = End::quit;
  if (!wait_) return;
  cancel_wait();
  end_ = End::quit;
}

void Conversation::abandon() {
  stop_waiting();
  end_ = End::quit;
}

void Conversation::resume() {
  if (can_resume()) work();
}

bool Conversation::can_resume() const {
  if (has_quit() || wait_) return false;
  if (stop_ == Stop::output) return replies_.size() <= output_bound();
  return (stop_ == Stop::budget && !command_.is_parked()) || stop_ == Stop::congested;
}

// No further command runs while the replies exceed this many bytes.
std::size_t Conversation::output_bound() const {
  const std::size_t bound = service_.conversation_limits().output_bytes;
  const auto* tubes = command_.operation<TubeListOperation>();
  const bool in_list = tubes != nullptr && tubes->list != nullptr;
  return in_list ? std::min(bound, kListAheadBytes) : bound;
}

bool Conversation::wants_input() const {
  if (end_ != End::open) return false;
  // A client that waits may pipeline what one read brings. The rest stays in the kernel.
  return stop_ == Stop::starved || (wait_ && pending_.empty());
}

bool Conversation::finished() const {
  const bool awaits_refusal = principal_ != nullptr && principal_->awaits_refusal();
  return has_quit() ? !awaits_refusal : end_ == End::input_ended && stop_ == Stop::starved;
}

bool Conversation::in_body() const {
  const bool answered = stage_ == Stage::dropped && body_.refusal().empty();
  return stage_ != Stage::line && stage_ != Stage::skipped_line &&
         stage_ != Stage::unauthenticated && !answered;
}

bool Conversation::idle() const {
  return !wait_ && !command_.in_progress() && !waits_for_log() && replies_.buffer().empty() &&
         !service_.engine().holds_jobs(session_);
}

// --- Work

void Conversation::work() {
  pending_.take(do_work(pending_.view()));
  abort_waits();
}

// Ends the waits of reserve-with-abort that input follows.
void Conversation::abort_waits() {
  while (wait_ && wait_->until_input && !pending_.empty()) {
    write_timed_out(cancel_wait(), replies_);
    pending_.take(do_work(pending_.view()));
  }
}

std::size_t Conversation::do_work(std::string_view input) {
  const std::uint32_t quantum = service_.tick_budget().quantum();
  quantum_.begin(quantum);
  const std::size_t taken = take(input);
  service_.tick_budget().spend(quantum - quantum_.left());
  return taken;
}

// Consumes as much of the front of `input` as it can. Returns the number of bytes consumed.
std::size_t Conversation::take(std::string_view input) {
  working_ = true;
  const engine::Engine& engine = service_.engine();  // checked once, not in each step
  std::size_t total = 0;
  while (may_go_on()) {
    const std::size_t replies_before = replies_.size();
    if (command_.in_progress()) {
      if (principal_ == nullptr || is_still_allowed()) [[likely]]
        run_command();
      quantum_.charge(replies_.size() - replies_before, 0);
      continue;
    }
    const std::string_view rest = input.substr(total);
    const std::uint64_t walked_before = engine.entries_walked();
    std::size_t taken = 0;
    switch (stage_) {
      case Stage::line:
        taken = take_line(rest);
        break;
      case Stage::body:
      case Stage::dropped:
        taken = take_body(rest);
        break;
      case Stage::body_end:
        taken = take_body_end(rest);
        break;
      case Stage::skipped_line:
        taken = take_skipped_line(rest);
        break;
      case Stage::unauthenticated:
        taken = take_first_line(rest);
        break;
    }
    total += taken;
    quantum_.charge(replies_.size() - replies_before, engine.entries_walked() - walked_before);
    if (stop_ == Stop::starved || stop_ == Stop::congested) break;
  }
  working_ = false;
  return has_quit() ? input.size() : total;
}

// True: the log is congested. Called before a step that may emit a fact.
inline bool Conversation::must_wait_for_log() {
  if (!service_.log().congested()) return false;
  stop_ = Stop::congested;
  return true;
}

// False if this run of work ends. If true, stop_ is `budget` until a stage needs more input.
bool Conversation::may_go_on() {
  if (has_quit()) return false;
  if (wait_) {
    stop_ = Stop::waiting;
    return false;
  }
  const bool slice = command_.in_progress();
  if (replies_.size() > (slice ? output_bound() : service_.conversation_limits().output_bytes) &&
      !TUBED_PLANTED(replies_without_bound)) {
    stop_ = Stop::output;
    return false;
  }
  if (slice && command_.row().may_emit_facts && must_wait_for_log()) return false;
  stop_ = Stop::budget;
  return quantum_.left() > 0;
}

std::size_t Conversation::take_line(std::string_view input) {
  const std::size_t limit = service_.conversation_limits().line_bytes;
  std::size_t end = find_line_end(input.substr(0, limit));
  if (end == std::string_view::npos) {
    if (input.size() < limit) {
      stop_ = Stop::starved;
      return 0;
    }
    const std::size_t longer = longer_limit(input, limit);
    end = find_line_end(input.substr(0, longer));
    if (end != std::string_view::npos) {
      return run_line(input.substr(0, end)) ? end + kLineEnd.size() : 0;
    }
    if (input.size() < longer) {
      stop_ = Stop::starved;
    } else if (end_foreign_protocol(input)) {
      replies_.write(word::kBadFormat);
      return 0;
    } else if (!run_auth(input.substr(0, input.find(' ')), {})) {
      stage_ = Stage::skipped_line;
      line_reply_ = word::kBadFormat;
      service_.counters().count(stats::Counter::bad_format);
    }
    return 0;
  }
  return run_line(input.substr(0, end)) ? end + kLineEnd.size() : 0;
}

std::size_t Conversation::take_body(std::string_view input) {
  const bool ends_here = !input.empty() && body_.left() == input.size();
  const std::size_t lost = TUBED_PLANTED(body_ends_before_its_chunk) && ends_here ? 1 : 0;
  const std::size_t count = body_.take(input.substr(0, input.size() - lost)) + lost;
  body_.received(lost);
  if (body_.left() > 0) {
    stop_ = Stop::starved;
  } else if (stage_ == Stage::body) {
    stage_ = Stage::body_end;
  } else {
    stage_ = Stage::line;
    if (!body_.refusal().empty()) replies_.write(body_.refusal());
  }
  return count;
}

std::size_t Conversation::take_body_end(std::string_view input) {
  if (input.empty() || input == kLineEnd.substr(0, 1)) {
    stop_ = Stop::starved;
    return 0;
  }
  if (!input.starts_with(kLineEnd)) {
    // Bytes up to the next line end may be part of the body. Compat: expected-crlf-resync
    stage_ = Stage::skipped_line;
    abandon_body();
    service_.counters().count(stats::Counter::expected_crlf);
    replies_.write(word::kExpectedCrlf);
    return 0;
  }
  if (body_.refusal().empty() && must_wait_for_log()) return 0;
  stage_ = Stage::line;
  if (!body_.refusal().empty()) {
    replies_.write(body_.refusal());
  } else if (principal_ == nullptr || is_still_allowed()) [[likely]] {
    run_command();
  }
  return kLineEnd.size();
}

std::size_t Conversation::take_skipped_line(std::string_view input) {
  const std::size_t end = find_line_end(input);
  if (end == std::string_view::npos) {
    stop_ = Stop::starved;
    // The last byte may be the CR of a line end.
    return input.empty() || input.back() != kLineEnd.front() ? input.size() : input.size() - 1;
  }
  stage_ = Stage::line;
  if (!line_reply_.empty()) replies_.write(std::exchange(line_reply_, {}));
  return end + kLineEnd.size();
}

// --- Commands

// False if the command has to wait for the log. A command with a body waits after its body has
// arrived.
bool Conversation::run_line(std::string_view line) {
  const std::size_t space = line.find(' ');
  const std::string_view name = line.substr(0, space);
  const bool has_text = space != std::string_view::npos;
  const std::string_view text = has_text ? line.substr(space + 1) : std::string_view();
  const Command* command = find_command(name);
  if (TestHooks* hooks = service_.test_hooks(); hooks != nullptr) [[unlikely]] {
    command = hooks->command_for(name, command);
  }
  if (line.find('\0') != std::string_view::npos) {
    if (!run_auth(name, text)) refuse_line(command, text);
    end_foreign_protocol(line);
    return true;
  }
  if (command == nullptr || (!has_text && command->text_rule == TextRule::needed)) {
    if (run_auth(name, text)) return true;
    end_foreign_protocol(line);
    service_.counters().count(stats::Counter::unknown_command);
    replies_.write(word::kUnknownCommand);
    return true;
  }
  const bool fits = has_text ? command->text_rule != TextRule::none
                             : command->text_rule != TextRule::needed_word_known;
  const bool ignored = command->text_rule == TextRule::ignored;
  if (!fits || !command_.read(*command, ignored ? std::string_view() : text)) {
    refuse_line(command, text);
    return true;
  }
  const bool has_body = command->begin_body != nullptr;
  if (command->may_emit_facts && !has_body && must_wait_for_log()) return false;
  service_.count(*command);
  if (principal_ != nullptr) [[unlikely]] {
    if (!is_allowed()) return true;
  }
  if (has_body) {
    if (begin_body()) command_.keep_text(text);
  } else {
    run_command();
    // Its tubes are decided about again before the next slice.
    if (principal_ != nullptr && command_.in_progress() && !ignored) [[unlikely]]
      command_.keep_text(text);
  }
  return true;
}

// Answers a malformed line at once, because the client may not send a body. If the length of the
// body can be read, the body is dropped: otherwise it would be run as commands. Compat:
// put-body-swallowed
void Conversation::refuse_line(const Command* command, std::string_view text) {
  BodySize size;
  const bool has_body = command != nullptr && command->begin_body != nullptr;
  service_.counters().count(stats::Counter::bad_format);
  replies_.write(word::kBadFormat);
  if (has_body && salvage_body_size(text, command->fields_before_size, size))
    drop_body(size.bytes, {});
}

Context Conversation::context() {
  return {.service = service_,
          .engine = service_.engine(),
          .session = session_,
          .now = service_.now(),
          .body = {},
          .may_wait = may_wait_};
}

// True if the arguments may refer to text.
bool Conversation::begin_body() {
  Context context = this->context();
  const BodyPlan plan = command_.begin_body(context);
  if (plan.kind == BodyPlan::Kind::discard) {
    drop_body(plan.bytes, plan.refusal.word);
    return false;
  }
  body_.begin(std::move(context.body), plan.bytes, plan.refusal.word);
  stage_ = Stage::body;
  return plan.has_text;
}

// Drops the two bytes after the body as well, whether or not they are CR LF, as beanstalkd does.
void Conversation::drop_body(std::uint32_t bytes, std::string_view reply) {
  body_.begin({}, bytes + kLineEnd.size(), reply);
  stage_ = Stage::dropped;
}

void Conversation::abandon_body() {
  if (!body_.is_stored()) return;
  service_.engine().memory().give_back(command_.claimed());
  body_.refuse({});
}

void Conversation::run_command() {
  Context context = this->context();
  context.body = body_.release();
  const Answer answer = command_.run(context);
  replies_.write(answer);
  if (!is_whole_reply(answer) && !ends_command(answer)) return;
  if (principal_ != nullptr && command_.row().access == Access::admin &&
      is_administration(command_.row(), command_.named())) [[unlikely]]
    audit_ran(context, command_.row(), command_.arguments(), answer);
  if (command_.in_progress()) end_operation();
}

void Conversation::end_operation() {
  const auto* reload = command_.operation<ReloadOperation>();
  if (reload != nullptr && reload->closes) end_ = End::quit;
  command_.end_operation();
  replies_.slices_end();
}

// True if the command has ended. Precondition: the answer is not a whole reply.
bool Conversation::ends_command(const Answer& answer) {
  if (const auto* part = std::get_if<BlockPart>(&answer)) return part->last;
  if (std::holds_alternative<Unfinished>(answer)) {
    // A slice is not smaller if many clients wait, so it costs the tick its full size.
    service_.tick_budget().spend(service_.engine().limits().work_per_turn);
    quantum_.spend_all();
    return false;
  }
  if (const auto* waiting = std::get_if<Waiting>(&answer)) wait_ = *waiting;
  if (std::holds_alternative<Close>(answer)) end_ = End::quit;
  return true;
}

bool Conversation::restart() {
  if (principal_ != nullptr) principal_->forget_session_tubes();
  if (body_.is_stored() && !service_.engine().memory().claim(command_.claimed()))
    body_.refuse(word::kOutOfMemory);
  if (command_.unpark()) return true;
  if (!std::exchange(wait_, std::nullopt)) return false;
  if (principal_ == nullptr || is_allowed()) run_command();
  if (wait_) return false;
  stop_ = pending_.empty() ? Stop::starved : Stop::budget;
  return true;
}

bool Conversation::answer(const engine::Notice& notice) {
  TUBED_ASSERT(wait_);
  const Waiting wait = *std::exchange(wait_, std::nullopt);
  if (wait.for_batch && notice.kind == engine::Notice::Kind::reserved) {
    command_.set_operation(BatchOperation{{.id = notice.job, .body = notice.body}});
    stop_ = Stop::budget;
    return !working_;
  }
  if (notice.kind == engine::Notice::Kind::timed_out) {
    write_timed_out(wait, replies_);
  } else {
    replies_.write(answer_of(notice));
  }
  if (working_) return false;
  // Input that was pipelined after the reserve can be run now.
  stop_ = pending_.empty() ? Stop::starved : Stop::budget;
  return true;
}

}  // namespace tubed::commands
