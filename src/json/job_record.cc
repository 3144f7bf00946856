#include "json/job_record.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "protocol/arguments.h"

namespace tubed::json {
namespace {

// The states as stats-job names them.
constexpr std::array kStates{JobState::ready, JobState::delayed, JobState::buried,
                             JobState::reserved};

// Reads the number under `key`, if the key exists. An Error: it is not a whole number, or `T`
// cannot hold it.
template <class T>
Result<void> read_number(const Json& object, const char* key, T& number) {
  const Json* const found = object.find(key);
  if (found == nullptr) return {};
  const auto value = found->number();
  if (!value || *value > std::numeric_limits<T>::max()) {
    return Error{fmt::format("its \"{}\" is no whole number from 0 to {}", key,
                             std::numeric_limits<T>::max())};
  }
  number = static_cast<T>(*value);
  return {};
}

Result<void> read_numbers(const Json& object, JobRecord& job) {
  TRY(read_number(object, "id", job.id));
  TRY(read_number(object, "priority", job.priority));
  TRY(read_number(object, "pri", job.priority));  // as the protocol and the HTTP API name it
  TRY(read_number(object, "delay", job.delay_seconds));
  TRY(read_number(object, "ttr", job.ttr_seconds));
  using Counter = std::pair<const char*, std::uint64_t*>;
  for (const auto& [key, counter] :
       {Counter{"age", &job.age_seconds}, Counter{"reserves", &job.reserves},
        Counter{"timeouts", &job.timeouts}, Counter{"releases", &job.releases},
        Counter{"buries", &job.buries}, Counter{"kicks", &job.kicks}}) {
    TRY(read_number(object, key, *counter));
  }
  return {};
}

// Checks the names before the first put, when the error can still name the line.
Result<void> read_names(const Json& object, JobRecord& job) {
  if (const Json* const tube = object.find("tube")) {
    if (tube->text() == nullptr || !is_tube_name(*tube->text())) {
      return Error{"its \"tube\" is no tube's name"};
    }
    job.tube = *tube->text();
  }
  if (const Json* const state = object.find("state")) {
    const auto named = state->text() != nullptr ? state_named(*state->text()) : std::nullopt;
    if (!named) return Error{"its \"state\" is not ready, delayed, buried or reserved"};
    job.state = *named;
  }
  if (const Json* const tags = object.find("tags")) {
    JobTags values;
    if (tags->text() == nullptr || !protocol::parse_tags(*tags->text(), values)) {
      return Error{"its \"tags\" are not those of a put"};
    }
    job.tags = *tags->text();
  }
  return {};
}

}  // namespace

std::optional<JobState> state_named(std::string_view name) {
  const auto* const found = std::ranges::find(kStates, name, &name_of);
  return found == kStates.end() ? std::nullopt : std::optional(*found);
}

Json as_json(const JobRecord& job) {
  Json object{{"id", job.id},
              {"tube", job.tube},
              {"state", name_of(job.state)},
              {"priority", job.priority},
              {"delay", job.delay_seconds},
              {"ttr", job.ttr_seconds},
              {"age", job.age_seconds},
              {"reserves", job.reserves},
              {"timeouts", job.timeouts},
              {"releases", job.releases},
              {"buries", job.buries},
              {"kicks", job.kicks}};
  if (!job.tags.empty()) object["tags"] = job.tags;
  set_body(object, job.body);
  return object;
}

Result<JobRecord> read_record(std::string_view line) {
  const auto object = Json::parse(line);
  if (!object) return Error{"it is no JSON object"};
  JobRecord job;
  TRY(read_names(*object, job));
  TRY(read_numbers(*object, job));
  job.body = TRY(body_of(*object));
  return job;
}

}  // namespace tubed::json
