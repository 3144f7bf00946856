#include "tubectl/jobs/filters.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "client/event_loop.h"
#include "protocol/arguments.h"
#include "text/numbers.h"
#include "text/percent.h"
#include "tubectl/list_page.h"

namespace tubed::tubectl {

std::string JobFilters::words() const {
  std::string words;
  if (!text.empty()) words += " body:" + percent_encoded(text);
  // The filters of the server exclude their bounds.
  if (older_than.value_or(0) > 0) words += fmt::format(" age>{}", *older_than - 1);
  if (newer_than) words += fmt::format(" age<{}", *newer_than);
  if (priority_over) words += fmt::format(" pri>{}", *priority_over);
  if (priority_below) words += fmt::format(" pri<{}", *priority_below);
  if (failures) words += fmt::format(" failures>{}", *failures - 1);
  for (const std::string& tag : tags) words += " tag:" + tag;
  return words;
}

Result<void> check_filter_text(std::string_view text) {
  if (!text.empty() && text.size() <= JobFilter::kMaxTextBytes) return {};
  return Error{fmt::format("a text to find has 1 to {} bytes", JobFilter::kMaxTextBytes)};
}

Result<void> check_filter_tag(std::string_view text) {
  JobTags tags;
  if (text.find(' ') == std::string_view::npos && protocol::parse_tags(text, tags)) return {};
  return Error{fmt::format("\"{}\" is not a tag, such as grp:import", text)};
}

ListedJobs::ListedJobs(client::Connection& connection, std::string tube, std::string_view state,
                       const JobFilters& filters)
    : connection_(connection), tube_(std::move(tube)), state_(state), filters_(filters.words()) {}

Result<std::vector<JobRecord>> ListedJobs::next(std::uint64_t most) {
  constexpr std::uint64_t kPageJobs = 1000;
  std::vector<JobRecord> jobs;
  while (jobs.empty() && !at_end_ && most > 0 && !client::stop_requested()) {
    auto reply = TRY(connection_.ask(fmt::format("list-jobs {} {} {} {}{}", tube_, state_, from_,
                                                 std::min(most, kPageJobs), filters_)));
    const auto page = reply.is("OK") ? read_page(reply.body) : std::nullopt;
    if (!page) {
      at_end_ = true;
      refusal_ = std::move(reply);
      break;
    }
    from_ = page->next;
    at_end_ = page->next == 0;
    for (const auto& words : page->lines) {
      if (words.size() < 2) continue;
      JobRecord& job = jobs.emplace_back();
      job.id = leading_number<JobId>(words[0]);
      job.tube = tube_;
      // A job that a group holds is delayed.
      job.state = state_named(words[1]).value_or(JobState::delayed);
    }
  }
  return jobs;
}

}  // namespace tubed::tubectl
