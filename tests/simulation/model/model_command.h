// Commands of the model's clients, and the replies to them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "facts/types.h"

namespace tubed::simulation {

// No other client uses these tubes.
inline constexpr std::array<std::string_view, 2> kModelTubes = {"m1", "m2"};

// When something happens: not before `earliest` and not after `latest`.
struct Window {
  Time earliest;
  Time latest;
};

// A client, as the expected queue knows it.
struct Consumer {
  std::string name;
  std::set<std::string> watched;

  bool watches(const std::string& tube) const { return watched.contains(tube); }
};

enum class ModelVerb : std::uint8_t {
  put,
  reserve,
  reserve_batch,
  reserve_job,
  remove,
  release,
  bury,
  touch,
  kick,
  kick_tube,
  move,
  pause,
  show,
  peek,
  list,
};

// A page of a filtered list of jobs.
struct ModelFilter {
  JobId from = 0;
  std::uint64_t limit = 0;
  std::optional<JobState> state = {};  // nothing: any
  std::string text = {};               // in the body
  std::optional<Priority> priority_above = {};
  std::optional<Priority> priority_below = {};
  std::optional<std::uint32_t> failures_above = {};
};

struct ModelCommand {
  ModelVerb verb = ModelVerb::put;
  Time sent;
  JobId id = 0;
  std::string tube = {};
  std::string to = {};
  JobState state = JobState::buried;  // of the jobs to kick or to move
  std::uint64_t count = 0;            // of a batch, or of jobs to kick or move
  Priority priority = 0;
  Duration time{};  // a delay, a pause, or the limit of a reserve
  Duration ttr{};
  std::string body = {};
  ModelFilter filter = {};  // of a list

  bool waits() const { return verb == ModelVerb::reserve && time > Duration::zero(); }
  bool takes_any() const { return verb == ModelVerb::reserve || verb == ModelVerb::reserve_batch; }
};

struct GivenJob {
  std::string line;
  std::string body;
};

struct ModelReply {
  const Consumer* consumer = nullptr;
  ModelCommand command;
  std::string line;
  std::string content;          // body of a job, or a block
  std::vector<GivenJob> batch;  // of a reserve-batch
  Window ran;                   // when the command ran
};

}  // namespace tubed::simulation
