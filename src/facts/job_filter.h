// JobFilter: the conditions of a filtered list of jobs. [extension: list-jobs with filters]
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace tubed {

namespace engine {
struct JobInfo;
}

// A range of numbers without its bounds.
struct NumberRange {
  std::int64_t above = -1;
  std::int64_t below = std::numeric_limits<std::int64_t>::max();

  bool has(std::int64_t number) const { return number > above && number < below; }
};

// A job has to meet all conditions.
struct JobFilter {
  // Each is in the body, and has 1 to kMaxTextBytes bytes. At most kMaxTexts.
  static constexpr std::size_t kMaxTextBytes = 200;
  static constexpr std::size_t kMaxTexts = 8;
  std::vector<std::string> texts;
  // Each is a tag of the job, or a tag up to one of its colons: "con:key" is in "con:key:3".
  std::vector<std::string_view> tags;
  NumberRange age;  // whole seconds
  NumberRange priority;
  NumberRange failures;
};

// True if the job meets the conditions. O(texts * body + tags * tags of the job).
[[gnu::cold]] bool matches(const JobFilter& filter, const engine::JobInfo& job,
                           std::string_view body);

}  // namespace tubed
