#include "access/identities.h"

#include <algorithm>

#include <fmt/format.h>
#include <openssl/objects.h>

#include "base/planted.h"
#include "os/process.h"

namespace tubed::access {

namespace {

std::string token_name(std::string_view name) {
  return fmt::format("token {}", name);
}

// True for an alternative name, or a subject in the form of RFC 2253, which openssl prints without
// a blank after a comma. No certificate has a subject in another spelling.
bool is_subject(const std::string& text) {
  for (const std::string_view prefix : {"DNS:", "email:", "URI:"}) {
    if (text.starts_with(prefix)) return text.size() > prefix.size();
  }
  const auto is_type = [](const std::string& type) {
    return !type.empty() && (OBJ_sn2nid(type.c_str()) != NID_undef ||
                             type.find_first_not_of("0123456789.") == std::string::npos);
  };
  std::string type;
  bool in_value = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!in_value && c == '=') {
      if (!is_type(type)) return false;
      type.clear();
      in_value = true;
    } else if (!in_value) {
      type += c;
    } else if (c == '\\') {
      ++i;
    } else if (c == ',' || c == '+') {
      in_value = false;
    }
  }
  return in_value;
}

// Gives the user or group `id` the role. An error if it already has a role by another name.
Result<void> add(std::map<std::uint32_t, serving::ClientIdentity>& roles, std::uint32_t id,
                 const std::string& role, std::string_view kind, const std::string& name) {
  const auto [found, added] = roles.emplace(
      id, serving::ClientIdentity{.role = role, .name = fmt::format("{} {}", kind, name)});
  if (added) return {};
  if (TUBED_PLANTED(last_role_of_a_user)) {
    found->second.role = role;
    return {};
  }
  return Error{fmt::format("role {}: {} {} is {}, which is in the role {} already", role, kind,
                           name, found->second.name, found->second.role)};
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
    for (const std::string& subject : role.subjects) {
      if (!is_subject(subject)) {
        return Error{fmt::format(
            "role {}: subjects: {} is the subject of no certificate: expected it as openssl x509 "
            "-subject -nameopt RFC2253 prints it, or DNS:NAME, email:ADDRESS or URI:URI",
            name, subject)};
      }
      identities.by_subject_[subject] = name;
    }
    for (const std::string& user : role.users) {
      const auto id = os::user_id(user);
      if (!id) return unknown(role, "user", user);
      TRY(add(identities.by_user_, *id, name, "user", user));
    }
    for (const std::string& group : role.groups) {
      const auto id = os::group_id(group);
      if (!id) return unknown(role, "group", group);
      TRY(add(identities.by_group_, *id, name, "group", group));
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

std::optional<serving::ClientIdentity> Identities::of_token(std::string_view token) const {
  const serving::TokenHash hash = hash_of(token);
  const Token* found = find_token(tokens_, hash);
  if (found == nullptr) return std::nullopt;
  const auto role = by_token_.find(found->name);
  if (role == by_token_.end()) return std::nullopt;
  return serving::ClientIdentity{
      .role = role->second, .name = token_name(found->name), .token = hash};
}

std::optional<serving::ClientIdentity> Identities::of_certificate(
    const loop::TlsPeer& certificate) const {
  const auto identity = [&](const std::string& subject) -> std::optional<serving::ClientIdentity> {
    const auto role = by_subject_.find(subject);
    if (role == by_subject_.end()) return std::nullopt;
    return serving::ClientIdentity{.role = role->second,
                                   .name = fmt::format("certificate {}", subject)};
  };
  for (const std::string& name : certificate.names) {
    if (auto found = identity(name)) return found;
  }
  return identity(certificate.subject);
}

std::optional<serving::ClientIdentity> Identities::of_process(
    const os::PeerCredentials& process) const {
  if (const auto user = by_user_.find(process.user); user != by_user_.end()) return user->second;
  std::optional<serving::ClientIdentity> identity;
  for (const std::uint32_t id : process.groups) {
    const auto group = by_group_.find(id);
    if (group == by_group_.end()) continue;
    if (identity && identity->role != group->second.role &&
        !TUBED_PLANTED(first_role_of_the_groups))
      return std::nullopt;
    if (!identity) identity = group->second;
  }
  return identity;
}

bool Identities::still_has(const serving::ClientIdentity& identity) const {
  const auto has = [&](const serving::ClientIdentity& one) { return one == identity; };
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

}  // namespace tubed::access
