#include "tests/simulation/model/model_client.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "text/percent.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

namespace {

std::string milliseconds(Duration duration) {
  return fmt::format("{}ms", duration / 1ms);
}

MadeCommand made_of(std::string_view row, std::string_view arguments) {
  return {.row = commands::find_command(row), .line = fmt::format("{} {}", row, arguments)};
}

}  // namespace

ModelClient::ModelClient(Model& model, std::uint64_t seed, const std::string& name)
    : model_(model), chance_(seed, name + " commands") {
  consumer_.name = name;
}

ModelClient::~ModelClient() {
  std::erase(model_.clients_, this);
}

std::vector<MadeCommand> ModelClient::first(Chance&) {
  std::vector<MadeCommand> commands;
  const auto add = [&commands](std::string_view row, const std::string& line) {
    commands.push_back({.row = commands::find_command(row), .line = line});
  };
  auto& watched = consumer_.watched;
  watched.clear();
  is_ready_ = true;
  if (chance_.percent(50)) add("set-caps", "set-caps 1");
  for (const std::string_view tube : kModelTubes) {
    if (chance_.percent(70)) watched.emplace(tube);
  }
  if (watched.empty()) watched.emplace(kModelTubes[0]);
  for (const std::string& tube : watched) add("watch", "watch " + tube);
  add("ignore", "ignore default");
  add("list-tube-used", "list-tube-used");
  return commands;
}

std::vector<MadeCommand> ModelClient::next(std::size_t unanswered) {
  if (unanswered > 0 || sent_ || !is_ready_ || !model_.may_send()) return {};
  ModelCommand command{.sent = model_.world_.now()};
  MadeCommand made = make(command);
  if (made.row == nullptr) return {};
  sent_ = std::move(command);
  return {std::move(made)};
}

void ModelClient::answered_with(const MadeCommand& made, std::string_view line,
                                std::string_view content) {
  if (!sent_) {  // to one of the first commands
    const bool watches = made.row->name == "watch" || made.row->name == "ignore";
    if (watches && !line.starts_with("WATCHING")) is_ready_ = false;
    return;
  }
  const ModelCommand command = *std::exchange(sent_, std::nullopt);
  model_.answered({.consumer = &consumer_,
                   .command = command,
                   .line = std::string(line),
                   .content = std::string(content),
                   .batch = std::exchange(batch_, {}),
                   .ran = {command.sent, model_.world_.now()}});
}

void ModelClient::forget() {
  batch_.clear();
  model_.lost(consumer_, std::exchange(sent_, std::nullopt));
}

// --- Commands

Duration ModelClient::a_delay() {
  static constexpr std::array<Duration, 6> kDelays = {0ms, 0ms, 0ms, 3ms, 20ms, 60s};
  return chance_.one_of(kDelays);
}

std::string ModelClient::a_tube() {
  return std::string(chance_.one_of(kModelTubes));
}

MadeCommand ModelClient::make(ModelCommand& command) {
  const auto drawn = chance_.below(100);
  if (drawn < 22) return put(command);
  if (drawn < 50) return reserve(command);
  if (drawn < 54) return pause(command);
  if (drawn < 62) return many(command);
  if (drawn < 67) return list(command);
  return about_a_job(command);
}

MadeCommand ModelClient::put(ModelCommand& command) {
  static constexpr std::array<Duration, 5> kTtrs = {60s, 60s, 3ms, 12ms, 1010ms};
  command.verb = ModelVerb::put;
  command.tube = a_tube();
  command.priority = static_cast<Priority>(chance_.below(3));
  command.time = a_delay();
  command.ttr = chance_.one_of(kTtrs);
  const std::size_t more = chance_.percent(8) ? chance_.below(9000) : chance_.below(20);
  std::string& body = command.body;
  body = fmt::format("model {} ", model_.known_.puts++);
  for (std::size_t i = 0; i < more; ++i) body.push_back(static_cast<char>('a' + i % 26));
  model_.known_.bodies.emplace(body, 0);
  MadeCommand made =
      made_of("put-in-tube",
              fmt::format("{} {} {} {} {}", command.tube, command.priority,
                          milliseconds(command.time), milliseconds(command.ttr), body.size()));
  made.body = body;
  return made;
}

MadeCommand ModelClient::reserve(ModelCommand& command) {
  if (chance_.percent(15)) {
    command.verb = ModelVerb::reserve_batch;
    command.count = chance_.between(1, 3);
    return made_of("reserve-batch", std::to_string(command.count));
  }
  command.verb = ModelVerb::reserve;
  static constexpr std::array<Duration, 4> kLimits = {0s, 0s, 1s, 60s};
  command.time = chance_.one_of(kLimits);
  MadeCommand made = made_of("reserve-with-timeout", std::to_string(command.time / 1s));
  made.waits = command.time;
  return made;
}

