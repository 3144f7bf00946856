#include "cluster/replica.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/planted.h"
#include "journal/record.h"

namespace tubed::cluster {

// Passes the facts of an entry to the engine and the journal.
class Replica::Feed final : public FactSink {
 public:
  Feed(Replica& replica, Time time, bool replay)
      : replica_(replica), time_(time), replay_(replay) {}

  void fact(const Fact& fact) override {
    if (replay_) replica_.engine_.replay(time_, fact);
    replica_.journal_.fact(fact);
  }

 private:
  Replica& replica_;
  Time time_;
  bool replay_;
};

Replica::Replica(ReplicaHost& host, Node& node, journal::Journal& journal, engine::Engine& engine,
                 const Applied& base, const Options& options)
    : host_(host),
      node_(node),
      journal_(journal),
      engine_(engine),
      options_(options),
      applied_(base) {
  engine_.recorded_reservations().record_to(&nothing_);
}

void Replica::fail(const std::string& reason) {
  serving_ = false;
  if (!std::exchange(ended_, true)) host_.replica_failed(reason);
}

bool Replica::advance() {
  if (ended_) return false;
  notice_leadership();
  std::uint32_t budget = options_.entries_per_call;
  while (!ended_ && applied_.index < node_.applicable() && !is_held_back()) {
    if (budget-- == 0) break;
    if (!apply(applied_.index + 1)) return false;
    if (leading_ != 0 && applied_.index == begins_ && !serving_) serve();
  }
  if (ended_) return false;
  const Index committed =
      TUBED_PLANTED(gate_opens_at_local_sync) ? node_.log().stored() : node_.committed();
  if (serving_) log_->committed(committed);
  raise_level();
  cut();
  return applied_.index < node_.applicable() && !is_held_back();
}

// On a serving node compaction describes jobs of an engine that is ahead of the journal by the
// entries not yet applied. So this does not wait for compaction there; the clients do.
bool Replica::is_held_back() const {
  return serving_ ? journal_.overloaded() : journal_.congested();
}

// --- Leadership

void Replica::notice_leadership() {
  const bool leads = node_.leads();
  if (leading_ != 0 && (!leads || node_.term() != leading_ || node_.is_stranded())) {
    leading_ = begins_ = raises_ = 0;
    if (std::exchange(serving_, false) && !TUBED_PLANTED(no_undo)) {
      ended_ = true;
      return host_.start_again();
    }
  }
  if (leads && leading_ == 0 && begin_term()) leading_ = node_.term();
}

bool Replica::begin_term() {
  const Time now = host_.clock();
  node_.time().lead(now, host_.wall(), newest_time());
  EntryWriter writer;
  writer.use_ids_below(engine_.queries().next_id());
  begins_ = node_.log().last() + 1;
  return submit(writer, node_.level());
}

// Appends an entry that is to be read by nodes with this level. Returns false if the node cannot.
bool Replica::submit(EntryWriter& writer, Level level) {
  return node_.submit({writer.finish({.level = level,
                                      .time = node_.time().at(host_.clock()),
                                      .chain = node_.chains().tail(),
                                      .leader = node_.id()})}) != 0;
}

// O(1) if this node knows no higher level than that in use.
void Replica::raise_level() {
  if (!serving_ || node_.level() >= node_.known_level() || raises_ != 0 || !node_.can_submit())
    return;
  const Level common = node_.common_level();
  if (common <= node_.level()) return;
  EntryWriter writer;
  writer.use_ids_below(engine_.queries().next_id());
  const Index index = node_.log().last() + 1;
  if (submit(writer, common)) raises_ = index;
}

// Returns the time of the newest entry of facts, applied or not; 1970 if no entry has facts.
Time Replica::newest_time() const {
  for (Index i = node_.log().last(); i >= node_.log().first(); --i) {
    if (node_.log().at(i).type != EntryType::facts) continue;
    const auto header = read_entry_header(node_.log().at(i).data.view(), node_.known_level());
    return header ? header->time : Time();
  }
  return Time();
}

void Replica::serve() {
  log_ = std::make_unique<ReplicatedLog>(node_, journal_,
                                         [this] { return node_.time().at(host_.clock()); });
  const Time clock = node_.time().at(host_.clock());
  engine_.end_replay();
  const Duration grace =
      TUBED_PLANTED(hold_dropped_at_promotion) ? Duration::zero() : options_.hold_grace;
  engine_.recorded_reservations().hold_over(clock + grace);
  engine_.recorded_reservations().record_to(log_.get());
  serving_ = true;
  host_.begin_serving();
}

// --- Applying

bool Replica::apply(Index index) {
  const Entry& entry = node_.log().at(index);
  const Applied next{.index = index, .term = entry.term, .chain = node_.chains().at(index)};
  if (entry.type == EntryType::facts) {
    const std::string_view text = entry.data.view();
    const auto header = read_entry_header(text, node_.known_level());
    if (!header) {
      fail(unreadable(index, text));
      return false;
    }
    if (header->chain != applied_.chain) {
      fail(fmt::format("this replica differs from the cluster before entry {}", index));
      return false;
    }
    if (!TUBED_PLANTED(applied_outside_its_batch))
      journal_.make_room(fact_bytes(text) + journal::record_bytes(next));
    if (!take_level(header->level)) return false;
    Feed feed(*this, header->time, !serving_);
    if (!read_facts(text, feed, node_.known_level())) {
      fail(fmt::format("entry {} is damaged", index));
      return false;
    }
    applied_time_ = header->time;
  }
  journal_.fact(next);
  applied_ = next;
  unsynced_.push_back({.end = journal_.appended(), .index = index});
  return true;
}

std::string Replica::unreadable(Index index, std::string_view entry) const {
  const Level level = level_of_entry(entry);
  if (level <= node_.known_level())
    return fmt::format("entry {} is of a later version of tubed, or damaged", index);
  return fmt::format(
      "entry {} has feature level {}, and this version of tubed knows only {}: start "
      "a later version",
      index, level, node_.known_level());
}

// An entry of this level is applied next.
bool Replica::take_level(Level level) {
  const Level former = node_.level();
  if (level <= former) return true;
  raises_ = 0;
  if (!node_.raise_level(level)) return false;
  host_.level_risen(former, level);
  return true;
}

bool Replica::is_settled(JobId id) {
  if (TUBED_PLANTED(compaction_ahead_of_commit)) return true;
  return log_ == nullptr || (serving_ && log_->is_settled(id));
}

void Replica::cut() {
  const Lsn synced = TUBED_PLANTED(cut_before_sync) ? journal_.appended() : journal_.synced();
  Index position = 0;
  for (; !unsynced_.empty() && unsynced_.front().end <= synced; unsynced_.pop_front())
    position = unsynced_.front().index;
  if (position > 0) node_.journal_synced(position);
}

}  // namespace tubed::cluster
