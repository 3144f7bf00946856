#include "tests/journal/journaled_queue.h"

#include <fmt/format.h>

#include "engine/replay.h"
#include "journal/restorer.h"
#include "tests/engine/recording.h"

namespace tubed::journal {

namespace {

class StateText final : public FactSink {
 public:
  void fact(const Fact& fact) override {
    if (const Added* added = added_in(fact)) {
      const Placement& place = added->place;
      const JobCounters& counts = added->counters;
      text += fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {}\n", added->id, added->tube,
                          added->ttr.count, added->created.time_since_epoch().count(),
                          name_of(place.state), place.priority, place.delay.count,
                          place.until.time_since_epoch().count(), place.bury_order, counts.reserves,
                          counts.timeouts, counts.releases, counts.buries, counts.kicks,
                          added->body.view());
      if (const auto* tagged = std::get_if<AddedWithTags>(&fact)) {
        text += fmt::format("tags {}{}\n", text_of(tagged->tags), engine::describe(tagged->marks));
      }
    } else if (const auto* policy = std::get_if<PolicySet>(&fact)) {
      text += fmt::format("policy {} {} {}\n", policy->tube, policy->key, policy->value);
    } else if (const auto* removed = std::get_if<Removed>(&fact)) {
      text += fmt::format("used {}\n", removed->id);
    } else if (const auto* paused = std::get_if<Paused>(&fact)) {
      text += fmt::format("paused {} {} {}\n", paused->tube, paused->duration.count,
                          paused->until.time_since_epoch().count());
    } else if (const auto* held = std::get_if<Held>(&fact)) {
      text += fmt::format("held {} {}\n", held->id, held->until.time_since_epoch().count());
    } else if (const auto* key = std::get_if<Remembered>(&fact)) {
      text += fmt::format("remembered {} {} {} {}\n", key->id, key->tube, key->key,
                          key->until.time_since_epoch().count());
    }
  }
  std::string text;
};

}  // namespace

Result<std::unique_ptr<JournaledQueue>> JournaledQueue::open(TestDisk& disk,
                                                             const Settings& settings) {
  std::unique_ptr<JournaledQueue> queue(new JournaledQueue(disk));
  engine::Replay replay(queue->engine_, queue->now_);
  Restorer restorer(replay);
  auto found = examine(disk, settings.clock, restorer, nullptr);
  if (!found) return found.error();
  if (auto repaired = repair(disk, *found); !repaired) return repaired.error();
  queue->found_ = *found;
  queue->clock_ = settings.clock;
  restorer.finish(*found);
  auto journal = Journal::open(disk, *queue, options(settings), std::move(*found));
  if (!journal) return journal.error();
  queue->journal_ = std::move(*journal);
  if (settings.reservations) queue->engine_.recorded_reservations().record_to(queue.get());
  queue->session_ = queue->engine_.open();
  return queue;
}

Options JournaledQueue::options(const Settings& settings) {
  return {.sync = settings.sync,
          .segment_bytes = settings.segment_bytes,
          .max_bytes = settings.max_bytes,
          .directory = 7,
          .clock = settings.clock,
          .reservations = settings.reservations};
}

void JournaledQueue::pass(Duration duration) {
  now_ += duration;
  engine_.advance(now_, *this);
  settle();
}

void JournaledQueue::settle() {
  do {
    moved_ = false;
    while (journal_->flush()) {
    }
    disk_.run_all();
  } while (moved_ && !failed());
}

JobId JournaledQueue::put(std::size_t body_bytes, Priority priority, Seconds delay) {
  return put_body(std::string(body_bytes, 'b'), priority, delay);
}

JobId JournaledQueue::put_body(const std::string& body, Priority priority, Seconds delay) {
  TUBED_ASSERT(engine_.memory().claim(static_cast<std::uint32_t>(body.size())));
  return engine_.put(
      session_, now_,
      {.priority = priority, .delay = {delay}, .ttr = Seconds{60}, .body = Bytes::copy_of(body)},
      *this);
}

JobId JournaledQueue::reserve() {
  reserved_ = 0;
  if (const auto given = engine_.reserve(session_, now_, {.limit = Duration::zero()})) {
    notice(*given);
  }
  engine_.advance(now_, *this);
  return reserved_;
}

void JournaledQueue::notice(const engine::Notice& notice) {
  if (notice.kind == engine::Notice::Kind::reserved) reserved_ = notice.job;
}

std::string JournaledQueue::state() {
  StateText state;
  engine_.durable_state().visit(now_, state);
  return state.text;
}

}  // namespace tubed::journal
