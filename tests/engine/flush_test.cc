// Flushing tubes and listing their jobs: cases that the random lives of model_test.cc do not reach.
#include <doctest/doctest.h>

#include "tests/engine/world.h"

namespace tubed::engine {

namespace {

constexpr std::uint32_t kMost = Queries::kMaxIdsInPage;

// Without a check of all invariants, which would make many puts slow.
JobId put(World& world, SessionId session, Priority priority = 0) {
  world.engine.memory().claim(0);
  return world.engine.put(session, world.now,
                          {.priority = priority, .delay = {}, .ttr = {60}, .body = {}},
                          world.output);
}

// Returns the ids of all pages and the number of pages.
std::pair<std::vector<JobId>, int> walk(World& world, std::optional<JobState> state,
                                        std::uint32_t limit) {
  std::vector<JobId> ids;
  int pages = 0;
  JobId from = 0;
  do {
    const JobPage page = world.engine.queries().list_jobs(kDefaultTube, state, from, limit);
    ids.insert(ids.end(), page.jobs.begin(), page.jobs.end());
    from = page.next;
    ++pages;
  } while (from != 0);
  return {ids, pages};
}

}  // namespace

TEST_CASE("flushed jobs are not found at once, and their memory comes back with their removal") {
  World world({.work_per_turn = 16});
  const SessionId session = world.engine.open();
  for (int i = 0; i < 5; ++i) put(world, session);
  const std::uint64_t memory = world.engine.info().memory_bytes;
  CHECK(world.engine.flush(world.now, kDefaultTube, world.output) == 5);
  CHECK(world.engine.info().jobs.total() == 0);
  CHECK(world.engine.info().memory_bytes == memory);
  int slices = 0;
  for (; world.engine.has_removals(world.now); ++slices) {
    world.engine.remove_pending(world.now, world.output, world.output);
  }
  CHECK(slices == 3);  // two in each
  CHECK(world.engine.info().memory_bytes == 0);
  world.engine.check_invariants();
}

TEST_CASE("a flush emits one fact, and the removal one for each job") {
  World world;
  const SessionId session = world.engine.open();
  for (int i = 0; i < 3; ++i) put(world, session);
  world.output.take();
  world.engine.flush(world.now, kDefaultTube, world.output);
  CHECK(world.output.take() == Lines{"flushed default"});
  while (world.engine.has_removals(world.now)) {
    world.engine.remove_pending(world.now, world.output, world.output);
  }
  CHECK(world.output.take().size() == 3);
  world.engine.flush(world.now, kDefaultTube, world.output);
  CHECK(world.output.take().empty());  // nothing was there
}

TEST_CASE("a tube can be flushed again and again without a removal") {
  World world;
  const SessionId session = world.engine.open();
  const JobId first = put(world, session);
  for (std::uint32_t i = 0; i <= FlushedJobs::kMaxBatchesOfTube; ++i) {
    if (i > 0) put(world, session);
    REQUIRE(world.engine.flush(world.now, kDefaultTube, world.output) == 1);
    REQUIRE_FALSE(world.engine.queries().peek(first));
    world.output.take();
  }
  // The epochs were used up: the flush has removed all that was left.
  const JobId last = put(world, session);
  CHECK(world.engine.queries().peek(last));
  world.engine.check_invariants();
}

TEST_CASE("a flushed job is described as removed, and a compaction drops it") {
  World world;
  const SessionId session = world.engine.open();
  const JobId job = put(world, session);
  world.engine.flush(world.now, kDefaultTube, world.output);
  world.output.take();
  world.engine.durable_state().describe(world.now, job, world.output);
  world.engine.durable_state().describe_delay(world.now, job, world.output);
  CHECK(world.output.take() == Lines{"removed " + std::to_string(job)});
}

TEST_CASE("many jobs are listed page by page, each once, in the order of ids") {
  World world({.job_memory_bytes = 1ULL << 30});
  const SessionId session = world.engine.open();
  std::vector<JobId> expected;
  for (std::uint32_t i = 0; i < 3 * kMost; ++i) {
    const JobId job = put(world, session);
    if (i % 3 != 0) {
      expected.push_back(job);
    } else {
      world.engine.remove(session, world.now, job, world.output);
    }
  }
  const auto [ids, pages] = walk(world, JobState::ready, 1000);
  CHECK(ids == expected);
  CHECK(pages == 20);
  CHECK(walk(world, std::nullopt, 999).first == expected);
  CHECK(walk(world, JobState::buried, 1000).first.empty());
  // Few jobs of a tube far from the first id are found in one page.
  world.engine.use(session, world.now, "few");
  const JobId few = put(world, session);
  CHECK(world.engine.queries().list_jobs("few", std::nullopt, 0, 10).jobs ==
        std::vector<JobId>{few});
  CHECK(world.engine.queries().list_jobs("few", std::nullopt, few + 1, 10).jobs.empty());
  CHECK(world.engine.queries().list_jobs("none", std::nullopt, 0, 10).jobs.empty());
  // Each page is charged for what it has looked at.
  const std::uint64_t walked = world.engine.entries_walked();
  world.engine.queries().list_jobs(kDefaultTube, JobState::ready, 0, 1);
  CHECK(world.engine.entries_walked() == walked + kMost);
}

TEST_CASE("a filtered walk looks at each job once, and finds those that match") {
  World world({.job_memory_bytes = 1ULL << 30, .work_per_turn = 700});
  const SessionId session = world.engine.open();
  std::vector<JobId> expected;
  for (std::uint32_t i = 0; i < kMost + 100; ++i) {
    const JobId job = put(world, session, i % 1000 == 5 ? 7 : 0);
    if (i % 1000 == 5) expected.push_back(job);
  }
  JobFilter filter;
  filter.priority.above = 6;
  const auto walk = [&] {
    std::vector<JobId> ids;
    std::uint64_t looked = 0;
    JobId from = 0;
    do {
      const FoundJobs page =
          world.engine.queries().find_jobs(world.now, kDefaultTube, {}, from, 2, false, filter);
      CHECK(page.looked <= 700);
      CHECK(page.jobs.size() <= 2);
      ids.insert(ids.end(), page.jobs.begin(), page.jobs.end());
      looked += page.looked;
      from = page.next;
    } while (from != 0);
    CHECK(looked == kMost + 100);
    return ids;
  };
  CHECK(walk() == expected);  // by ids
  // Ids of jobs of other tubes are passed over.
  world.engine.use(session, world.now, "other");
  for (int i = 0; i < 200; ++i) put(world, session);
  CHECK(walk() == expected);
}

TEST_CASE("a filtered page ends after so many bytes of bodies") {
  World world({.job_bytes = 1U << 20, .job_memory_bytes = 1ULL << 30});
  const SessionId session = world.engine.open();
  const std::string body(1U << 20, 'x');
  for (int i = 0; i < 10; ++i) {
    world.engine.memory().claim(static_cast<std::uint32_t>(body.size()));
    world.engine.put(session, world.now,
                     {.priority = 0, .delay = {}, .ttr = {60}, .body = Bytes::copy_of(body)},
                     world.output);
  }
  JobFilter filter;
  filter.texts = {"y"};
  const auto page = [&](JobId from) {
    return world.engine.queries().find_jobs(world.now, kDefaultTube, JobState::ready, from, 9,
                                            false, filter);
  };
  const std::uint64_t walked = world.engine.entries_walked();
  CHECK(page(0).looked == 4);
  CHECK(page(0).next == 5);
  CHECK(world.engine.entries_walked() > walked + Queries::kMaxBytesInPage / 64);
  CHECK(page(9).looked == 2);
  CHECK(page(9).next == 0);
  filter.texts = {"y", "z"};
  CHECK(page(0).looked == 2);
  filter.texts = {};
  filter.priority.above = 3;
  CHECK(page(0).looked == 10);
}

TEST_CASE("the next jobs are those that are given next") {
  World world;
  const SessionId session = world.engine.open();
  for (const Priority priority : {5U, 3U, 9U, 3U, 1U}) put(world, session, priority);
  CHECK(world.engine.queries().next_jobs(kDefaultTube, 4).jobs == std::vector<JobId>{5, 2, 4, 1});
  CHECK(world.engine.queries().next_jobs(kDefaultTube, 10).jobs.size() == 5);
  CHECK(world.engine.queries().next_jobs("none", 10).jobs.empty());
}

}  // namespace tubed::engine
