#include "server/identities.h"

#include <algorithm>

#include <fmt/format.h>

#include "os/process.h"

namespace tubed::server {

namespace {

std::string token_name(std::string_view name) {
  return fmt::format("token {}", name);
}

Error unknown(const RoleSettings& role, std::string_view kind, const std::string& name) {
  return Error{fmt::format("role {}: no {} {}", role.role.name, kind, name)};
}

}  // namespace

Result<Identities> Identities::load(const Settings& settings) {
  Identities identities;
  for (const RoleSettings& role : settings.roles) {
    const std::string& name = role.role.name;
    for (const std::string& token : role.tokens) identities.by_token_[token] = name;
    for (const std::string& subject : role.subjects) identities.by_subject_[subject] = name;
    for (const std::string& user : role.users) {
      const auto id = os::user_id(user);
      if (!id) return unknown(role, "user", user);
      identities.by_user_[*id] = {.role = name, .name = fmt::format("user {}", user)};
    }
    for (const std::string& group : role.groups) {
      const auto id = os::group_id(group);
      if (!id) return unknown(role, "group", group);
      identities.by_group_[*id] = {.role = name, .name = fmt::format("group {}", group)};
    }
  }
  TRY(identities.load_tokens(settings));
  return identities;
}

Result<void> Identities::load_tokens(const Settings& settings) {
  if (!settings.tokens.empty()) tokens_ = TRY(read_tokens(settings.tokens));
  for (const auto& [token, role] : by_token_) {
    if (std::ranges::find(tokens_, token, &Token::name) != tokens_.end()) continue;
    if (settings.tokens.empty())
      return Error{fmt::format("role {}: tokens needs auth.tokens", role)};
    complaints_.push_back(fmt::format("role {}: no token {} in {}", role, token, settings.tokens));
  }
  for (const Token& token : tokens_) {
    if (by_token_.contains(token.name)) continue;
    complaints_.push_back(
        fmt::format("{}: token {}: no role names it", settings.tokens, token.name));
  }
  return {};
}

std::optional<Identity> Identities::of_token(std::string_view token) const {
  const TokenHash hash = hash_of(token);
  const Token* found = find_token(tokens_, hash);
  if (found == nullptr) return std::nullopt;
  const auto role = by_token_.find(found->name);
  if (role == by_token_.end()) return std::nullopt;
  return Identity{.role = role->second, .name = token_name(found->name), .token = hash};
}

std::optional<Identity> Identities::of_certificate(const loop::TlsPeer& certificate) const {
  const auto identity = [&](const std::string& subject) -> std::optional<Identity> {
    const auto role = by_subject_.find(subject);
    if (role == by_subject_.end()) return std::nullopt;
    return Identity{.role = role->second, .name = fmt::format("certificate {}", subject)};
  };
  for (const std::string& name : certificate.names) {
    if (auto found = identity(name)) return found;
  }
  return identity(certificate.subject);
}

std::optional<Identity> Identities::of_process(const os::PeerCredentials& process) const {
  if (const auto user = by_user_.find(process.user); user != by_user_.end()) return user->second;
  for (const std::uint32_t id : process.groups) {
    if (const auto group = by_group_.find(id); group != by_group_.end()) return group->second;
  }
  return std::nullopt;
}

bool Identities::still_has(const Identity& identity) const {
  const auto has = [&](const Identity& one) { return one == identity; };
  const auto has_value = [&](const auto& entry) { return has(entry.second); };
  if (std::ranges::any_of(by_user_, has_value) || std::ranges::any_of(by_group_, has_value))
    return true;
  for (const auto& [subject, role] : by_subject_) {
    if (has({.role = role, .name = fmt::format("certificate {}", subject)})) return true;
  }
  const Token* token = find_token(tokens_, identity.token);
  if (token == nullptr) return false;
  const auto role = by_token_.find(token->name);
  return role != by_token_.end() &&
         has({.role = role->second, .name = token_name(token->name), .token = token->hash});
}

}  // namespace tubed::server
