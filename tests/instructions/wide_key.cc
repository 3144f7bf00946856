// wide_key TUBES: measures a reserve and release, and a reserve and close, of the jobs of a
// concurrency key that has a ready job in each of TUBES tubes. callgrind collects only during the
// cycles.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <valgrind/callgrind.h>

#include "engine/engine.h"

namespace {

using namespace tubed;
using namespace tubed::engine;

constexpr int kCycles = 200;
constexpr int kWarmUp = 20;

class NoOutput final : public Output {
 public:
  void fact(const Fact&) override {}
  void notice(const Notice&) override {}
};

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "wide_key: %s\n", what);
  std::exit(1);
}

struct Queue {
  Queue() : engine(Limits()) {}

  void put(const std::string& tube) {
    const JobTags tags{.concurrency_key = "key", .concurrency_limit = 1};
    if (!engine.memory().claim(tags_memory(tags))) fail("no memory");
    const auto result = engine.put_with_tags(
        now, tube, {.priority = 0, .delay = {}, .ttr = {60}, .body = {}}, tags, output);
    if (!result) fail("too many tubes");
  }

  SessionId open() {
    const SessionId session = engine.open();
    engine.watch(session, now, "t0");
    engine.ignore(session, now, kDefaultTube);
    return session;
  }

  JobId reserve(SessionId session) {
    const auto notice = engine.reserve(session, now, {.limit = Duration::zero()});
    if (!notice || notice->kind != Notice::Kind::reserved) fail("no job");
    return notice->job;
  }

  // A job is reserved and released, and reserved again by a client that closes. In between the
  // client finds no other job.
  void cycle() {
    const SessionId session = open();
    const JobId job = reserve(session);
    const auto none = engine.reserve(session, now, {.limit = Duration::zero()});
    if (!none || none->kind != Notice::Kind::timed_out) fail("a second job of the key");
    engine.release(session, now, job, 0, {}, output);
    reserve(session);
    engine.close(session, now, output);
  }

  Engine engine;
  NoOutput output;
  Time now{std::chrono::hours(1)};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) fail("usage: wide_key TUBES");
  const int tubes = std::atoi(argv[1]);
  Queue queue;
  for (int i = 0; i < tubes; ++i) queue.put("t" + std::to_string(i));
  for (int i = 0; i < 3; ++i) queue.put("t0");
  for (int i = 0; i < kWarmUp; ++i) queue.cycle();
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_TOGGLE_COLLECT;
  for (int i = 0; i < kCycles; ++i) queue.cycle();
  CALLGRIND_TOGGLE_COLLECT;
  CALLGRIND_STOP_INSTRUMENTATION;
  std::printf("cycles: %d with a key in %d tubes\n", kCycles, tubes);
}
