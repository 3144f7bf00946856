// put() works in four steps, each a pipeline over all jobs of the call:
// 1. keep_tubes() watches the tubes, which creates them and keeps them while they are empty. A
//    refusal (too many tubes) is recorded for each job of that tube.
// 2. put_all() sends a use wherever the tube changes, and the puts. If a use is refused, the puts
//    after it reach the wrong tube and count as refused.
// 3. bury() reserves by id each job that should be buried, and buries it.
// 4. take_back() deletes the jobs that were refused in step 2 or 3 but exist.
// Jobs ordered by tube need the fewest commands, but any order is correct.
#include "tubectl/jobs/putter.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "client/pipeline.h"
#include "protocol/reply.h"
#include "tubectl/commands/command.h"
#include "tubectl/jobs/counts.h"
#include "tubectl/jobs/source.h"

namespace tubed::tubectl {
namespace {

namespace word = protocol::word;

// Ten years: no worker may get the job before it is buried.
constexpr std::chrono::seconds kParked{10LL * 365 * 24 * 3600};
// Less than servers let one client watch.
constexpr std::size_t kMostKeptTubes = 1000;

// A job whose tube was refused in step 1 is not put at all.
bool is_refused(const PutResult& result) {
  return result.id == 0 && !result.refusal.line.empty();
}

// INSERTED 1 READY: job 1 has the unique key.
bool names_another(const client::Reply& inserted) {
  return std::ranges::count(inserted.line, ' ') > 1;
}

// Calls visit(word, tag) for each tag of a put; the word is the part before the first colon.
template <class Visit>
void for_each_tag(std::string_view tags, Visit visit) {
  while (!tags.empty()) {
    const std::string_view tag = tags.substr(0, tags.find(' '));
    tags.remove_prefix(std::min(tag.size() + 1, tags.size()));
    if (!tag.empty()) visit(tag.substr(0, tag.find(':')), tag);
  }
}

// A view of the record that does not copy the body. Valid as long as `job` and `tags` are.
client::NewJob new_job(const JobRecord& job, std::string_view tags) {
  const bool buried = job.state == JobState::buried;
  return {.priority = job.priority,
          .delay = buried ? kParked : std::chrono::seconds(job.delay_seconds),
          .ttr = std::chrono::seconds(job.ttr_seconds),
          .tags = tags,
          .body = job.body};
}

}  // namespace

Result<std::vector<PutResult>> JobPutter::put(std::span<const JobRecord> jobs) {
  std::vector<PutResult> results(jobs.size());
  TRY(learn_tags(jobs));
  TRY(keep_tubes(jobs, results));
  TRY(put_all(jobs, results));
  TRY(bury(jobs, results));
  TRY(take_back(results));
  return results;
}

// A server that does not know tags would run the body as commands.
Result<void> JobPutter::learn_tags(std::span<const JobRecord> jobs) {
  const auto has_tags = [](const JobRecord& job) { return !job.tags.empty(); };
  if (server_ || std::ranges::none_of(jobs, has_tags)) return {};
  server_ = TRY(Capabilities::of(connection_));
  return {};
}

bool JobPutter::knows_tag(std::string_view word) const {
  return server_->has(fmt::format("put:{}", word));
}

std::string JobPutter::known_tags(const JobRecord& job) const {
  std::string known;
  for_each_tag(job.tags, [&](std::string_view word, std::string_view tag) {
    if (knows_tag(word)) known.append(known.empty() ? "" : " ").append(tag);
  });
  return known;
}

// After a refused use, the next put would reach another tube. Watching the tubes first creates and
// keeps them.
Result<void> JobPutter::keep_tubes(std::span<const JobRecord> jobs,
                                   std::vector<PutResult>& results) {
  std::set<std::string> wanted;
  for (const JobRecord& job : jobs) {
    if (job.tube != kDefaultTube && !kept_.contains(job.tube)) wanted.insert(job.tube);
  }
  if (wanted.empty()) return {};
  std::vector<client::Reply> answers;
  if (kept_.size() + wanted.size() > kMostKeptTubes) {
    TRY(watch_or_ignore("ignore", kept_, answers));
    kept_.clear();
    return keep_tubes(jobs, results);
  }
  TRY(watch_or_ignore("watch", wanted, answers));
  std::map<std::string, client::Reply> refused;
  auto answer = answers.begin();
  for (const std::string& tube : wanted) {
    if (answer->is("WATCHING")) {
      kept_.insert(tube);
    } else {
      refused.emplace(tube, std::move(*answer));
    }
    ++answer;
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto found = refused.find(jobs[i].tube);
    if (found != refused.end()) results[i].refusal = found->second;
  }
  return {};
}

// `answers` gets one reply per tube, in the order of the set.
Result<void> JobPutter::watch_or_ignore(std::string_view command,
                                        const std::set<std::string>& tubes,
                                        std::vector<client::Reply>& answers) {
  answers.clear();
  auto tube = tubes.begin();
  return ask_each(
      connection_, tubes.size(),
      [&](std::size_t, std::string& commands) {
        fmt::format_to(std::back_inserter(commands), "{} {}\r\n", command, *tube++);
      },
      [&](std::size_t, client::Reply&& answer) { answers.push_back(std::move(answer)); });
}

// Replies arrive in the order of the commands: sent[answered] is the command of the next reply.
Result<void> JobPutter::put_all(std::span<const JobRecord> jobs, std::vector<PutResult>& results) {
  // For each command sent, the job of the put; no value for a use.
  std::vector<std::optional<std::size_t>> sent;
  std::size_t next = 0;
  std::size_t answered = 0;
  std::optional<client::Reply> use_refused;  // set while puts reach another tube
  const auto make = [&](std::string& commands) {
    while (next < jobs.size() && is_refused(results[next])) ++next;
    if (next == jobs.size()) return false;
    if (jobs[next].tube != used_) {
      used_ = jobs[next].tube;
      commands.append("use ").append(used_).append("\r\n");
      sent.emplace_back();
    } else {
      client::append_put(new_job(jobs[next], known_tags(jobs[next])), commands);
      sent.emplace_back(next++);
    }
    return true;
  };
  const auto take = [&](client::Reply&& answer) -> Result<void> {
    const auto job = sent[answered++];
    if (!job) {
      use_refused = answer.is("USING") ? std::nullopt : std::optional(std::move(answer));
      return {};
    }
    // BURIED: the queue had no room. The job has an id, and must not stay in that state.
    const bool inserted = answer.is("INSERTED") && !names_another(answer);
    if (inserted || answer.is(word::kBuried)) results[*job].id = answer.number();
    if (use_refused) {
      results[*job].refusal = *use_refused;
    } else if (!inserted) {
      results[*job].refusal = std::move(answer);
    }
    return {};
  };
  auto done = pipelined(connection_, make, take);
  if (use_refused) used_.clear();
  return done;
}

// Sends both commands together: even a TTR of one second does not expire in between.
Result<void> JobPutter::bury(std::span<const JobRecord> jobs, std::vector<PutResult>& results) {
  std::vector<std::size_t> buried;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const bool put = results[i].id != 0 && results[i].refusal.line.empty();
    if (put && jobs[i].state == JobState::buried) buried.push_back(i);
  }
  return ask_each(
      connection_, 2 * buried.size(),
      [&](std::size_t i, std::string& commands) {
        const std::size_t job = buried[i / 2];
        const JobId id = results[job].id;
        if (i % 2 == 0) {
          fmt::format_to(std::back_inserter(commands), "reserve-job {}\r\n", id);
        } else {
          fmt::format_to(std::back_inserter(commands), "bury {} {}\r\n", id, jobs[job].priority);
        }
      },
      [&](std::size_t i, client::Reply&& answer) {
        PutResult& result = results[buried[i / 2]];
        const bool done = i % 2 == 0 ? answer.is("RESERVED") : answer.is(word::kBuried);
        if (!done && result.refusal.line.empty()) result.refusal = std::move(answer);
      });
}

// Deletes jobs that were added although they count as refused.
Result<void> JobPutter::take_back(std::vector<PutResult>& results) {
  std::vector<JobRecord> unwanted;
  for (PutResult& result : results) {
    if (result.id == 0 || result.refusal.line.empty()) continue;
    unwanted.emplace_back().id = result.id;
    result.id = 0;
  }
  const auto deleted = delete_jobs(connection_, unwanted);
  return deleted ? Result<void>() : deleted.error();
}

void LostTags::count(const JobRecord& job, const JobPutter& putter) {
  for_each_tag(job.tags, [&](std::string_view word, std::string_view) {
    if (!putter.knows_tag(word)) ++jobs_[std::string(word)];
  });
}

void LostTags::report() const {
  if (!any()) return;
  std::string text;
  for (const auto& [word, count] : jobs_) {
    text += fmt::format("{}{} of {}", text.empty() ? "" : ", ", word, jobs_in_words(count));
  }
  fail(0, "tags that the server does not know were left out: " + text);
}

Json LostTags::json() const {
  Json object = Json::object();
  for (const auto& [word, count] : jobs_) object[word] = count;
  return object;
}

}  // namespace tubed::tubectl
