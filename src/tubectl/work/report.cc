#include "tubectl/work/report.h"

#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "tubectl/json.h"

namespace tubed::tubectl::work {
namespace {

// Rounds seconds to milliseconds, and omits keys without a meaning for the outcome.
std::string as_json(const JobReport& job) {
  Json line;
  line["event"] = "job";
  line["id"] = job.id;
  line["tube"] = job.tube;
  line["outcome"] = job.outcome;
  line["seconds"] = std::round(job.seconds * 1000) / 1000;
  if (job.ending) {
    if (job.ending->signal == 0) line["exit-code"] = job.ending->exit_code;
    if (job.ending->signal != 0) line["signal"] = job.ending->signal;
    if (job.ending->overran) line["overran"] = true;
  }
  if (job.outcome == "released") line["delay"] = job.delay_seconds;
  if (!job.why.empty()) line["why"] = job.why;
  return to_line(line);
}

std::string as_text(const JobReport& job) {
  std::string line = fmt::format("tubectl: job {} of {}: {}", job.id, job.tube, job.outcome);
  if (job.outcome == "released") line += fmt::format(" for {} s", job.delay_seconds);
  if (job.ending) line += fmt::format(", {} after {:.3f} s", describe(*job.ending), job.seconds);
  if (!job.why.empty()) line += fmt::format(": {}", job.why);
  return line;
}

// One call for the whole line keeps lines of several processes apart.
void write(const std::string& line) {
  std::fputs((line + '\n').c_str(), stderr);
}

}  // namespace

void Report::job(const JobReport& job) const {
  const auto needed = job.is_failure() ? Verbosity::failures : Verbosity::all;
  if (verbosity_ >= needed) write(json_ ? as_json(job) : as_text(job));
}

void Report::event(std::string_view event, const std::string& words) const {
  if (verbosity_ < Verbosity::failures) return;
  if (!json_) return write("tubectl: " + words);
  Json line;
  line["event"] = event;
  line["message"] = words;
  write(to_line(line));
}

}  // namespace tubed::tubectl::work
