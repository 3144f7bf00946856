// Units of facts: a cause that emits several facts about one job brackets them, and a command about
// many jobs is a sequence of units (docs/ARCHITECTURE.md, "Units of facts").
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>

#include "base/overloaded.h"
#include "engine/engine.h"

namespace tubed::engine {

namespace {

using namespace std::chrono_literals;

constexpr std::string_view kDeadTube = "dead";

// Writes the kinds of facts as words, and a unit in parentheses. A notice is a `!`.
class Brackets final : public Output {
 public:
  void fact(const Fact& fact) override {
    word(std::visit(
        Overloaded{
            [](const Added&) { return "added"; }, [](const Placed&) { return "placed"; },
            [](const Removed&) { return "removed"; }, [](const Paused&) { return "paused"; },
            [](const Flushed&) { return "flushed"; }, [](const AddedWithTags&) { return "added"; },
            [](const Remembered&) { return "remembered"; }, [](const Moved&) { return "moved"; },
            [](const PlacedWithMarks&) { return "placed"; },
            [](const PolicySet&) { return "policy"; }, [](const Held&) { return "held"; },
            [](const Applied&) { return "applied"; }},
        fact));
  }
  void begin_unit() override {
    CHECK_FALSE(in_unit_);
    in_unit_ = true;
    word("(");
  }
  void end_unit() override {
    CHECK(in_unit_);
    in_unit_ = false;
    word(")");
  }
  void notice(const Notice& /*notice*/) override {
    CHECK_FALSE(in_unit_);  // its reply waits for the facts so far
    word("!");
  }

  std::string take() {
    CHECK_FALSE(in_unit_);
    return std::exchange(text_, {});
  }

 private:
  void word(std::string_view word) {
    if (!text_.empty()) text_ += ' ';
    text_ += word;
  }

  bool in_unit_ = false;
  std::string text_;
};

struct Queue {
  Engine engine{Limits{}};
  Brackets out;
  Time now{1h};
  SessionId session = engine.open();

