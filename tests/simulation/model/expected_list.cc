// The expected replies to filtered lists of jobs.
#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/simulation/model/expected_queue.h"
#include "text/numbers.h"

namespace tubed::simulation {

namespace {

// A page of list-jobs with filters.
struct Page {
  JobId next = 0;
  std::uint64_t looked = 0;
  std::vector<std::vector<std::string_view>> jobs;  // the words of each line
};

// The places of the words in a line.
enum Word : std::uint8_t {
  kId = 0,
  kState = 1,
  kPriority = 2,
  kReserves = 7,
  kBytes = 12,
  kFailures = 13,
  kDeadFrom = 14,
  kWords
};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(separator));
    parts.push_back(part);
    text.remove_prefix(std::min(part.size() + 1, text.size()));
  }
  return parts;
}

std::uint64_t number(std::string_view word) {
  return leading_number(word);
}

// No value: the block has another form.
std::optional<Page> read_page(std::string_view block) {
  const auto lines = split(block.substr(0, block.find('\r')), '\n');
  if (lines.size() < 3 || lines[0] != "---") return std::nullopt;
  const auto first = split(lines[1], ' ');
  const auto columns = split(lines[2], ' ');
  const bool is_first = first.size() == 5 && first[1] == "next" && first[3] == "looked";
  if (!is_first || columns.size() != kWords + 1 || columns[1 + kFailures] != "failures" ||
      columns[1 + kDeadFrom] != "dead-from")
    return std::nullopt;
  Page page{.next = number(first[2]), .looked = number(first[4]), .jobs = {}};
  for (std::size_t i = 3; i < lines.size(); ++i) {
    auto words = split(lines[i], ' ');
    if (words.size() != kWords + 1) return std::nullopt;  // no job of the model has tags
    words.erase(words.begin());
    page.jobs.push_back(std::move(words));
  }
  return page;
}

std::uint64_t failures_of(const ExpectedJob& job) {
  return job.counters->reserves - (job.state == JobState::reserved ? 1 : 0);
}

// True if the job certainly meets the filter, or certainly does not; no value: it is not certain.
std::optional<bool> meets(const ModelFilter& filter, const ExpectedJob& job, bool may_change) {
  if (job.body.find(filter.text) == std::string::npos) return false;
  if (filter.priority_above && job.priority <= *filter.priority_above) return false;
  if (filter.priority_below && job.priority >= *filter.priority_below) return false;
  if (!filter.failures_above) return true;
  if (!job.counters || may_change) return std::nullopt;
  return failures_of(job) > *filter.failures_above;
}

}  // namespace

void ExpectedQueue::answered_list(const ModelReply& reply) {
  const ModelCommand& command = reply.command;
  const auto page = read_page(reply.content);
  if (!reply.line.starts_with("OK ") || !page)
    return fail(fmt::format("list-jobs: {} {}", reply.line, reply.content));
  std::map<JobId, const std::vector<std::string_view>*> listed;
  JobId last = 0;
  for (const auto& words : page->jobs) {
    const JobId id = number(words[kId]);
    const ExpectedJob* job = find(id);
    if (id <= last || id < command.filter.from || (page->next != 0 && id >= page->next))
      return fail(fmt::format("list-jobs: job {} is in the wrong place", id));
    last = id;
    listed.emplace(id, &words);
    if (job == nullptr && lost_puts_.empty() && !has_doubts_)
      return fail(fmt::format("list-jobs: job {} is not known", id));
  }
  if (listed.size() > command.filter.limit) return fail("list-jobs: the page is too long");
  std::uint64_t least = 0;
  std::uint64_t most = lost_puts_.size();
  for (const auto& [id, job] : jobs_) {
    const bool is_in_page = id >= command.filter.from && (page->next == 0 || id < page->next);
    const auto line = listed.find(id);
    const bool is_listed = line != listed.end();
    if (job.is_doubtful) {
      most += is_in_page ? 1 : 0;
      continue;
    }
    const bool is_there = job.tube == command.tube;
    if (!is_there || !is_in_page) {
      if (is_listed) fail(job, "it is listed");
      continue;
    }
    const bool may_change = (job.is_timed() && job.due.earliest <= reply.ran.latest) ||
                            (job.state == JobState::reserved && job.holder == nullptr);
    const bool has_state = !command.filter.state || job.state == *command.filter.state;
    const bool may_have_state = has_state || may_change;
    most += may_have_state ? 1 : 0;
    least += has_state && !(may_change && command.filter.state) ? 1 : 0;
    const auto is_met = meets(command.filter, job, may_change);
    if (is_listed && (!may_have_state || is_met == false)) fail(job, "it is listed");
    const bool must_be_listed =
        has_state && !(may_change && command.filter.state) && is_met == true;
    if (!is_listed && must_be_listed) fail(job, "it is not listed");
    if (is_listed) listed_as(job, *line->second, may_change);
  }
  if (page->looked < least || page->looked > most)
    fail(fmt::format("list-jobs: looked at {}, not {} to {}", page->looked, least, most));
}

void ExpectedQueue::listed_as(const ExpectedJob& job, const std::vector<std::string_view>& words,
                              bool may_change) {
  const auto expect = [&](Word word, std::uint64_t expected) {
    if (number(words[word]) != expected)
      fail(job, fmt::format("it is listed with {} instead of {}", words[word], expected));
  };
  expect(kPriority, job.priority);
  expect(kBytes, job.body.size());
  if (words[kDeadFrom] != "-") fail(job, "it is listed as dead");
  if (may_change) return;
  if (words[kState] != name_of(job.state)) fail(job, fmt::format("listed as {}", words[kState]));
  if (!job.counters) return;
  expect(kReserves, job.counters->reserves);
  expect(kFailures, failures_of(job));
}

}  // namespace tubed::simulation
