// How input becomes commands: receive() gives bytes to take(), which runs the stages in a loop.
// Each stage consumes a prefix of the input and may change the stage; run_line() and
// take_body_end() run commands. In the usual case the bytes are whole commands and are consumed
// where they are, in the client's read buffer. Only the rest is copied (keep) and continued by a
// later receive() or resume().
//
// may_go_on() checks before each step whether another step is permitted, and records why not
// (stop_). charge() subtracts the cost of each step from the quantum: one unit for a command, and
// more for long replies and long walks of watch lists. A command in slices has its Operation
// between two slices; while it is in progress, take() runs it again before it looks at the input.
#include "commands/conversation.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/planted.h"
#include "commands/authorization.h"
#include "commands/handlers.h"
#include "commands/line_end.h"

namespace tubed::commands {

using namespace protocol;

namespace {

// A reply of this many bytes counts as one unit of work.
constexpr std::size_t kReplyBytesPerWork = 256;
// A walk over this many entries of watch lists or lists of jobs counts as one unit of work.
constexpr std::uint64_t kEntriesPerWork = 64;
// How many bytes of list-tubes are written before the client reads them.
constexpr std::size_t kListAheadBytes = 128 * 1024;

}  // namespace

Conversation::Conversation(Service& service)
    : service_(service), session_(service.engine().open()), replies_(service, session_) {
  service_.conversations().opened(session_, *this);
  service_.counters().count(stats::Counter::connection);
}

Conversation::~Conversation() {
  audit_unfinished();
  abandon_body();
  service_.input().count(counted_input_, 0);
  service_.conversations().closed(session_);
  const bool leaks = TUBED_PLANTED(session_is_leaked) && !wait_;
  if (leaks && !service_.engine().holds_jobs(session_)) return;
  service_.engine().close(session_, service_.now(), service_);
}

// --- Input

void Conversation::receive(std::string_view bytes) {
  if (quit_) return;
  if (wait_ || !pending_.empty() || in_progress(running_.operation)) {
    keep(bytes);
    if (wait_) return abort_waits();
    return work();
  }
  // The usual case: whole commands, which are not copied.
  const std::size_t taken = do_work(bytes);
  if (taken == bytes.size()) return;
  keep(bytes.substr(taken));
  abort_waits();
}

void Conversation::keep(std::string_view input) {
  pending_.append(input);
  counted_input_ = service_.input().count(counted_input_, pending_.memory());
}

std::span<char> Conversation::body_space() {
  if (stage_ != Stage::body || !incoming_.bytes || !pending_.empty()) return {};
  return incoming_.bytes.writable().last(incoming_.left);
}

void Conversation::body_received(std::size_t count) {
  TUBED_ASSERT(stage_ == Stage::body && incoming_.bytes && count <= incoming_.left);
  incoming_.left -= count;
  if (incoming_.left == 0) stage_ = Stage::body_end;
}

void Conversation::half_close() {
  may_wait_ = false;
  if (std::exchange(parked_, false)) return work();
  if (!wait_) return;
  end_wait();
  work();
}

// Ends the wait with the answer TIMED_OUT.
void Conversation::end_wait() {
  reply_timed_out(cancel_wait());
}

Waiting Conversation::cancel_wait() {
  service_.engine().cancel_wait(session_);
  return *std::exchange(wait_, std::nullopt);
}

void Conversation::end_input() {
  input_ended_ = true;
  half_close();
}

void Conversation::stop_waiting() {
  may_wait_ = false;
  if (awaits_reload()) return reloaded({.refusal = "the server is stopping"});
  if (std::exchange(parked_, false)) quit_ = true;
  if (!wait_) return;
  cancel_wait();
  quit_ = true;
}

void Conversation::reloaded(ReloadResult result) {
  std::get<ReloadOperation>(running_.operation).result =
      std::make_shared<ReloadResult>(std::move(result));
  parked_ = false;
}

void Conversation::abandon() {
  stop_waiting();
  quit_ = true;
}

void Conversation::has_drained() {
  if (!announces_drained_) return;
  // Not into the answer of a command in slices.
  if (in_progress(running_.operation)) {
    owes_drained_ = true;
  } else {
    replies_.write(word::kDrained);
  }
}

void Conversation::resume() {
  if (can_resume()) work();
}

bool Conversation::can_resume() const {
  if (quit_ || wait_) return false;
  if (stop_ == Stop::output) return replies_.size() <= output_bound();
  return (stop_ == Stop::budget && !parked_) || stop_ == Stop::congested;
}

// No further command runs while the replies exceed this many bytes.
std::size_t Conversation::output_bound() const {
  const std::size_t bound = service_.conversation_limits().output_bytes;
  const auto* tubes = std::get_if<TubeListOperation>(&running_.operation);
  const bool in_list = tubes != nullptr && tubes->list != nullptr;
  return in_list ? std::min(bound, kListAheadBytes) : bound;
}

bool Conversation::wants_input() const {
  if (quit_ || input_ended_) return false;
  // A client that waits may pipeline what one read brings. The rest stays in the kernel.
  return stop_ == Stop::starved || (wait_ && pending_.empty());
}

bool Conversation::in_body() const {
  const bool answered = stage_ == Stage::dropped && incoming_.refusal.empty();
  return stage_ != Stage::line && stage_ != Stage::skipped_line &&
         stage_ != Stage::unauthenticated && !answered;
}

bool Conversation::idle() const {
  return !wait_ && !in_progress(running_.operation) && !waits_for_log() &&
         replies_.buffer().empty() && !service_.engine().holds_jobs(session_);
}

// --- Work

void Conversation::work() {
  do_pending_work();
  abort_waits();
}

void Conversation::do_pending_work() {
  pending_.take(do_work(pending_.view()));
  counted_input_ = service_.input().count(counted_input_, pending_.memory());
}

// Ends the waits of reserve-with-abort that input follows.
void Conversation::abort_waits() {
  while (wait_ && wait_->until_input && !pending_.empty()) {
    end_wait();
    do_pending_work();
  }
}

std::size_t Conversation::do_work(std::string_view input) {
  const std::uint32_t quantum = service_.tick_budget().quantum();
  budget_ = quantum;
  const std::size_t taken = take(input);
  service_.tick_budget().spend(quantum - budget_);
  return taken;
}

// Consumes as much of the front of `input` as it can. Returns the number of bytes consumed.
std::size_t Conversation::take(std::string_view input) {
  working_ = true;
  const engine::Engine& engine = service_.engine();  // checked once, not in each step
  std::size_t total = 0;
  while (may_go_on()) {
    const std::size_t replies_before = replies_.size();
    if (in_progress(running_.operation)) {
      if (principal_ == nullptr || is_still_allowed()) [[likely]]
        run_command();
      charge(replies_.size() - replies_before, 0);
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
    charge(replies_.size() - replies_before, engine.entries_walked() - walked_before);
    if (stop_ == Stop::starved || stop_ == Stop::congested) break;
  }
  working_ = false;
  return quit_ ? input.size() : total;
}

// True: the log is congested. Called before a step that may emit a fact.
inline bool Conversation::must_wait_for_log() {
  if (!service_.log().congested()) return false;
  stop_ = Stop::congested;
  return true;
}

// False if this run of work ends. If true, stop_ is `budget` until a stage needs more input.
bool Conversation::may_go_on() {
  if (quit_) return false;
  if (wait_) {
    stop_ = Stop::waiting;
    return false;
  }
  const bool slice = in_progress(running_.operation);
  if (replies_.size() > (slice ? output_bound() : service_.conversation_limits().output_bytes) &&
      !TUBED_PLANTED(replies_without_bound)) {
    stop_ = Stop::output;
    return false;
  }
  if (slice && running_.row->may_emit_facts && must_wait_for_log()) return false;
  stop_ = Stop::budget;
  return budget_ > 0;
}

std::size_t Conversation::take_line(std::string_view input) {
  const std::size_t limit = service_.conversation_limits().line_bytes;
  std::size_t end = find_line_end(input.substr(0, limit));
  if (end == std::string_view::npos) {
    if (input.size() < limit) {
      stop_ = Stop::starved;
      return 0;
    }
    const std::size_t longer = longer_limit(input);
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

// Returns the limit of the command with which a long line begins; 0: limits.line_bytes.
std::size_t Conversation::longer_limit(std::string_view input) const {
  const Command* command = find_command(input.substr(0, input.find(' ')));
  if (command == nullptr) return 0;
  const std::string_view usual = input.substr(0, service_.conversation_limits().line_bytes);
  const bool has_tag = usual.find(':') != std::string_view::npos;
  return command->long_with_tags && !has_tag ? 0 : command->line_bytes;
}

std::size_t Conversation::take_body(std::string_view input) {
  const std::size_t count = std::min<std::size_t>(input.size(), incoming_.left);
  const bool ends_here = incoming_.left == input.size();
  const std::size_t lost = TUBED_PLANTED(body_ends_before_its_chunk) && ends_here ? 1 : 0;
  if (count > lost && incoming_.bytes) {
    std::memcpy(incoming_.bytes.writable().last(incoming_.left).data(), input.data(), count - lost);
  }
  incoming_.left -= count;
  if (incoming_.left > 0) {
    stop_ = Stop::starved;
  } else if (stage_ == Stage::body) {
    stage_ = Stage::body_end;
  } else {
    stage_ = Stage::line;
    if (!incoming_.refusal.empty()) replies_.write(incoming_.refusal);
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
  if (incoming_.refusal.empty() && must_wait_for_log()) return 0;
  stage_ = Stage::line;
  if (!incoming_.refusal.empty()) {
    replies_.write(incoming_.refusal);
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
  if (!fits || !command->parse(ignored ? std::string_view() : text, running_.arguments)) {
    refuse_line(command, text);
    return true;
  }
  const bool has_body = command->begin_body != nullptr;
  if (command->may_emit_facts && !has_body && must_wait_for_log()) return false;
  running_.row = command;
  service_.count(*command);
  if (principal_ != nullptr) [[unlikely]] {
    if (!is_allowed()) return true;
  }
  if (has_body) {
    if (begin_body()) keep_text(text);
  } else {
    run_command();
    // Its tubes are decided about again before the next slice.
    if (principal_ != nullptr && in_progress(running_.operation) && !ignored) [[unlikely]]
      keep_text(text);
  }
  return true;
}

// Copies the line: the arguments stay valid after this read.
void Conversation::keep_text(std::string_view text) {
  kept_text_ = text;
  running_.row->parse(kept_text_, running_.arguments);
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
  const BodyPlan plan = running_.row->begin_body(context, running_.arguments);
  if (plan.kind == BodyPlan::Kind::discard) {
    drop_body(plan.bytes, plan.refusal.word);
    return false;
  }
  incoming_.bytes = std::move(context.body);
  incoming_.left = plan.bytes;
  incoming_.refusal = plan.refusal.word;
  stage_ = Stage::body;
  return plan.has_text;
}

// Drops the two bytes after the body as well, whether or not they are CR LF, as beanstalkd does.
void Conversation::drop_body(std::uint32_t bytes, std::string_view reply) {
  incoming_.left = bytes + kLineEnd.size();
  incoming_.refusal = reply;
  stage_ = Stage::dropped;
}

void Conversation::abandon_body() {
  if (incoming_.bytes)
    service_.engine().memory().give_back(running_.row->claimed(running_.arguments));
  incoming_.bytes = Bytes();
}

void Conversation::run_command() {
  Context context = this->context();
  context.body = std::move(incoming_.bytes);
  const Answer answer = running_.row->run(context, running_.arguments, running_.operation);
  replies_.write(answer);
  if (!is_whole_reply(answer) && !ends_command(answer)) return;
  if (principal_ != nullptr && running_.row->access == Access::admin &&
      is_administration(*running_.row, running_.row->named(running_.arguments))) [[unlikely]]
    audit_ran(context, *running_.row, running_.arguments, answer);
  if (in_progress(running_.operation)) end_operation();
}

void Conversation::end_operation() {
  const auto* reload = std::get_if<ReloadOperation>(&running_.operation);
  if (reload != nullptr && reload->closes) quit_ = true;
  running_.operation = {};
  if (std::exchange(owes_drained_, false)) replies_.write(word::kDrained);
}

// True if the command has ended. Precondition: the answer is not a whole reply.
bool Conversation::ends_command(const Answer& answer) {
  if (const auto* part = std::get_if<BlockPart>(&answer)) return part->last;
  if (std::holds_alternative<Unfinished>(answer)) {
    // A slice is not smaller if many clients wait, so it costs the tick its full size.
    service_.tick_budget().spend(service_.engine().limits().work_per_turn);
    budget_ = 0;
    return false;
  }
  if (const auto* waiting = std::get_if<Waiting>(&answer)) wait_ = *waiting;
  if (std::holds_alternative<Close>(answer)) quit_ = true;
  return true;
}

// Subtracts the cost of a step from the budget, in units of one command.
void Conversation::charge(std::size_t reply_bytes, std::uint64_t entries_walked) {
  if (reply_bytes == 0 && entries_walked == 0) return;
  const std::uint64_t cost =
      1 + reply_bytes / kReplyBytesPerWork + entries_walked / kEntriesPerWork;
  budget_ -= static_cast<std::uint32_t>(std::min<std::uint64_t>(cost, budget_));
}

bool Conversation::restart() {
  if (principal_ != nullptr) principal_->forget_session_tubes();
  if (incoming_.bytes &&
      !service_.engine().memory().claim(running_.row->claimed(running_.arguments))) {
    incoming_.bytes = Bytes();
    incoming_.refusal = word::kOutOfMemory;
  }
  if (std::exchange(parked_, false)) return true;
  if (!std::exchange(wait_, std::nullopt)) return false;
  if (principal_ == nullptr || is_allowed()) run_command();
  if (wait_) return false;
  stop_ = pending_.empty() ? Stop::starved : Stop::budget;
  return true;
}

void Conversation::reply_timed_out(const Waiting& wait) {
  if (wait.for_batch) return replies_.write(JobBatch());
  replies_.write(word::kTimedOut);
}

bool Conversation::answer(const engine::Notice& notice) {
  TUBED_ASSERT(wait_);
  const Waiting wait = *std::exchange(wait_, std::nullopt);
  if (wait.for_batch && notice.kind == engine::Notice::Kind::reserved) {
    running_.operation = BatchOperation{{.id = notice.job, .body = notice.body}};
    stop_ = Stop::budget;
    return !working_;
  }
  if (notice.kind == engine::Notice::Kind::timed_out) {
    reply_timed_out(wait);
  } else {
    replies_.write(answer_of(notice));
  }
  if (working_) return false;
  // Input that was pipelined after the reserve can be run now.
  stop_ = pending_.empty() ? Stop::starved : Stop::budget;
  return true;
}

}  // namespace tubed::commands
