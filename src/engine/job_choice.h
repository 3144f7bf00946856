// JobChoice: which ready job a session gets next.
#pragma once

#include "engine/parts.h"

namespace tubed::engine {

class JobChoice {
 public:
  // `parts` outlives it.
  explicit JobChoice(Parts& parts) : parts_(parts) {}

  // Returns the job that the session gets now, or null. O(watched) for a short watch list or with
  // weights, else O(watched tubes that have ready jobs).
  Job* best(const Session& session, Time now);
  // Charges the watch of the session for a job that the tube has given. Precondition: the session
  // reserves with weights. O(watched).
  [[gnu::cold]] void charge(Session& session, const Tube* tube);

  // While false, no tube gives jobs. True at first.
  bool is_giving() const { return giving_; }
  void set_giving(bool giving) { giving_ = giving; }

 private:
  Job* by_priority(const Session& session);
  [[gnu::cold]] Job* unexpired(const Session& session, Time now);
  [[gnu::cold]] Job* by_weight(const Session& session);

  Parts& parts_;
  bool giving_ = true;  // false only if Parts::extended
};

}  // namespace tubed::engine
