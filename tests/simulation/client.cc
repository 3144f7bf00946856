#include "tests/simulation/client.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "tests/simulation/uv.h"
#include "text/numbers.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

namespace {

constexpr std::string_view kLineEnd = "\r\n";
constexpr Duration kPatience = 2s;
// Many times what an answer takes with a slow disk and slow readers.
constexpr std::uint64_t kMostTicks = 10'000;
// How long a refused connection stays open (HeldConnections::kTime).
constexpr Duration kHeld = 150ms;

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

bool is_job(std::string_view word) {
  return word == "RESERVED" || word == "FOUND";
}

}  // namespace

Client::Client(World& world, Net& net, Knowledge& known, std::string name,
               std::unique_ptr<Script> script)
    : world_(world),
      net_(net),
      known_(known),
      name_(std::move(name)),
      chance_(world.seed(), name_),
      script_(std::move(script)),
      sends_(known.reductions.commands_of(name_)) {}

Client::~Client() {
  if (connection_ != nullptr) connection_->on_event({});
}

bool Client::is_forgotten() const {
  if (connection_ == nullptr || unanswered_.empty() || !held_.empty()) return false;
  const MadeCommand& first = unanswered_.front();
  return !first.waits_for_ever && world_.now() - first_since_ > kPatience + first.waits;
}

// --- Turns

void Client::act_later() {
  if (made_ >= sends_.last && unanswered_.empty()) return;
  world_.at(world_.grid_after(chance_.up_to(2ms)), [this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    act();
    act_later();
  });
}

void Client::act() {
  if (connection_ == nullptr) return connect();
  read();  // including what has arrived while it did not read
  if (connection_ == nullptr) return;
  if (chance_.below(1000) < script_->leaves()) return leave();
  if (is_forgotten()) return fail("no answer", "");
  if (refused_) return;
  if (!held_.empty()) return send_held();
  send(next());
}

// Makes commands until one must be sent.
std::vector<MadeCommand> Client::next() {
  for (;;) {
    if (made_ >= sends_.last) return {};
    std::vector<MadeCommand> commands = script_->next(unanswered_.size());
    if (commands.empty()) return commands;
    std::erase_if(commands, [this](const MadeCommand&) {
      ++made_;
      return made_ > sends_.last || (made_ < sends_.first && script_->may_skip());
    });
    if (!commands.empty()) return commands;
  }
}

void Client::connect() {
  if (!chance_.percent(60)) return;
  const Link to_server{.jitter = 400us, .cuts = 15};
  Link to_client{.jitter = 200us, .cuts = 10};
  if (chance_.percent(20)) to_client.window = 64 + chance_.below(2000);  // a slow reader
  if (script_->reads_at_once()) to_client = {.latency = 0us};
  connection_ = net_.connect(script_->port(), to_server, to_client);
  if (connection_ == nullptr) return;
  world_.note(fmt::format("{} connects", name_));
  connection_->on_event([this] { read(); });
  queue_ = known_.queue;
  count_from_now();
  has_tubes_ = false;
  connected_ = world_.now();
  process_ = known_.process;
  answers_ = 0;
  refused_ = false;
  send(script_->first(chance_));
}

std::vector<MadeCommand> Script::first(Chance& chance) {
  std::vector<MadeCommand> commands;
  if (chance.percent(50))
    commands.push_back({.row = commands::find_command("set-caps"), .line = "set-caps 1"});
  commands.push_back(
      {.row = commands::find_command("watch"), .line = fmt::format("watch {}", a_tube(chance))});
  return commands;
}

void Client::leave() {
  const bool resets = chance_.percent(50);
  world_.note(fmt::format("{} {}", name_, resets ? "resets" : "closes"));
  if (resets) {
    connection_->reset();
  } else {
    connection_->close();
  }
  end_connection();
}

void Client::end_connection() {
  connection_->on_event({});
  connection_.reset();
  script_->lost(unanswered_);
  unanswered_.clear();
  unsent_.clear();
  held_.clear();
  received_.clear();
  batch_left_.reset();
}

void Client::send(const std::vector<MadeCommand>& commands) {
  for (const MadeCommand& command : commands) {
    world_.note(fmt::format("{} > {}", name_, command.line));
    unsent_.append(command.line).append(kLineEnd);
    if (command.row->begin_body != nullptr) unsent_.append(command.body).append(kLineEnd);
    if (command.row->name == "quit") continue;
    if (unanswered_.empty()) count_from_now();
    unanswered_.push_back(command);
    unanswered_.back().begun = unanswered_.back().sent = world_.now();
    if (!command.is_slow) continue;
    const std::size_t rest = 1 + chance_.below(command.body.size());
    held_ = unsent_.substr(unsent_.size() - rest - kLineEnd.size());
    unsent_.resize(unsent_.size() - held_.size());
    break;
  }
  flush();
}

