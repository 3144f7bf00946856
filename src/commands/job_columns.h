// The columns of a job in list-jobs, and in the list of jobs of the HTTP API.
//
// A new column comes last, before the tags: clients may read the columns by position.
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace tubed::commands {

// Of a filtered list.
inline constexpr auto kFilteredJobColumns = std::to_array<std::string_view>(
    {"id", "state", "pri", "age", "delay", "ttr", "time-left", "reserves", "timeouts", "releases",
     "buries", "kicks", "bytes", "failures", "dead-from"});
// Of a list without filters, as it was before there were filters.
inline constexpr std::span kJobColumns =
    std::span(kFilteredJobColumns).first<kFilteredJobColumns.size() - 2>();
// The last value of a row whose job has tags.
inline constexpr std::string_view kJobTags = "tags";

}  // namespace tubed::commands
