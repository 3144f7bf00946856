// Admin: the socket of a node's operators, over HTTP.
//
// Each call opens a connection, so a restart of the node between two calls is no failure. A Failure
// has the exit code of tubectl and a line for the user.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/time.h"
#include "client/address.h"
#include "tubectl/cluster/state.h"
#include "tubectl/options.h"

namespace tubed::tubectl::cluster {

inline constexpr const char* kDefaultAdmin = "unix:/run/tubed/admin";

// The option that assigns the address as text.
template <auto kAdmin>
constexpr OptionRow admin_option() {
  return option<kAdmin>({.names = "--admin",
                         .type = kUnixSocket,
                         .help = "The node's cluster.admin: unix:PATH or an absolute path",
                         .shows_default = true,
                         .env = "TUBED_ADMIN"});
}

struct Failure {
  int code = 0;
  std::string reason;
  // The node did not answer, or has no state to report at the moment; a later attempt may succeed.
  bool may_pass = false;
  // No process listens at the address, or it has closed the connection.
  bool is_gone = false;
};

template <class T>
using Outcome = std::variant<T, Failure>;

class Admin {
 public:
  // Precondition: the option's type accepts `address`.
  explicit Admin(const std::string& address);

  // Returns the document of GET /cluster, which is the state of a cluster. `most` bounds the wait
  // for the answer.
  Outcome<std::string> document(Duration most) const;
  Outcome<State> look(Duration most) const;
  // POST /cluster/ACTION. Succeeds when the leader has accepted the change.
  Outcome<std::monostate> change(std::string_view action, const std::string& json,
                                 Duration most) const;

 private:
  Outcome<std::string> ask(std::string_view method, const std::string& path,
                           const std::string& json, Duration most) const;

  client::Address address_;
};

}  // namespace tubed::tubectl::cluster
