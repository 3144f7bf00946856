#include "api/parameter_form.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/job_list.h"
#include "stats/tube_columns.h"

namespace tubed::api {

namespace {

template <class Type>
std::string form_of_type() {
  return std::string(protocol::describe(static_cast<const Type*>(nullptr)));
}

// The form of the argument of the command that the parameter is.
std::string plain_form_of(const Operation& operation, std::string_view name) {
  const commands::Command* command = command_of(operation);
  if (name == operation.waits) return fmt::format("integer from 0 to {}", kMostWaitSeconds);
  if (name == "key") return "key of a policy";
  if (name == "value") return "value of the key";
  if (name == "token") return "32 hexadecimal digits, and of a job of several . and its id";
  if (name == "ids") return "1 to 1,000 ids";
  if (name == "order") return "one of: asc desc";
  if (name == "span") return "one of: hour day";
  if (name == "q") return "text of 1 to 200 bytes";
  if (name == "tag") return "name:value";
  if (name.ends_with("_over") || name.ends_with("_below")) return "integer < 2^32";
  if (name == "sort" && operation.kind == Kind::jobs)
    return fmt::format("one of: {}", fmt::join(JobList::kColumns, " "));
  if (name == "sort") return fmt::format("one of: {}", fmt::join(stats::kListedTubeNames, " "));
  const auto tube_or_text = [name] {
    return name == "tube" ? form_of_type<protocol::TubeName>() : std::string("text");
  };
  if (command == nullptr) return tube_or_text();
  for (const commands::ArgumentText& argument : command->arguments) {
    if (argument.name == name) return std::string(argument.type);
    if (argument.name == "pri> <delay") {
      if (name == "pri") return "integer < 2^32";
      if (name == "delay") return form_of_type<TimeSpan>();
    }
  }
  return tube_or_text();
}

}  // namespace

// A time may have a unit, which the command does not take.
std::string form_of(const Operation& operation, std::string_view parameter) {
  const std::string form = plain_form_of(operation, parameter);
  if (!is_time(parameter)) return form;
  const bool waits = parameter == operation.waits;
  return fmt::format("{}{}{}", form, kOrWithUnit, waits ? "50s" : "90s, 5m, 2h, 1d");
}

}  // namespace tubed::api
