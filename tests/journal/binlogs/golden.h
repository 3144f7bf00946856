// Golden binlogs: the files that make.py recorded from beanstalkd, and the jobs that beanstalkd
// reported.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/assert.h"
#include "facts/fact.h"
#include "journal/binlog.h"

namespace tubed::journal {

inline constexpr const char* kGoldenNames[] = {"states", "compacted", "restarted"};

// A job as stats-job and peek report it.
struct SeenJob {
  std::string tube;
  std::string state;
  std::uint64_t priority = 0;
  std::int64_t age = 0;
  std::uint64_t delay = 0;
  std::uint64_t ttr = 0;
  std::int64_t time_left = 0;
  JobCounters counters;
  std::string body;
};

struct Golden {
  std::map<std::uint64_t, std::string> files;  // binlogs by number
  std::int64_t now = 0;
  std::map<JobId, SeenJob> jobs;
  std::map<std::string, std::vector<JobId>> buried;  // by tube, in the order of burial
  JobId next = 0;
};

inline std::string contents_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  TUBED_ASSERT(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string percent_decoded(const std::string& text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    decoded += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
    i += 2;
  }
  return decoded;
}

inline void take_line(std::istringstream& line, Golden& golden) {
  std::string word;
  line >> word;
  if (word == "now") line >> golden.now;
  if (word == "next") line >> golden.next;
  if (word == "job") {
    JobId id = 0;
    SeenJob job;
    line >> id >> job.tube >> job.state >> job.priority >> job.age >> job.delay >> job.ttr >>
        job.time_left >> job.counters.reserves >> job.counters.timeouts >> job.counters.releases >>
        job.counters.buries >> job.counters.kicks;
    TUBED_ASSERT(line.good());
    line >> job.body;  // an empty body is written as an empty text
    job.body = percent_decoded(job.body);
    golden.jobs.emplace(id, std::move(job));
  }
  if (word == "buried") {
    std::string tube;
    line >> tube;
    for (JobId id = 0; line >> id;) golden.buried[tube].push_back(id);
  }
}

// Precondition: `name` is one of kGoldenNames.
inline Golden golden(const std::string& name) {
  const auto folder = std::filesystem::path(TUBED_BINLOGS) / name;
  Golden golden;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto number = binlog_number(entry.path().filename().string());
    if (number) golden.files.emplace(*number, contents_of(entry.path()));
  }
  std::istringstream expected(contents_of(folder / "expected"));
  for (std::string line; std::getline(expected, line);) {
    std::istringstream words(line);
    take_line(words, golden);
  }
  TUBED_ASSERT(!golden.files.empty() && !golden.jobs.empty());
  return golden;
}

}  // namespace tubed::journal