MadeCommand ModelClient::pause(ModelCommand& command) {
  command.verb = ModelVerb::pause;
  command.tube = *consumer_.watched.begin();
  static constexpr std::array<Duration, 4> kPauses = {0ms, 0ms, 4ms, 15ms};
  command.time = chance_.one_of(kPauses);
  return made_of("pause-tube", fmt::format("{} {}", command.tube, milliseconds(command.time)));
}

MadeCommand ModelClient::many(ModelCommand& command) {
  const bool moves = chance_.percent(50) && !model_.is_waiting();
  command.verb = moves ? ModelVerb::move : ModelVerb::kick_tube;
  command.tube = a_tube();
  command.to = a_tube();
  command.count = chance_.between(1, 3);
  static constexpr std::array<JobState, 3> kStates = {JobState::buried, JobState::delayed,
                                                      JobState::ready};
  command.state = kStates[chance_.below(moves ? 3 : 2)];
  if (moves) {
    return made_of("move-jobs", fmt::format("{} {} {} {}", command.tube, name_of(command.state),
                                            command.to, command.count));
  }
  return made_of("kick-tube",
                 fmt::format("{} {} {}", command.tube, command.count, name_of(command.state)));
}

// A filtered list. Its text is often a part of the body of a job.
MadeCommand ModelClient::list(ModelCommand& command) {
  static constexpr std::array<std::string_view, 5> kStates = {"all", "ready", "delayed", "buried",
                                                              "reserved"};
  command.verb = ModelVerb::list;
  command.tube = a_tube();
  ModelFilter& filter = command.filter;
  const std::string_view state = chance_.one_of(kStates);
  for (const JobState one :
       {JobState::ready, JobState::delayed, JobState::buried, JobState::reserved}) {
    if (state == name_of(one)) filter.state = one;
  }
  const auto& jobs = model_.queue_.jobs();
  if (!jobs.empty() && chance_.percent(30)) filter.from = jobs.begin()->first + chance_.below(9);
  filter.limit = chance_.percent(30) ? chance_.between(1, 3) : 1000;
  std::string line = fmt::format("{} {} {} {}", command.tube, state, filter.from, filter.limit);
  filter.text = chance_.percent(50) ? fmt::format("del {}", chance_.below(10)) : "abc";
  line += " body:" + percent_encoded(filter.text);
  if (chance_.percent(20)) {
    filter.priority_above = static_cast<Priority>(chance_.below(3));
    line += fmt::format(" pri>{}", *filter.priority_above);
  }
  if (chance_.percent(20)) {
    filter.priority_below = static_cast<Priority>(chance_.between(1, 3));
    line += fmt::format(" pri<{}", *filter.priority_below);
  }
  if (chance_.percent(30)) {
    filter.failures_above = static_cast<std::uint32_t>(chance_.below(3));
    line += fmt::format(" failures>{}", *filter.failures_above);
  }
  return made_of("list-jobs", line);
}

MadeCommand ModelClient::about_a_job(ModelCommand& command) {
  std::vector<const ExpectedJob*> choices;
  const bool own = chance_.percent(70);
  for (const auto& [id, job] : model_.queue_.jobs()) {
    const bool is_own = job.state == JobState::reserved && job.holder == &consumer_;
    if (is_own || !own) choices.push_back(&job);
  }
  if (choices.empty()) return {};
  const ExpectedJob& job = *chance_.one_of(choices);
  command.id = job.id;
  command.priority = job.priority;
  struct Choice {
    ModelVerb verb;
    std::string_view row;
  };
  static constexpr std::array<Choice, 12> kChoices = {{{ModelVerb::remove, "delete"},
                                                       {ModelVerb::remove, "delete"},
                                                       {ModelVerb::remove, "delete"},
                                                       {ModelVerb::release, "release"},
                                                       {ModelVerb::release, "release"},
                                                       {ModelVerb::bury, "bury"},
                                                       {ModelVerb::bury, "bury"},
                                                       {ModelVerb::touch, "touch"},
                                                       {ModelVerb::kick, "kick-job"},
                                                       {ModelVerb::reserve_job, "reserve-job"},
                                                       {ModelVerb::show, "stats-job"},
                                                       {ModelVerb::peek, "peek"}}};
  const Choice& choice = chance_.one_of(kChoices);
  command.verb = choice.verb;
  std::string arguments = std::to_string(job.id);
  if (choice.verb == ModelVerb::release || choice.verb == ModelVerb::bury) {
    command.priority = static_cast<Priority>(chance_.below(3));
    arguments += fmt::format(" {}", command.priority);
  }
  if (choice.verb == ModelVerb::release) {
    command.time = a_delay();
    arguments += ' ' + milliseconds(command.time);
  }
  return made_of(choice.row, arguments);
}

}  // namespace tubed::simulation
