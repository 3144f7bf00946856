// Roles: the roles of a simulated server, which reloads change, and clients that have them.
//
// The server has three listeners: one without roles, one that gives its clients a role, and one
// that takes tokens. No role may use the tube of the ledgers, whose jobs its clients name.
//
// Each answer is judged by what the role was allowed between the command and the answer. A command
// that the role was not allowed at any moment of that time is denied, and one that it was allowed
// at each moment is not. A put is judged at the end of its body too.
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

  // Adds listeners, roles and the file of the tokens.
  void add_to(Settings& settings);
  // Gives roles other verbs, tubes and limits, and takes a role away or gives it back.
  void change(Settings& settings, Chance& chance);
  // From now on the server has the roles of these settings.
  void begin(const Settings& settings);

  // Calls visit(role) for each state that the role had since `time`; null: it did not exist.
  template <class Visit>
  void for_each_since(Time time, const std::string& name, const Visit& visit) const {
    const std::vector<State>& states = states_.at(name);
    for (std::size_t i = 0; i < states.size(); ++i) {
      const bool is_over = i + 1 < states.size() && states[i + 1].since < time;
      if (!is_over) visit(states[i].role.get());
    }
  }

  // A client of the listener of the role, or one with a token. `number`: the number of the client.
  std::unique_ptr<Script> client(unsigned number, const std::string& name);

 private:
  struct State {
    Time since;
    std::shared_ptr<const Role> role;
  };

  World& world_;
  Knowledge& known_;
  std::map<std::string, std::vector<State>> states_;  // by the name of the role
};

}  // namespace tubed::simulation
