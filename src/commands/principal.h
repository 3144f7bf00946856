// Principal: on whose behalf a conversation runs commands, and the role that limits them.
// [extension: authentication]
//
// The service has one ActiveRole for each role of the settings. Each conversation with a role has a
// Principal that points to it: a reload changes the rights of all its conversations at once. The
// server decides how a conversation begins (Admission) and compares tokens (Authentication);
// authorization.h decides what a role may do, and audit.h reports what was denied.
//
// A role that is removed from the settings has no rights. It is freed when its last conversation
// has closed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"
#include "facts/role.h"
#include "facts/types.h"

namespace tubed::commands {

// A role of the settings that is in force, and what its clients share.
class ActiveRole {
 public:
  explicit ActiveRole(Role role) : role_(std::move(role)) {}

  // The current rights and limits. A removed role keeps its name, and has no family.
  const Role& role() const { return role_; }
  bool removed() const { return removed_; }
  // How many conversations have the role.
  std::uint32_t conversations() const { return conversations_; }
  // True if limits.connections allows no more conversations.
  bool is_full() const {
    return role_.limits.connections > 0 && conversations_ >= role_.limits.connections;
  }
  // Grows when the rights change.
  std::uint64_t version() const { return version_; }

  // Takes one put from limits.put_rate, which is the number of puts per second and the largest
  // burst. False if all are used. O(1).
  bool take_put(Time now);

 private:
  friend class Roles;

  Role role_;
  bool removed_ = false;
  std::uint32_t conversations_ = 0;
  std::uint64_t version_ = 0;
  Time puts_used_until_ = Time::min();  // when all puts that were taken are free again
};

// The roles in force. Their addresses do not change.
class Roles {
 public:
  // Replaces the values of roles that exist, adds new roles and removes the others. O(roles^2).
  void set(const std::vector<Role>& roles);
  // Returns null if no role has this name, or it was removed.
  ActiveRole* find(std::string_view name);

  // Adds a conversation to the role, or takes it away.
  void join(ActiveRole& role) { ++role.conversations_; }
  void leave(ActiveRole& role);

 private:
  std::vector<std::unique_ptr<ActiveRole>> roles_;
};

// How a conversation begins.
struct Admission {
  // Null: it may do everything; if it takes tokens, nothing before it authenticates. A role counts
  // the conversation even if the role is full.
  ActiveRole* role = nullptr;
  std::string name = {};      // of the client, for the audit: a subject of a certificate, a user
  bool takes_tokens = false;  // the client may send `auth`
};

// The client of a conversation. A conversation that has no role and takes no tokens has no
// principal.
class Principal {
 public:
  Principal(Roles& roles, Admission admission);
  ~Principal();
  Principal(const Principal&) = delete;
  Principal& operator=(const Principal&) = delete;

  // Null: it may do everything, or nothing if it has not authenticated.
  ActiveRole* role() const { return role_; }
  const std::string& name() const { return name_; }
  bool takes_tokens() const { return takes_tokens_; }
  bool authenticated() const { return authenticated_; }

  // A token was right.
  void authenticate(ActiveRole* role, std::string name);
  // Refuses the client: its connection ends after the reply, which is sent at once or, if `later`,
  // by Conversation::refuse().
  void refuse(bool later = false) { refusal_ = later ? Refusal::later : Refusal::at_once; }
  bool is_refused() const { return refusal_ != Refusal::none; }
  bool awaits_refusal() const { return refusal_ == Refusal::later; }

  // Whether the role may use the tube that the session uses, and all tubes that it watches; no
  // value: not known. forget_session_tubes() is called before either may change.
  struct SessionTubes {
    std::optional<bool> used = std::nullopt;
    std::optional<bool> watched = std::nullopt;
  };
  SessionTubes& session_tubes();
  // For the audit: the tube that a command of administrators concerned when it began.
  const std::string& audited_tube() const { return audited_tube_; }
  void set_audited_tube(std::string_view tube) { audited_tube_ = tube; }
  void forget_session_tubes() { session_tubes_ = {}; }

 private:
  enum class Refusal : std::uint8_t { none, at_once, later };

  Roles& roles_;
  ActiveRole* role_;
  std::string name_;
  bool takes_tokens_;
  bool authenticated_;
  Refusal refusal_ = Refusal::none;
  SessionTubes session_tubes_;
  std::string audited_tube_;
  std::uint64_t tubes_version_ = 0;  // of the role for which session_tubes_ is known
};

// The answer to a token.
struct Granted {
  ActiveRole* role = nullptr;  // null: it may do everything
  std::string name = {};       // of the client, for the audit
};
struct Refused {};
// The refusal comes later: the caller then calls Conversation::refuse().
struct RefusedLater {};
using Authentication = std::variant<Granted, Refused, RefusedLater>;

}  // namespace tubed::commands