// The end of a body arrives after other events, such as a reload.
void Client::send_held() {
  if (!chance_.percent(10)) return;
  unsent_.append(std::exchange(held_, {}));
  count_from_now();
  unanswered_.back().sent = first_since_;
  flush();
}

void Client::flush() {
  unsent_.erase(0, connection_->send(unsent_));
}

// --- Replies

void Client::read() {
  if (!script_->reads()) return count_from_now();
  received_.append(connection_->arrived());
  connection_->take(connection_->arrived().size());
  // Replies from an earlier queue are ignored.
  while (connection_ != nullptr && queue_ == known_.queue && !world_.failed() && take_reply()) {
  }
  if (connection_ == nullptr) return;
  if (connection_->lost() || connection_->ended()) {
    world_.note(fmt::format("{} was closed", name_));
    const bool is_serving = known_.serves && process_ == known_.process;
    if (refused_ && is_serving && world_.now() - connected_ < kHeld)
      fail("a refused connection was closed at once", "");
    connection_->close();
    return end_connection();
  }
  flush();
}

// Returns false if no whole reply has arrived.
bool Client::take_reply() {
  const std::size_t end = received_.find(kLineEnd);
  if (end == std::string::npos) return false;
  const std::string line = received_.substr(0, end);
  const std::size_t line_bytes = end + kLineEnd.size();
  if (unanswered_.empty()) {
    fail("a reply without a command", line);
    return false;
  }
  const auto words = words_of(line);
  const bool has_block = words.size() > 1 && words[0] == "OK";
  if (!words.empty() && is_job(words[0])) return take_job(line, line_bytes);
  std::size_t bytes = line_bytes;
  if (has_block) bytes += leading_number(words[1]) + kLineEnd.size();
  if (received_.size() < bytes) return false;
  if (words.empty() || batch_left_ || !is_reply(words[0])) {
    if (is_refusal(line)) return refuse(line_bytes);
    fail("not a reply of this command", line);
    return false;
  }
  if (has_block && received_.substr(bytes - kLineEnd.size(), kLineEnd.size()) != kLineEnd) {
    fail("a block has another length", line);
    return false;
  }
  const std::string content = received_.substr(line_bytes, bytes - line_bytes);
  received_.erase(0, bytes);
  world_.note(fmt::format("{} < {}", name_, line));
  if (words[0] == "RESERVED_BATCH") {
    batch_left_ = leading_number(words.at(1));
    if (*batch_left_ > 0) return true;
    batch_left_.reset();
  }
  answer(line, content);
  return true;
}

// Takes a job, alone or from a batch: its body must be one that was sent, always with the same id.
bool Client::take_job(std::string_view line, std::size_t line_bytes) {
  const auto words = words_of(line);
  if (words.size() != (has_tubes_ ? 4u : 3u)) {
    fail("a job with another number of words", line);
    return false;
  }
  const std::size_t bytes = leading_number(words[2]);
  if (received_.size() < line_bytes + bytes + kLineEnd.size()) return false;
  const std::string body = received_.substr(line_bytes, bytes);
  const JobId id = leading_number(words[1]);
  const auto sent = known_.bodies.find(body);
  const auto other = known_.by_id.find(id);
  const bool is_other = other != known_.by_id.end() && other->second != body;
  if (sent == known_.bodies.end() || is_other) {
    fail(is_other ? "the body of another job" : "a body that no client has sent", line);
    return false;
  }
  const std::string text(line);
  world_.note(fmt::format("{} < {}", name_, text));
  received_.erase(0, line_bytes + bytes + kLineEnd.size());
  if (batch_left_) {
    script_->took_of_batch(text, body);
    if (--*batch_left_ > 0) return true;
    batch_left_.reset();
  } else if (!is_reply(words_of(text)[0])) {
    fail("not a reply of this command", text);
    return false;
  }
  answer(text, body);
  return true;
}

// The command table decides which words are valid replies.
bool Client::is_reply(std::string_view word) const {
  const MadeCommand& command = unanswered_.front();
  const bool is_listed =
      std::ranges::any_of(command.row->replies, [word](const commands::ReplyText& text) {
        return text.reply.substr(0, text.reply.find(' ')) == word;
      });
  return is_listed || script_->may_also_answer(command, word);
}

