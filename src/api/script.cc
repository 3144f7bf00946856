// Each class below is one sequence of commands. A step sends its line only after the answer before
// it: a reserve must not run when the watch before it was refused.
#include "api/script.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/batch.h"
#include "api/block_json.h"
#include "api/job_list.h"
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

Response Script::response_to(const Operation& operation, const Answer& answer,
                             std::optional<JobId> job) const {
  const auto* status = std::get_if<Status>(&answer);
  const bool is_not_found = status != nullptr && status->word == word::kNotFound;
  if (is_not_found && operation.needs_state && job) {
    if (const auto state = state_of_(*job))
      return response_of(wrong_state(*state, is_of_reservation(operation.kind)));
  }
  return response_of(operation, answer);
}

namespace {

bool is_status(const Answer& answer, std::string_view word) {
  const auto* status = std::get_if<Status>(&answer);
  return status != nullptr && status->word == word;
}

// The members of a job and the token of its reservation. A role without inspect is not shown the
// statistics.
std::string reserved_json(const JobAnswer& job, const Answer& stats, std::string_view token) {
  const auto* block = std::get_if<Block>(&stats);
  return json_of({[&](BlockSink& sink) {
    sink.member("token", Text{token});
    if (block != nullptr) {
      block->write(sink);
    } else {
      sink.member("id", job.id);
    }
    write_body(job.body.view(), sink);
  }});
}

FrameHead reserved_head(const std::string& token, std::string_view place = {}) {
  return {.status = 201, .location = fmt::format("/api/v1/reservations/{}{}", token, place)};
}

class OneCommand final : public Script {
 public:
  // `job`: that the line names.
  OneCommand(const Operation& operation, std::string line, Parameters parameters,
             std::optional<JobId> job, bool body_as_json)
      : Script(std::move(line)),
        operation_(operation),
        parameters_(std::move(parameters)),
        job_(job),
        body_as_json_(body_as_json) {}

 private:
  void answered(const Answer& answer, ReplyBuffer& replies) override {
    const auto* job = std::get_if<JobAnswer>(&answer);
    if (job != nullptr && operation_.kind == Kind::body && !body_as_json_)
      return finish({.content = Content::bytes}, job->body, replies);
    if (is_status(answer, word::kBadFormat))
      return finish(response_of(bad_format(operation_, parameters_)), replies);
    finish(response_to(operation_, answer, job_), replies);
  }

  const Operation& operation_;
  Parameters parameters_;
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

// list-jobs, page after page.
class ListJobs final : public Script {
 public:
  // `first`: the line of the first page.
  ListJobs(const Operation& operation, JobList list, std::string first)
      : Script(std::move(first)), operation_(operation), list_(std::move(list)) {}

 private:
  void answered(const Answer& answer, ReplyBuffer& replies) override {
    if (is_status(answer, word::kBadFormat))
      return finish(response_of(list_.bad_format()), replies);
    const auto* page = std::get_if<Block>(&answer);
    if (page == nullptr) return finish(response_of(operation_, answer), replies);
    const std::uint64_t next = list_.add_page(*page);
    if (next != 0) return send(std::get<std::string>(list_.line_from(next)));
    finish({.head = {}, .text = list_.to_json()}, replies);
  }

  const Operation& operation_;
  JobList list_;
};

// watch, ignore, the reserve, and stats-job of each job.
class Reserve final : public Script {
 public:
  // `job`: of a reserve by id.
  Reserve(const Operation& operation, std::string line, Parameters parameters,
          std::optional<JobId> job, std::string token)
      : Script(first_line(line, parameters)),
        operation_(operation),
        parameters_(std::move(parameters)),
        wanted_(job),
        line_(std::move(line)),
        token_(std::move(token)) {
    const std::string* tube = find(parameters_, "tube");
    step_ = tube == nullptr ? Step::reserve : *tube == kDefaultTube ? Step::ignore : Step::watch;
  }

 private:
  // The command whose answer is awaited. A reserve from `default`, which is watched from the
  // beginning, ignores no tube.
  enum class Step : std::uint8_t { watch, ignore, reserve, stats };

  static std::string first_line(const std::string& line, const Parameters& parameters) {
    const std::string* tube = find(parameters, "tube");
    return tube == nullptr ? line : fmt::format("watch {}\r\n", *tube);
  }

  void answered(const Answer& answer, ReplyBuffer& replies) override {
    if (is_status(answer, word::kTimedOut)) return finish_without_job(replies);
    if (std::holds_alternative<Status>(answer) && step_ != Step::stats)
      return finish(problem_response(answer), replies);
    switch (step_) {
      case Step::watch:
        step_ = Step::ignore;
        return send(fmt::format("ignore {}\r\n", kDefaultTube));
      case Step::ignore:
        step_ = Step::reserve;
        return send(line_);
      case Step::reserve:
        return take_jobs(answer, replies);
      case Step::stats:
        return take_stats(answer, replies);
    }
  }

  Response problem_response(const Answer& answer) const {
    if (!is_status(answer, word::kBadFormat)) return response_to(operation_, answer, wanted_);
    Problem problem = bad_format(operation_, parameters_);
    if (step_ == Step::watch) problem.parameter = "tube";
    return response_of(problem);
  }

