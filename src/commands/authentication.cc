#include "commands/conversation.h"

namespace tubed::commands {

using namespace protocol;

Conversation::Conversation(Service& service, Admission admission) : Conversation(service) {
  if (admission.role == nullptr && !admission.takes_tokens) return;
  principal_ = std::make_unique<Principal>(service.roles(), std::move(admission));
}

void Conversation::refuse() {
  TUBED_ASSERT(awaits_refusal_);
  awaits_refusal_ = false;
  replies_.line(word::kUnauthorized);
}

bool Conversation::rights_changed() {
  return false;
}

}  // namespace tubed::commands
