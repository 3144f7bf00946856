// Each class below is one sequence of commands. A step sends its line only after the answer before
// it: a reserve must not run when the watch before it was refused.
#include "api/script.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/block_json.h"
#include "api/tube_list.h"
#include "text/numbers.h"

namespace tubed::api {

using namespace protocol;

void Script::write(const Answer& answer, ReplyBuffer& replies) {
  if (!done_ && is_whole_reply(answer)) answered(answer, replies);
}

void Script::finish(const Response& response, ReplyBuffer& replies) {
  done_ = true;
  write_frame(replies, response.head, response.text);
}

void Script::finish(const FrameHead& head, const Bytes& content, ReplyBuffer& replies) {
  done_ = true;
  write_frame(replies, head, content);
}

Problem Script::not_found_problem(const Operation& operation, std::optional<JobId> job) const {
  const auto state = operation.needs_state && job ? state_of_(*job) : std::nullopt;
  return state ? wrong_state(*state, operation.kind == Kind::held)
               : problem_of(word::kNotFound);
}

namespace {

bool is_not_found(const Answer& answer) {
  const auto* status = std::get_if<Status>(&answer);
  return status != nullptr && status->word == word::kNotFound;
}

class OneCommand final : public Script {
 public:
  // `job`: that the line names.
  OneCommand(const Operation& operation, std::string line, std::optional<JobId> job,
             bool body_as_json)
      : Script(std::move(line)), operation_(operation), job_(job), body_as_json_(body_as_json) {}

 private:
  void answered(const Answer& answer, ReplyBuffer& replies) override {
    const auto* job = std::get_if<JobAnswer>(&answer);
    if (job != nullptr && operation_.kind == Kind::body && !body_as_json_)
      return finish({.content = Content::bytes}, job->body, replies);
    if (is_not_found(answer))
      return finish(response_of(not_found_problem(operation_, job_)), replies);
    finish(response_of(operation_, answer), replies);
  }

  const Operation& operation_;
  std::optional<JobId> job_;
  bool body_as_json_;
};

// stats-tubes, page after page.
class ListTubes final : public Script {
 public:
  // A page is one command, and other clients wait while it runs.
  static constexpr int kTubesPerPage = 250;

  explicit ListTubes(TubeList list) : Script(line_from(0)), list_(std::move(list)) {}

 private:
  static std::string line_from(std::uint64_t from) {
    return fmt::format("stats-tubes {} {}\r\n", from, kTubesPerPage);
  }

  void answered(const Answer& answer, ReplyBuffer& replies) override {
    const auto* page = std::get_if<Block>(&answer);
    if (page == nullptr) return finish(response_of(Operation(), answer), replies);
    const std::uint64_t next = list_.add_page(*page);
    if (next != 0) return send(line_from(next));
    finish({.head = {}, .text = list_.to_json()}, replies);
  }

  TubeList list_;
};

// watch, ignore, the reserve, and stats-job of the job.
class Reserve final : public Script {
 public:
  // `tube`: null of a reserve by id. `job`: that id.
  Reserve(const Operation& operation, const std::string* tube, std::string line,
          std::optional<JobId> job, std::string token)
      : Script(tube != nullptr ? fmt::format("watch {}\r\n", *tube) : line),
        operation_(operation),
        wanted_(job),
        step_(tube == nullptr         ? Step::reserve
              : *tube == kDefaultTube ? Step::ignore
                                      : Step::watch),
        line_(std::move(line)),
        token_(std::move(token)) {}

 private:
  // The command whose answer is awaited. A reserve from `default`, which is watched from the
  // beginning, ignores no tube.
  enum class Step : std::uint8_t { watch, ignore, reserve, stats };

  void answered(const Answer& answer, ReplyBuffer& replies) override {
    const auto* status = std::get_if<Status>(&answer);
    if (status != nullptr && status->word == word::kTimedOut)
      return finish({.head = {.status = 204}, .text = {}}, replies);
    if (is_not_found(answer) && step_ == Step::reserve)
      return finish(response_of(not_found_problem(operation_, wanted_)), replies);
    if (status != nullptr && step_ != Step::stats)
      return finish(response_of(Operation(), answer), replies);
    switch (step_) {
      case Step::watch:
        step_ = Step::ignore;
        return send(fmt::format("ignore {}\r\n", kDefaultTube));
      case Step::ignore:
        step_ = Step::reserve;
        return send(line_);
      case Step::reserve:
        job_ = std::get<JobAnswer>(answer);
        step_ = Step::stats;
        return send(fmt::format("stats-job {}\r\n", job_.id));
      case Step::stats:
        return finish(reserved(answer), replies);
    }
  }

  // A role without inspect is not shown the statistics.
  Response reserved(const Answer& stats) const {
    const auto* block = std::get_if<Block>(&stats);
    return {.head = {.status = 201, .location = fmt::format("/api/v1/reservations/{}", token_)},
            .text = json_of({[&](BlockSink& sink) {
                      sink.member("token", Text{token_});
                      if (block != nullptr) {
                        block->write(sink);
                      } else {
                        sink.member("id", job_.id);
                      }
                      write_body(job_.body.view(), sink);
                    }}) +
                    '\n'};
  }

  const Operation& operation_;
  std::optional<JobId> wanted_;
  Step step_;
  std::string line_;
  std::string token_;
  JobAnswer job_;
};

// A line that is too long is skipped, and the body after it would be run as commands.
bool is_too_long(const Operation& operation, const std::string& line) {
  if (operation.kind != Kind::put) return false;
  const commands::Command* command = command_of(operation);
  return command == nullptr || line.size() > command->line_bytes;
}

bool is_plain_page(const Parameters& parameters) {
  return find(parameters, "filter") == nullptr && find(parameters, "sort") == nullptr &&
         find(parameters, "order") == nullptr;
}

}  // namespace

std::variant<std::unique_ptr<Script>, Problem> script_of(const Operation& operation,
                                                         Parameters parameters,
                                                         const ScriptOptions& options) {
  if (auto problem = check_names(operation, parameters)) return std::move(*problem);
  if (operation.kind == Kind::tubes && !is_plain_page(parameters)) {
    auto list = TubeList::make(parameters);
    if (auto* problem = std::get_if<Problem>(&list)) return std::move(*problem);
    return std::make_unique<ListTubes>(std::move(std::get<TubeList>(list)));
  }
  if (options.held) {
    parameters.emplace_back("id", fmt::to_string(options.held->id));
    if (find(parameters, "pri") == nullptr)
      parameters.emplace_back("pri", fmt::to_string(options.held->priority));
  }
  auto line = line_of(operation, parameters, options.body_bytes);
  if (auto* problem = std::get_if<Problem>(&line)) return std::move(*problem);
  std::string text = std::move(std::get<std::string>(line));
  if (is_too_long(operation, text)) return bad_request("the parameters are too long");
  const std::string* id = find(parameters, "id");
  const auto job = id == nullptr ? std::nullopt : parse_number<JobId>(*id);
  if (operation.kind == Kind::reserve) {
    const std::string* tube = find(parameters, "tube");
    if (tube != nullptr && !is_word(*tube))
      return bad_parameter("tube", "is not a word");
    return std::make_unique<Reserve>(operation, tube, std::move(text), job, options.token);
  }
  return std::make_unique<OneCommand>(operation, std::move(text), job, options.body_as_json);
}

}  // namespace tubed::api
