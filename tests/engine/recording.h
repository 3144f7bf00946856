// Recording: an Output that stores facts and notices, as owned copies and as lines of text.
//
// It writes one line for each fact or notice, in order. Two lines are equal exactly if the facts or
// notices are equal, so tests compare text and print readable differences.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "facts/output.h"
#include "facts/owned_fact.h"

namespace tubed::engine {

using Lines = std::vector<std::string>;

std::string describe(Time time);
std::string describe(const Placement& place);
std::string describe(const JobCounters& counters);  // only what is not 0
std::string describe(const JobMarks& marks);
std::string describe(const Fact& fact);
std::string describe(const Notice& notice);
std::string describe(const Retirement& retirement);

// A copy of a fact that owns its texts, and the time at which it was emitted.
class RecordedFact {
 public:
  RecordedFact(const Fact& fact, Time emitted_at) : emitted_at_(emitted_at), fact_(fact) {}

  Time emitted_at() const { return emitted_at_; }
  // Valid as long as this object.
  Fact fact() const { return fact_.fact(); }

 private:
  Time emitted_at_;
  OwnedFact fact_;
};

class Recording final : public Output {
 public:
  void fact(const Fact& fact) override;
  void notice(const Notice& notice) override;
  void retired(const Retirement& retirement) override;

  // Sets the time of the facts that are emitted next.
  void set_time(Time now) { now_ = now; }

  // All facts since the start, or since clear_log().
  const std::deque<RecordedFact>& log() const { return log_; }
  void clear_log() { log_.clear(); }

  // The lines since the last take: all lines, or the lines of one kind.
  Lines take();
  Lines take_facts() { return std::exchange(facts_, {}); }
  Lines take_notices() { return std::exchange(notices_, {}); }
  // Retirements are in no other list.
  Lines take_retirements() { return std::exchange(retirements_, {}); }

 private:
  Time now_;
  std::deque<RecordedFact> log_;
  Lines lines_;
  Lines facts_;
  Lines notices_;
  Lines retirements_;
};

}  // namespace tubed::engine
