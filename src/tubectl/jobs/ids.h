// Ids of jobs on the command line and on standard input.
//
// Ids are decimal numbers from 0 to 2^64 - 1, without a sign or leading space.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "facts/types.h"

namespace tubed::tubectl {

// The id that `text` consists of; no value: `text` is not an id.
std::optional<JobId> id_of(std::string_view text);
// True for an id, and for "-", which means ids on standard input.
bool is_id_or_stdin(std::string_view text);
Error not_an_id(std::string_view text);

// Returns the ids in order, without duplicates. "-" is replaced by the ids on standard input,
// separated by white space. Fails if standard input cannot be read or has a word that is not an id.
// Precondition: is_id_or_stdin() for each.
Result<std::vector<JobId>> read_ids(const std::vector<std::string>& ids);

}  // namespace tubed::tubectl