void Client::answer(std::string_view line, std::string_view content) {
  const MadeCommand command = std::move(unanswered_.front());
  unanswered_.pop_front();
  check_ticks(command);
  count_from_now();
  ++answers_;
  const auto words = words_of(line);
  check_drain(command, words[0]);
  // A put with a unique key may return the id of an older job, which has another body.
  const bool has_key = command.line.find(" idp:") != std::string::npos;
  if (words[0] == "INSERTED" && !has_key) {
    const JobId id = leading_number(words.at(1));
    if (!known_.by_id.emplace(id, command.body).second) return fail("an id was given twice", line);
    known_.bodies[command.body] = id;
  }
  if (command.row->name == "set-caps")
    has_tubes_ = leading_number(words_of(command.line).at(1)) != 0;
  script_->answered_with(command, line, content);
}

// A connection beyond the limit gets this line, whatever it sends.
bool Client::is_refusal(std::string_view line) const {
  const bool may_be =
      known_.may_refuse || connected_ < known_.refused_before || script_->may_be_refused();
  return may_be && answers_ == 0 && line == "OUT_OF_MEMORY";
}

bool Client::refuse(std::size_t line_bytes) {
  world_.note(fmt::format("{} is refused", name_));
  received_.erase(0, line_bytes);
  refused_ = true;
  script_->lost(unanswered_);
  unanswered_.clear();
  return true;
}

void Client::count_from_now() {
  first_since_ = world_.now();
  first_tick_ = ticks();
}

// A command is answered after a bounded number of iterations, whatever other clients do.
void Client::check_ticks(const MadeCommand& command) {
  if (command.waits_for_ever || command.waits > Duration::zero()) return;
  const std::uint64_t took = ticks() - first_tick_;
  known_.most_ticks = std::max(known_.most_ticks, took);
  if (took > kMostTicks)
    world_.fail(fmt::format("{}: an answer took {} iterations of the loop: \"{}\"", name_, took,
                            command.line.substr(0, 100)));
}

// Puts are refused in drain mode, and only then. The state at the time of the command is known if
// it has not changed between the command and its answer.
void Client::check_drain(const MadeCommand& command, std::string_view word) {
  if (command.row->begin_body == nullptr || known_.drain.since >= command.begun) return;
  if (word == (known_.drain.active ? "INSERTED" : "DRAINING"))
    world_.fail(
        fmt::format("{}: {} {} drain mode", name_, word, known_.drain.active ? "in" : "without"));
}

void Client::fail(std::string_view what, std::string_view line) {
  world_.fail(fmt::format("{}: {}: \"{}\" to \"{}\"", name_, what, line.substr(0, 100),
                          unanswered_.empty() ? "" : unanswered_.front().line.substr(0, 100)));
}

// --- Scripts

namespace {

class AnyCommands final : public Script {
 public:
  AnyCommands(std::uint64_t seed, Knowledge& known, const std::string& name, std::size_t most)
      : known_(known), chance_(seed, name + " commands"), most_unanswered_(most) {}

  std::vector<MadeCommand> next(std::size_t unanswered) override {
    std::vector<MadeCommand> commands;
    if (unanswered >= most_unanswered_) return commands;
    const std::size_t most = std::min<std::size_t>(most_unanswered_, 4);
    for (std::uint64_t count = chance_.between(1, most); count > 0; --count) {
      commands.push_back(make_command(chance_, known_));
      if (commands.back().row->name == "quit") break;
    }
    return commands;
  }
  void answered(const MadeCommand& command, std::string_view line) override {
    if (command.row->begin_body == nullptr || !line.starts_with("INSERTED ")) return;
    known_.add_recent(leading_number(words_of(line).at(1)));
  }
  void lost(const std::deque<MadeCommand>&) override {}
  bool may_skip() const override { return true; }
  unsigned leaves() const override { return most_unanswered_ == 1 ? 2 : 15; }

 private:
  Knowledge& known_;
  Chance chance_;
  const std::size_t most_unanswered_;
};

}  // namespace

std::unique_ptr<Script> any_commands(const World& world, Knowledge& known, const std::string& name,
                                     std::size_t most_unanswered) {
  return std::make_unique<AnyCommands>(world.seed(), known, name, most_unanswered);
}

}  // namespace tubed::simulation
