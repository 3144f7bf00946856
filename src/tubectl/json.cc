#include "tubectl/json.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/planted.h"
#include "protocol/text_keys.h"
#include "text/numbers.h"
#include "tubectl/jobs/record.h"

namespace tubed::tubectl {
namespace {

std::optional<double> parse_fraction(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

// The type of a line of stats depends on its key; for a key that is not known to be text, on its
// value. A value that is neither a number nor a truth value is text.
Json value_of(const client::StatsBlock::Line& line) {
  if (line.quoted || protocol::is_text_member(line.key)) return line.value;
  if (line.value == "true") return true;
  if (line.value == "false") return false;
  // Whole numbers are exact up to 64 bits.
  if (const auto whole = parse_number<std::uint64_t>(line.value)) return *whole;
  // `inf` and `nan` are text, such as the name of a group.
  const bool has_digit = line.value.find_first_of("0123456789") != line.value.npos ||
                         TUBED_PLANTED(infinity_is_a_number);
  const auto fraction = has_digit ? parse_fraction(line.value) : std::nullopt;
  return fraction ? Json(*fraction) : Json(line.value);
}

}  // namespace

Json stats_json(const client::StatsBlock& stats) {
  Json object = Json::object();
  for (const client::StatsBlock::Line& line : stats.lines()) object[line.key] = value_of(line);
  return object;
}

Json job_json(const client::StatsBlock& job) {
  Json object = stats_json(job);
  object["id"] = job.count("id");  // in `stats`, the key id has text
  if (std::string tags = tags_of(job); !tags.empty()) object["tags"] = std::move(tags);
  return object;
}

std::string job_lines(const client::StatsBlock& job) {
  Json object{{"id", job.count("id")},
              {"tube", job.text("tube").value_or("")},
              {"state", job.text("state").value_or("")},
              {"priority", job.count("pri")},
              {"age", job.count("age")},
              {"delay", job.count("delay")},
              {"ttr", job.count("ttr")},
              {"time_left", job.count("time-left")},
              {"reserves", job.count("reserves")},
              {"timeouts", job.count("timeouts")},
              {"releases", job.count("releases")},
              {"buries", job.count("buries")},
              {"kicks", job.count("kicks")}};
  if (std::string tags = tags_of(job); !tags.empty()) object["tags"] = std::move(tags);
  return aligned_lines(object);
}

std::string aligned_lines(const Json& object) {
  std::size_t width = 0;
  for (const auto& [key, value] : object.members()) width = std::max(width, key.size());
  std::string text;
  for (const auto& [key, value] : object.members()) {
    const std::string* const shown = value.text();
    text += fmt::format("{:<{}}  {}\n", key, width, shown != nullptr ? *shown : to_line(value));
  }
  return text;
}

}  // namespace tubed::tubectl
