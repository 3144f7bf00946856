#include "tubectl/job_options.h"

#include <cctype>
#include <charconv>
#include <cstdio>
#include <unordered_set>

#include <fmt/format.h>

#include "client/system_error.h"
#include "protocol/arguments.h"
#include "tubectl/subcommand.h"
#include "tubectl/values.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kStandardInput = "-";

Error no_id(std::string_view text) {
  return Error{fmt::format("\"{}\" is not a job's id", text.substr(0, 40))};
}

// Calls take(word) for each word on standard input, as long as it returns true.
template <class Take>
Result<void> for_each_word(Take take) {
  std::string word;
  constexpr std::size_t kLongest = 64;  // what is longer is no id
  for (int byte = std::getchar();; byte = std::getchar()) {
    if (byte != EOF && std::isspace(byte) == 0) {
      if (word.size() < kLongest) word.push_back(static_cast<char>(byte));
      continue;
    }
    if (!word.empty() && !take(word)) return no_id(word);
    word.clear();
    if (byte == EOF) break;
  }
  if (std::ferror(stdin) != 0) return client::system_error("cannot read standard input");
  return {};
}

}  // namespace

std::optional<JobId> id_of(std::string_view text) {
  JobId id = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, id);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return id;
}

CLI::Option* add_tube_option(CLI::App& app, std::string& tube, const std::string& meaning) {
  return app.add_option("-t,--tube", tube, meaning)->check(is_tube())->type_name("TUBE");
}

CLI::Option* add_priority_option(CLI::App& app, std::optional<Priority>& priority,
                                 const std::string& meaning) {
  return app.add_option("-p,--priority", priority, meaning)
      ->type_name("N")
      ->transform(is_count(0, UINT32_MAX));
}

CLI::Option* add_delay_option(CLI::App& app, std::uint32_t& seconds, const std::string& meaning) {
  return app.add_option("-d,--delay", seconds, meaning)->type_name("TIME")->transform(is_seconds());
}

bool is_id_or_stdin(std::string_view text) {
  return text == kStandardInput || id_of(text);
}

CLI::Option* add_ids(CLI::App& app, std::vector<std::string>& ids, bool takes_tube) {
  return app.add_option("ID", ids, "Jobs; - stands for ids on standard input")
      ->check([takes_tube](const std::string& text) {
        const bool is_tube = takes_tube && protocol::is_tube_name(text);
        return is_id_or_stdin(text) || is_tube ? std::string() : no_id(text).message;
      })
      ->type_name("ID");
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
