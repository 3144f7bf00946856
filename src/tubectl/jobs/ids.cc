#include "tubectl/jobs/ids.h"

#include <cctype>
#include <cstdio>
#include <unordered_set>

#include <fmt/format.h>

#include "client/system_error.h"
#include "text/numbers.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kStandardInput = "-";

// Calls take(word) for each word on standard input until take() returns false. A word that is too
// long is cut, and the cut word is refused as an id. Ctrl-D ends the input as usual.
template <class Take>
Result<void> for_each_word(Take take) {
  std::string word;
  constexpr std::size_t kLongest = 64;  // longer words are not ids
  for (int byte = std::getchar();; byte = std::getchar()) {
    if (byte != EOF && std::isspace(byte) == 0) {
      if (word.size() < kLongest) word.push_back(static_cast<char>(byte));
      continue;
    }
    if (!word.empty() && !take(word)) return not_an_id(word);
    word.clear();
    if (byte == EOF) break;
  }
  if (std::ferror(stdin) != 0) return client::system_error("cannot read standard input");
  return {};
}

}  // namespace

std::optional<JobId> id_of(std::string_view text) {
  return parse_number<JobId>(text);
}

bool is_id_or_stdin(std::string_view text) {
  return text == kStandardInput || id_of(text);
}

Error not_an_id(std::string_view text) {
  return Error{fmt::format("\"{}\" is not a job's id", text.substr(0, 40))};
}

Result<std::vector<JobId>> read_ids(const std::vector<std::string>& ids) {
  std::vector<JobId> all;
  std::unordered_set<JobId> seen;
  const auto take = [&](std::string_view text) {
    const auto id = id_of(text);
    if (id && seen.insert(*id).second) all.push_back(*id);
    return id.has_value();
  };
  for (const std::string& text : ids) {
    if (text != kStandardInput) {
      take(text);
    } else if (auto read = for_each_word(take); !read) {
      return read.error();
    }
  }
  return all;
}

}  // namespace tubed::tubectl