  JobId put(std::string_view tube, const JobTags& tags = {}) {
    REQUIRE(engine.memory().claim(tags_memory(tags)));
    const PutRequest request{.priority = 9, .delay = {}, .ttr = {60}, .body = {}};
    const auto result = engine.put_with_tags(now, tube, request, tags, out);
    return result.value().id;
  }
  JobId put_with_key(std::string_view tube, std::uint32_t cooldown = 9) {
    return put(tube, {.unique_key = "key", .cooldown = {cooldown}});
  }
  // From now on the key has a cooldown in the tube, which has ended, though no fact says so.
  void let_cooldown_end(std::string_view tube) {
    REQUIRE(engine.remove(session, now, put_with_key(tube, 1), out));
    now += 2s;
    out.take();
  }
  void set(PolicyKey key, std::string_view value, std::string_view tube = "a") {
    REQUIRE(engine.set_policy(now, tube, key, value, out));
  }
  void reserve(JobId job) {
    REQUIRE(engine.reserve_job(session, now, job));
    out.take();
  }
  std::string remove(JobId job) {
    out.take();
    REQUIRE(engine.remove(session, now, job, out));
    return out.take();
  }
  std::string release(JobId job) {
    reserve(job);
    REQUIRE(engine.release(session, now, job, 0, {}, out));
    return out.take();
  }
  std::string move(JobId job, std::string_view tube, bool placed) {
    out.take();
    std::optional<NewPlace> place;
    if (placed) place = {.priority = 5, .delay = {}};
    CHECK(engine.tube_moves().move(session, now, job, tube, place, out) == MoveResult::moved);
    return out.take();
  }
  std::string advance(Duration by) {
    out.take();
    now += by;
    engine.advance(now, out);
    return out.take();
  }
};

}  // namespace

TEST_CASE("one fact is no unit") {
  Queue queue;
  REQUIRE(queue.engine.memory().claim(0));
  const PutRequest plain{.priority = 0, .delay = {}, .ttr = {60}, .body = {}};
  const JobId job = queue.engine.put(queue.session, queue.now, plain, queue.out);
  CHECK(queue.out.take() == "added");
  CHECK(queue.release(job) == "placed");
  CHECK(queue.remove(job) == "removed");
  const JobId tagged = queue.put_with_key("a", 0);
  CHECK(queue.out.take() == "added");
  CHECK(queue.remove(tagged) == "removed");
}

TEST_CASE("a job is deleted in one unit with the cooldown of its key") {
  Queue queue;
  CHECK(queue.remove(queue.put_with_key("a")) == "( removed remembered )");
  const JobId forced = queue.put_with_key("b");
  queue.out.take();
  REQUIRE(queue.engine.remove_held(queue.now, forced, queue.out));
  CHECK(queue.out.take() == "( removed remembered )");
}

TEST_CASE("a job is put in one unit with the end of a cooldown of its key") {
  Queue queue;
  queue.let_cooldown_end("a");
  queue.put_with_key("a");
  CHECK(queue.out.take() == "( removed added )");
}

TEST_CASE("a dead job goes to another tube in one unit") {
  Queue queue;
  queue.set(PolicyKey::max_attempts, "1");
  queue.set(PolicyKey::dead, kDeadTube);
  CHECK(queue.release(queue.put("a")) == "( placed moved )");
  queue.let_cooldown_end(kDeadTube);
  const JobId job = queue.put_with_key("a");
  const SessionId waiting = queue.engine.open();
  queue.reserve(job);
  queue.engine.wait_for_job(waiting, queue.now, job, {.limit = 60s});
  REQUIRE(queue.engine.release(queue.session, queue.now, job, 0, {}, queue.out));
  CHECK(queue.out.take() == "( removed placed moved ) !");
  queue.reserve(queue.put("a"));
  CHECK(queue.advance(60s) == "( placed moved )");
  queue.set(PolicyKey::dead, "delete");
  CHECK(queue.release(queue.put_with_key("a")) == "( removed remembered )");
  queue.set(PolicyKey::dead, "bury");
  CHECK(queue.release(queue.put("a")) == "placed");
}

TEST_CASE("an expired job goes to another tube in one unit") {
  Queue queue;
  queue.set(PolicyKey::ttl, "5");
  queue.set(PolicyKey::expired, kDeadTube);
  queue.put("a");
  queue.put("a");
  CHECK(queue.advance(5s) == "( placed moved ) ( placed moved )");
}

TEST_CASE("each job of a closed session is a unit") {
  Queue queue;
  queue.set(PolicyKey::max_attempts, "1");
  queue.set(PolicyKey::dead, kDeadTube);
  const JobId first = queue.put("a");
  const JobId second = queue.put("a");
  const JobId third = queue.put("b");
  for (const JobId job : {first, second, third}) queue.reserve(job);
  queue.engine.close(queue.session, queue.now, queue.out);
  CHECK(queue.out.take() == "( placed moved ) ( placed moved ) placed");
}

TEST_CASE("a job is moved in one unit with its new place") {
  Queue queue;
  const JobId job = queue.put_with_key("a");
  CHECK(queue.move(job, "b", true) == "( placed moved )");
  CHECK(queue.move(job, "b", true) == "placed");
  queue.reserve(job);
  CHECK(queue.move(job, "a", false) == "( placed moved )");
  queue.let_cooldown_end("b");
  CHECK(queue.move(job, "b", false) == "( removed moved )");
  queue.let_cooldown_end("a");
  CHECK(queue.move(job, "a", true) == "( removed placed moved )");
}

TEST_CASE("each job of move-jobs is a unit") {
  Queue queue;
  for (int i = 0; i < 2; ++i) {
    const JobId job = queue.put("a");
    queue.reserve(job);
    REQUIRE(queue.engine.bury(queue.session, queue.now, job, 0, queue.out));
  }
  queue.out.take();
  Slices move = queue.engine.queries().slices("a", JobState::buried, 2);
  CHECK(queue.engine.tube_moves().move_slice(queue.now, move, "b", queue.out) == 2);
  CHECK(queue.out.take() == "( placed moved ) ( placed moved )");
}

TEST_CASE("a reserved job gets another priority in one unit with its reservation") {
  Queue queue;
  queue.engine.recorded_reservations().record_to(&queue.out);
  const JobId job = queue.put_with_key("a");
  queue.reserve(job);
  queue.put_with_key("a");
  CHECK(queue.out.take().empty());  // it is no more urgent
  REQUIRE(queue.engine.tube_moves().reprioritize(job, 4, queue.out) == false);
  const JobTags tags{.unique_key = "key", .cooldown = {9}};
  REQUIRE(queue.engine.memory().claim(tags_memory(tags)));
  const PutRequest urgent{.priority = 1, .delay = {}, .ttr = {60}, .body = {}};
  REQUIRE(queue.engine.put_with_tags(queue.now, "a", urgent, tags, queue.out));
  CHECK(queue.out.take() == "( placed held )");
}

// A crash may come between the facts: a queue that is recovered makes the jobs ready all the same
// (tests/engine/groups_test.cc).
TEST_CASE("the end of a group is a sequence") {
  Queue queue;
  const JobId member = queue.put("a", {.group = "all"});
  queue.put("b", {.after = "all"});
  queue.put("b", {.after = "all"});
  CHECK(queue.remove(member) == "removed placed placed");
}

}  // namespace tubed::engine
