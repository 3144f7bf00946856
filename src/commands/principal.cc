#include "commands/principal.h"

#include <algorithm>

namespace tubed::commands {

// The bucket holds the puts of one second. Each put that is taken comes back after a part of a
// second, one after the other.
bool ActiveRole::take_put(Time now) {
  const std::uint32_t rate = role_.limits.put_rate;
  if (rate == 0) return true;
  constexpr Duration kSecond = std::chrono::seconds(1);
  // Test mode may have set the time back.
  const Time used_until = std::clamp(puts_used_until_, now, now + kSecond);
  const Time next = used_until + kSecond / rate;
  if (next > now + kSecond) return false;
  puts_used_until_ = next;
  return true;
}

void Roles::set(const std::vector<Role>& roles) {
  for (const auto& active : roles_) {
    const auto value = std::ranges::find(roles, active->role_.name, &Role::name);
    active->removed_ = value == roles.end();
    Role role;
    role.name = active->role_.name;
    if (!active->removed_) role = *value;
    if (role == active->role_) continue;
    active->role_ = std::move(role);
    ++active->version_;
  }
  for (const Role& role : roles) {
    if (find(role.name) == nullptr) roles_.push_back(std::make_unique<ActiveRole>(role));
  }
  std::erase_if(roles_,
                [](const auto& active) { return active->removed_ && active->conversations_ == 0; });
}

ActiveRole* Roles::find(std::string_view name) {
  for (const auto& active : roles_) {
    if (!active->removed_ && active->role_.name == name) return active.get();
  }
  return nullptr;
}

void Roles::leave(ActiveRole& role) {
  --role.conversations_;
  if (!role.removed_ || role.conversations_ > 0) return;
  std::erase_if(roles_, [&role](const auto& active) { return active.get() == &role; });
}

Principal::Principal(Roles& roles, Admission admission)
    : roles_(roles),
      role_(admission.role),
      name_(std::move(admission.name)),
      takes_tokens_(admission.takes_tokens),
      authenticated_(role_ != nullptr || !takes_tokens_) {
  if (role_ != nullptr) roles_.join(*role_);
}

Principal::~Principal() {
  if (role_ != nullptr) roles_.leave(*role_);
}

void Principal::authenticate(ActiveRole* role, std::string name) {
  if (role != nullptr) roles_.join(*role);
  if (role_ != nullptr) roles_.leave(*role_);
  role_ = role;
  name_ = std::move(name);
  authenticated_ = true;
  forget_session_tubes();
}

Principal::SessionTubes& Principal::session_tubes() {
  const std::uint64_t version = role_ == nullptr ? 0 : role_->version();
  if (version != tubes_version_) forget_session_tubes();
  tubes_version_ = version;
  return session_tubes_;
}

}  // namespace tubed::commands
