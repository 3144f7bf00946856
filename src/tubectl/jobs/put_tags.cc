#include "tubectl/jobs/put_tags.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "protocol/arguments.h"
#include "text/numbers.h"

namespace tubed::tubectl {
namespace {

// A space would start another tag.
bool is_tag(std::string_view word, std::string_view value) {
  JobTags tags;
  return value.find(' ') == value.npos &&
         protocol::parse_tags(fmt::format("{}:{}", word, value), tags);
}

bool is_name(std::string_view, std::string_view value) {
  return is_tube_name(value);
}

// A name has no colon.
bool is_name_and_limit(std::string_view, std::string_view value) {
  const std::size_t colon = value.find(':');
  if (!is_tube_name(value.substr(0, colon))) return false;
  if (colon == value.npos) return true;
  return parse_number<std::uint32_t>(value.substr(colon + 1)).value_or(0) > 0;
}

constexpr std::array<PutTagRow, 6> kRows{
    {{"--unique", "idp", &PutTags::unique, "a key, or a key, a colon and seconds", is_tag},
     {"--max", "max", &PutTags::max,
      "a number, or a number, a colon and bury, delete or a tube's name", is_tag},
     {"--ttl", "ttl", &PutTags::ttl, "a time", is_tag},
     {"--group", "grp", &PutTags::group, "a name, with the letters of a tube's name", is_name},
     {"--after", "aft", &PutTags::after, "the name of a group, with the letters of a tube's name",
      is_name},
     {"--concurrency", "con", &PutTags::concurrency,
      "a key, or a key, a colon and a number from 1 on", is_name_and_limit}}};

}  // namespace

std::span<const PutTagRow> put_tag_rows() {
  return kRows;
}

Result<std::string> text_of(const PutTags& tags) {
  std::string text;
  for (const PutTagRow& row : kRows) {
    const auto& value = tags.*row.value;
    if (!value) continue;
    if (!row.is_value(row.word, *value)) {
      return Error{fmt::format("{} takes {}", row.option, row.takes)};
    }
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", row.word, *value);
  }
  return text;
}

std::string unknown_options(const PutTags& tags, const Capabilities& server) {
  std::string options;
  for (const PutTagRow& row : kRows) {
    if (!(tags.*row.value) || server.has(fmt::format("put:{}", row.word))) continue;
    options.append(options.empty() ? "" : ", ").append(row.option);
  }
  return options;
}

}  // namespace tubed::tubectl
