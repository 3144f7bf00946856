#include "commands/conversations.h"

#include <cstddef>

#include "commands/conversation.h"

namespace tubed::commands {

void Conversations::opened(SessionId session, Conversation& conversation) {
  if (session >= conversations_.size()) conversations_.resize(session + 1);
  conversations_[session] = &conversation;
}

void Conversations::unpark(SessionId session) {
  Conversation* conversation = conversations_[session];
  if (conversation != nullptr && conversation->command().unpark()) notify(session);
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