  void finish_without_job(ReplyBuffer& replies) {
    finish({.head = {.status = 204}, .text = {}}, replies);
  }

  void take_jobs(const Answer& answer, ReplyBuffer& replies) {
    if (const auto* batch = std::get_if<JobBatch>(&answer)) {
      jobs_ = batch->jobs;
    } else {
      jobs_.push_back(std::get<JobAnswer>(answer));
    }
    if (jobs_.empty()) return finish_without_job(replies);
    step_ = Step::stats;
    std::string lines;
    for (const JobAnswer& job : jobs_) lines += fmt::format("stats-job {}\r\n", job.id);
    send(lines);
  }

  void take_stats(const Answer& answer, ReplyBuffer& replies) {
    const JobAnswer& job = jobs_[answered_++];
    if (operation_.kind == Kind::reserve) {
      return finish(
          {.head = reserved_head(token_), .text = reserved_json(job, answer, token_) + '\n'},
          replies);
    }
    list_.append(list_.empty() ? "" : ",");
    list_ += reserved_json(job, answer, fmt::format("{}.{}", token_, job.id));
    if (answered_ < jobs_.size()) return;
    finish({.head = reserved_head(token_, "/jobs"),
            .text = fmt::format("{{\"token\":\"{}\",\"jobs\":[{}]}}\n", token_, list_)},
           replies);
  }

  const Operation& operation_;
  Parameters parameters_;
  std::optional<JobId> wanted_;
  Step step_ = Step::watch;
  std::string line_;
  std::string token_;
  std::vector<JobAnswer> jobs_;
  std::size_t answered_ = 0;  // how many of their stats-job
  std::string list_;          // of those
};

// Commands that are sent at once.
class RunBatch final : public Script {
 public:
  RunBatch(const Operation& operation, Batch batch)
      : Script(std::move(batch.input)), operation_(operation), jobs_(std::move(batch.jobs)) {}

 private:
  void answered(const Answer& answer, ReplyBuffer& replies) override {
    const std::optional<JobId> job = jobs_[answered_++];
    Response response = response_to(operation_, answer, job);
    add(response, job);
    if (answered_ == 1) first_ = std::move(response);
    if (answered_ < jobs_.size()) return;
    if (is_refused()) return finish(first_, replies);
    finish({.head = {}, .text = fmt::format("{{\"results\":[{}]}}\n", results_)}, replies);
  }

  // The response to one command is a line with an object, which has a status if it is a problem.
  void add(const Response& response, std::optional<JobId> job) {
    const auto [status, content] = std::pair(response.head.status, response.head.content);
    all_alike_ = all_alike_ && (answered_ == 1 || status == first_.head.status);
    results_ += results_.empty() ? "{" : ",{";
    if (job) results_ += fmt::format("\"id\":{},", *job);
    if (content == Content::json) results_ += fmt::format("\"status\":{},", status);
    results_.append(response.text, 1, response.text.size() - 2);
  }

  // True if the request itself is refused, and not each job for a reason of its own.
  bool is_refused() const {
    const unsigned status = first_.head.status;
    return all_alike_ && status >= 400 && status != 404 && status != 409;
  }

  const Operation& operation_;
  std::vector<std::optional<JobId>> jobs_;
  std::size_t answered_ = 0;
  bool all_alike_ = true;
  Response first_;
  std::string results_;  // without the brackets
};

// Returns nothing if the operation is a single command.
std::optional<std::variant<Batch, Problem>> batch_of(const Operation& operation,
                                                     const Parameters& parameters,
                                                     const ScriptOptions& options) {
  switch (operation.kind) {
    case Kind::put_many:
      return batch_of_puts(operation, parameters, options.batch);
    case Kind::each:
      return batch_of_ids(operation, parameters);
    case Kind::all_held:
      return batch_of_jobs(operation, options.held_jobs);
    default:
      return std::nullopt;
  }
}

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

std::variant<std::unique_ptr<Script>, Problem> list_jobs(const Operation& operation,
                                                         Parameters parameters) {
  auto list = JobList::make(operation, std::move(parameters));
  if (auto* problem = std::get_if<Problem>(&list)) return std::move(*problem);
  auto first = std::get<JobList>(list).line_from(0);
  if (auto* problem = std::get_if<Problem>(&first)) return std::move(*problem);
  return std::make_unique<ListJobs>(operation, std::move(std::get<JobList>(list)),
                                    std::move(std::get<std::string>(first)));
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
  if (operation.kind == Kind::jobs && !is_plain_page(parameters))
    return list_jobs(operation, std::move(parameters));
  if (auto batch = batch_of(operation, parameters, options)) {
    if (auto* problem = std::get_if<Problem>(&*batch)) return std::move(*problem);
    return std::make_unique<RunBatch>(operation, std::move(std::get<Batch>(*batch)));
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
  if (reserves_jobs(operation.kind)) {
    const std::string* tube = find(parameters, "tube");
    if (tube != nullptr && !is_word(*tube)) return bad_parameter("tube", "is not a word");
    return std::make_unique<Reserve>(operation, std::move(text), std::move(parameters), job,
                                     options.token);
  }
  return std::make_unique<OneCommand>(operation, std::move(text), std::move(parameters), job,
                                      options.body_as_json);
}

}  // namespace tubed::api
