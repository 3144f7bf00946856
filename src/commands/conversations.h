// Conversations: the open conversations of a service by session, and those that were answered from
// outside their own commands. The server sends the replies of the latter and resumes them.
#pragma once

#include <span>
#include <vector>

#include "facts/types.h"

namespace tubed::commands {

class Conversation;

class Conversations {
 public:
  // Called by conversations.
  void opened(SessionId session, Conversation& conversation);
  void closed(SessionId session) { conversations_[session] = nullptr; }

  // Precondition: the session is open.
  Conversation& at(SessionId session) const { return *conversations_[session]; }
  // By session; null: no open session has this id.
  std::span<Conversation* const> all() const { return conversations_; }

  // The conversation continues if its command has parked it.
  void unpark(SessionId session);
  // The rights of roles have changed: answers each conversation whose wait its role no longer
  // allows. O(waiting * watched * patterns).
  void rights_changed();
  // Conversations that wait in a reserve begin to wait again, in the order of sessions, in a new
  // queue.
  void restart();

  void notify(SessionId session) { notified_.push_back(session); }
  // True: take_notified() would return sessions.
  bool has_notified() const { return !notified_.empty(); }
  // Replaces `sessions` by the sessions notified since the last call. The caller sends their
  // replies and resumes them. A session may have closed since, and its id may belong to another
  // client.
  void take_notified(std::vector<SessionId>& sessions) {
    sessions.clear();
    sessions.swap(notified_);
  }

 private:
  std::vector<Conversation*> conversations_;  // by session
  std::vector<SessionId> notified_;
};

}  // namespace tubed::commands
