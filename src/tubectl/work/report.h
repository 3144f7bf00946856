// Report: the lines that `tubectl work` writes to standard error, as text or as JSON.
//
// Standard output belongs to the commands. With --json each line is one object; its keys are part
// of the interface.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "facts/types.h"
#include "tubectl/work/decision.h"

namespace tubed::tubectl::work {

// A job whose command ran, or was to run, and its outcome.
struct JobReport {
  JobId id = 0;
  std::string tube;
  // "deleted", "released", "buried"; "lost": the server gives or has given the job to another
  // client; "returned": the job returns to the queue unchanged.
  std::string_view outcome;
  std::optional<Ending> ending;  // no value: the command did not run
  double seconds = 0;
  std::uint64_t delay_seconds = 0;  // of "released"
  std::string_view why;             // of "lost" and "returned"

  bool is_failure() const { return outcome == "lost" || (ending && !ending->succeeded()); }
};

class Report {
 public:
  enum class Verbosity : std::uint8_t { quiet, failures, all };

  Report(Verbosity verbosity, bool json) : verbosity_(verbosity), json_(json) {}

  void job(const JobReport& job) const;
  // Reports an event of the connection: its name, such as "disconnected", and a text.
  void event(std::string_view event, const std::string& words) const;

 private:
  Verbosity verbosity_;
  bool json_;
};

}  // namespace tubed::tubectl::work
