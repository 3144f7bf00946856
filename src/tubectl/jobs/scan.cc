#include "tubectl/jobs/scan.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "client/pipeline.h"
#include "tubectl/commands/command.h"
#include "tubectl/exit_codes.h"

namespace tubed::tubectl {
namespace {

constexpr JobId kSlice = 4096;

// The id that a put gets now. An Answer: the server refused.
Result<std::variant<JobId, client::Reply>> next_id(client::Connection& connection) {
  using Outcome = std::variant<JobId, client::Reply>;
  auto used = TRY(connection.ask("use tubectl-export"));
  if (!used.is("USING")) return Outcome(std::move(used));
  std::string put;
  client::append_put(
      {.priority = UINT32_MAX, .delay_seconds = 24 * 3600, .ttr_seconds = 1, .body = {}}, put);
  TRY(connection.send(put));
  auto inserted = TRY(connection.receive());
  const JobId id = inserted.number();
  if (id > 0) TRY(connection.ask(fmt::format("delete {}", id)));
  if (!inserted.is("INSERTED")) return Outcome(std::move(inserted));
  return Outcome(id);
}

}  // namespace

Result<std::optional<JobId>> last_id(client::Connection& connection, std::optional<JobId> to) {
  if (to) return to;
  const auto next = TRY(next_id(connection));
  const auto* const refusal = std::get_if<client::Reply>(&next);
  if (refusal == nullptr) return std::optional<JobId>(std::get<JobId>(next));
  fail(kExitFailure,
       fmt::format("cannot learn the newest id: {}; with --to ID it need not be learnt",
                   meaning_of(*refusal)));
  return std::optional<JobId>();
}

Result<void> scan_jobs(
    client::Connection& connection, JobId from, JobId to,
    const std::function<Result<bool>(std::vector<JobRecord> jobs, JobId seen)>& visit) {
  for (JobId first = from; first <= to;) {
    const JobId count = std::min(kSlice, to - first + 1);
    std::vector<JobRecord> jobs;
    const auto asked = ask_each(
        connection, count,
        [&](std::size_t i, std::string& commands) {
          fmt::format_to(std::back_inserter(commands), "stats-job {}\r\n", first + i);
        },
        [&](std::size_t, const client::Reply& answer) {
          if (!answer.is("OK")) return;
          if (auto job = record_of(client::StatsBlock(answer.body)))
            jobs.push_back(std::move(*job));
        });
    if (!asked) return asked;
    const JobId last = first + count - 1;
    const auto more = TRY(visit(std::move(jobs), last));
    if (!more || last == to) return {};
    first = last + 1;
  }
  return {};
}

}  // namespace tubed::tubectl
