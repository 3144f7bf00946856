#include "commands/conversations.h"

#include <cstddef>

#include "commands/conversation.h"

namespace tubed::commands {

void Conversations::opened(SessionId session, Conversation& conversation) {
  if (session >= conversations_.size()) conversations_.resize(session + 1);
  conversations_[session] = &conversation;
}

std::vector<SessionId> Conversations::of_removed_roles() const {
  std::vector<SessionId> sessions;
  for (std::size_t id = 0; id < conversations_.size(); ++id) {
    if (conversations_[id] == nullptr) continue;
    const Principal* principal = conversations_[id]->principal();
    const ActiveRole* role = principal == nullptr ? nullptr : principal->role();
    if (role != nullptr && role->removed()) sessions.push_back(static_cast<SessionId>(id));
  }
  return sessions;
}

void Conversations::unpark(SessionId session) {
  Conversation* conversation = conversations_[session];
  if (conversation == nullptr || !conversation->is_parked()) return;
  conversation->unpark();
  notify(session);
}

void Conversations::rights_changed() {
  for (std::size_t id = 0; id < conversations_.size(); ++id) {
    Conversation* conversation = conversations_[id];
    if (conversation != nullptr && conversation->rights_changed()) {
      notify(static_cast<SessionId>(id));
    }
  }
}

void Conversations::restart() {
  for (std::size_t id = 0; id < conversations_.size(); ++id) {
    Conversation* conversation = conversations_[id];
    if (conversation != nullptr && conversation->restart()) notify(static_cast<SessionId>(id));
  }
}

}  // namespace tubed::commands
