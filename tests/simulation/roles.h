// Roles: the roles of a simulated server, which reloads change, and clients with roles.
//
// The server has three listeners: without roles, with a role for its clients, and with tokens. No
// role may use the tube of the ledgers, whose jobs its clients name.
//
// Each answer is judged by the rights of the role between the command and the answer. A command
// that was forbidden at every moment must be denied; a command that was allowed at every moment
// must not be. A put is also judged at the end of its body.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"
#include "tests/simulation/client.h"

namespace tubed::simulation {

class Roles {
 public:
  Roles(World& world, Knowledge& known) : world_(world), known_(known) {}

  // Adds listeners, roles and the token file.
  void add_to(Settings& settings);
  // Changes verbs, tubes and limits of roles, and removes a role or restores it.
  void change(Settings& settings, Chance& chance);
  // The server has the roles of these settings from this moment.
  void begin(const Settings& settings);

  // Calls visit(role) for each state of the role since `time`; null: it did not exist.
  template <class Visit>
  void for_each_since(Time time, const std::string& name, const Visit& visit) const {
    const std::vector<State>& states = states_.at(name);
    for (std::size_t i = 0; i < states.size(); ++i) {
      const bool is_over = i + 1 < states.size() && states[i + 1].since < time;
      if (!is_over) visit(states[i].role.get());
    }
  }

  // Returns a client of the role's listener, or a client with a token. `number` is the client's
  // number.
  std::unique_ptr<Script> client(unsigned number, const std::string& name);

 private:
  struct State {
    Time since;
    std::shared_ptr<const Role> role;
  };

  World& world_;
  Knowledge& known_;
  std::map<std::string, std::vector<State>> states_;  // by role name
};

}  // namespace tubed::simulation
