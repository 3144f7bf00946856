// PutTags: the tags of new jobs, from the options of tubectl put. [extension: put tags]
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tubectl/jobs/capabilities.h"

namespace tubed::tubectl {

// The values of the options.
struct PutTags {
  std::optional<std::string> unique;
  std::optional<std::string> max;
  std::optional<std::string> ttl;
  std::optional<std::string> group;
  std::optional<std::string> after;
  std::optional<std::string> concurrency;
};

// A tag is the word, a colon and the value of the option.
struct PutTagRow {
  std::string_view option;  // "--unique"
  std::string_view word;    // "idp"
  std::optional<std::string> PutTags::*value;
  std::string_view takes;  // the values that the option takes
  bool (*is_value)(std::string_view word, std::string_view value);
};
std::span<const PutTagRow> put_tag_rows();

// Returns the tags as they are written in a put, separated by spaces; empty: none. Fails, naming
// the option, if a value is malformed.
Result<std::string> text_of(const PutTags& tags);
// The options whose tags the server does not know, such as "--max, --ttl". The put would be
// malformed, and some servers would run the body as commands.
std::string unknown_options(const PutTags& tags, const Capabilities& server);

}  // namespace tubed::tubectl
