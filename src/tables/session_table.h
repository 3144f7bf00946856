// SessionTable: owns every session and finds it by id.
//
// A session is open, or closed with jobs that it still has to give back, or free. Ids are dense.
// The id of a session is reused only after the session is free, so an id names one session at a
// time.
#pragma once

#include <memory>
#include <vector>

#include "tables/job.h"

namespace tubed::engine {

class SessionTable {
 public:
  SessionTable() { past_.past = true; }

  // A new open session. It gets the id that was freed last or, if no id is free, the next id.
  // O(1) amortised.
  Session& open() {
    if (free_ids_.empty()) {
      free_ids_.push_back(static_cast<SessionId>(sessions_.size()));
      sessions_.push_back(std::make_unique<Session>());
    }
    const SessionId id = free_ids_.back();
    free_ids_.pop_back();
    Session& session = *sessions_[id];
    session.id = id;
    session.open = true;
    return session;
  }

  // Precondition: the session is open. O(1).
  [[gnu::always_inline]] Session& at(SessionId id) {
    TUBED_ASSERT(id < sessions_.size() && sessions_[id]->open);
    return *sessions_[id];
  }
  const Session& at(SessionId id) const {
    TUBED_ASSERT(id < sessions_.size() && sessions_[id]->open);
    return *sessions_[id];
  }

  // Closes an open session. It stays in the table until free_closing() is called for it.
  void close(Session& session) {
    session.open = false;
    closing_.push_back(&session);
  }
  bool has_closing() const { return !closing_.empty(); }
  // The session that was closed last and is not free yet. Precondition: has_closing().
  Session& closing() { return *closing_.back(); }
  // Frees that session and its id. Precondition: it holds no jobs.
  void free_closing() {
    Session& session = closing();
    TUBED_ASSERT(session.held.empty());
    free_ids_.push_back(session.id);
    session = Session();
    closing_.pop_back();
  }

  // The session of the past (engine/recorded_reservations.h). It has no id and is never open.
  Session& past() { return past_; }
  const Session& past() const { return past_; }

  // Calls visit(const Session&) for each session, whatever its state, in the order of ids, without
  // the session of the past.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& session : sessions_) visit(*session);
  }

 private:
  std::vector<std::unique_ptr<Session>> sessions_;  // by id
  std::vector<SessionId> free_ids_;
  std::vector<Session*> closing_;
  Session past_;
};

}  // namespace tubed::engine
