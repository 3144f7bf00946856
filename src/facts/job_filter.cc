#include "facts/job_filter.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/time.h"
#include "facts/info.h"

namespace tubed {

namespace {

// True if one of the words of `tags` is `wanted`, or continues it after a colon.
bool has_tag(std::string_view tags, std::string_view wanted) {
  while (!tags.empty()) {
    std::string_view tag = tags.substr(0, tags.find(' '));
    tags.remove_prefix(std::min(tag.size() + 1, tags.size()));
    if (!tag.starts_with(wanted)) continue;
    tag.remove_prefix(wanted.size());
    if (tag.empty() || tag.front() == ':') return true;
  }
  return false;
}

bool has_text(std::string_view body, std::string_view text) {
  return ::memmem(body.data(), body.size(), text.data(), text.size()) != nullptr;
}

}  // namespace

bool matches(const JobFilter& filter, const engine::JobInfo& job, std::string_view body) {
  const auto age = job.age / std::chrono::seconds(1);
  if (!filter.age.has(age) || !filter.priority.has(job.priority) ||
      !filter.failures.has(job.failures())) {
    return false;
  }
  if (!filter.tags.empty()) {
    const std::string tags = text_of(job.tags);
    const auto is_there = [&](std::string_view tag) { return has_tag(tags, tag); };
    if (!std::ranges::all_of(filter.tags, is_there)) return false;
  }
  return std::ranges::all_of(filter.texts,
                             [&](const std::string& text) { return has_text(body, text); });
}

}  // namespace tubed
