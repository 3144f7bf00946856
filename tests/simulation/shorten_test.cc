// A failing life becomes short, and the options printed for it fail in the same way.
#include "tests/simulation/shorten.h"

#include <algorithm>
#include <cstdlib>

#include <doctest/doctest.h>

#include "base/assert.h"
#include "tests/simulation/options.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

namespace {

// Returns the options that these words describe.
LifeOptions options_in(std::string_view words) {
  LifeOptions options;
  while (!words.empty()) {
    words.remove_prefix(1);
    const char end = words.starts_with('\'') ? '\'' : ' ';
    if (end == '\'') words.remove_prefix(1);
    const std::size_t bytes = std::min(words.find(end), words.size());
    CHECK(take_option(words.substr(0, bytes), options));
    words.remove_prefix(std::min(bytes + (end == '\'' ? 1 : 0), words.size()));
  }
  return options;
}

}  // namespace

TEST_CASE("the kind of a problem does not depend on its numbers and lines") {
  CHECK(kind_of("client 3: no answer: \"\" to \"put 7\"") ==
        kind_of("client 12: no answer: \"\" to \"use a\""));
  CHECK(kind_of("job 7 of m1, priority 2, ready: it is lost") ==
        kind_of("job 70 of m2, priority 0, ready: it is lost"));
  CHECK(kind_of("job 7 was acknowledged and is lost") != kind_of("job 7 was deleted and is back"));
}

TEST_CASE("the words of options are read back as the same options") {
  LifeOptions options{.duration = 70ms, .clients = 9, .has_journal = false, .operated = true};
  options.until = "client 3 < DELETED";
  options.reductions.left_out = {"client-0", "http-leaver-1"};
  options.reductions.commands = {{"client-2", {.first = 31, .last = 42}},
                                 {"hoarder", {.first = 1, .last = 1}}};
  options.reductions.ends.emplace();
  options.reductions.acts = std::set<std::uint64_t>{3, 17};
  options.reductions.is_calm = true;
  const LifeOptions read = options_in(words_of(options));
  CHECK(read.duration == 70ms);
  CHECK(read.clients == 9);
  CHECK_FALSE(read.has_journal);
  CHECK(read.operated);
  CHECK(read.until == options.until);
  CHECK(read.reductions == options.reductions);
  CHECK(words_of(read) == words_of(options));
  CHECK(words_of(LifeOptions()).empty());
}

TEST_CASE("everything that a problem does not need is omitted") {
  // Two clients, the third end and command 40 of `b 1` cause the problem; everything else only
  // makes events.
  const std::vector<std::string> clients = {"a", "b 1", "c", "d", "e"};
  const auto live = [&clients](const LifeOptions& options) {
    const Reductions& reductions = options.reductions;
    const Range range = reductions.commands_of("b 1");
    const bool fails = !reductions.leaves_out("b 1") && !reductions.leaves_out("d") &&
                       Reductions::keeps(reductions.ends, 3) && range.has(40);
    Ending ending{.problem = fails ? "problem 5" : "", .events = 100};
    for (const std::string& client : clients) {
      if (reductions.leaves_out(client)) continue;
      const Range sent = reductions.commands_of(client);
      ending.events += std::min<std::uint64_t>(sent.last, 50) - sent.first + 1;
    }
    for (std::uint64_t end = 1; end <= 8; ++end)
      ending.events += Reductions::keeps(reductions.ends, end) ? 10 : 0;
    return ending;
  };
  const Shortened shortened = shorten(LifeOptions(), clients, live, 1000);
  const Reductions& reductions = shortened.options.reductions;
  CHECK(reductions.left_out == std::set<std::string>{"a", "c", "e"});
  CHECK(reductions.ends == Kept(std::set<std::uint64_t>{3}));
  CHECK(reductions.commands_of("b 1") == Range{.first = 40, .last = 40});
  CHECK(reductions.is_calm);
  CHECK(shortened.before.events == 430);
  CHECK(shortened.after.events == 100 + 1 + 1 + 10);
  CHECK(shortened.lives < 200);
}

TEST_CASE(
    "a life is not shortened to a life with another problem, nor by more lives than allowed") {
  unsigned lives = 0;
  const auto live = [&lives](const LifeOptions& options) {
    ++lives;
    const bool is_whole = options.reductions.left_out.empty();
    return Ending{.problem = is_whole ? "it is lost" : "it is late", .events = is_whole ? 9U : 3U};
  };
  const Shortened shortened = shorten(LifeOptions(), {"a", "b", "c"}, live, 7);
  CHECK(shortened.options.reductions.left_out.empty());
  CHECK(shortened.after.problem == "it is lost");
  CHECK(lives == 7);
  CHECK(shortened.lives == 7);
}

TEST_CASE("a process that aborts has a problem, and its events count") {
  const Ending aborted = run_apart([](std::uint64_t* events) -> LifeReport {
    *events = 12;
    TUBED_ASSERT(events == nullptr);
    return {};
  });
  CHECK(aborted.problem.find("assertion failed: events == nullptr") != std::string::npos);
  CHECK(aborted.events == 12);
  const Ending left = run_apart([](std::uint64_t*) -> LifeReport { std::_Exit(3); });
  CHECK(left.problem == "the process ends with 3");
  const Ending failed = run_apart([](std::uint64_t*) {
    LifeReport report;
    report.problem = "late";
    return report;
  });
  CHECK(failed.problem == "late");
  CHECK(run_apart([](std::uint64_t*) { return LifeReport(); }).problem.empty());
}

TEST_CASE("a long life becomes short, and its words replay it") {
  constexpr std::uint64_t kSeed = 8;
  const LifeOptions options{.until = "client 5 < TOUCHED_ALL"};
  const Shortened shortened = shorten(kSeed, options, 100);
  CHECK(shortened.before.events > 2000);
  CHECK(shortened.after.events < shortened.before.events / 5);
  CHECK_FALSE(shortened.options.reductions.left_out.contains("client-5"));
  const LifeReport again = live(kSeed, options_in(words_of(shortened.options)));
  CHECK(again.problem == shortened.after.problem);
  CHECK(again.events == shortened.after.events);
}

}  // namespace tubed::simulation
