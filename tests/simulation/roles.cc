#include "tests/simulation/roles.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "access/tokens.h"
#include "tests/simulation/machine.h"
#include "text/numbers.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

namespace {

constexpr std::uint16_t kRolePort = 11301;
constexpr std::uint16_t kTokenPort = 11302;
constexpr std::string_view kListenerRole = "shop";
constexpr std::string_view kTokenRole = "web";
constexpr std::string_view kToken = "token-of-the-web";
constexpr std::string_view kTokenFile = "tokens";

Listen listener(std::uint16_t port) {
  Listen listen;
  listen.port = port;
  return listen;
}

// Changes the verbs and tubes of a role. The names of tubes are those in commands.cc.
void change_rights(Role& role, Chance& chance) {
  const auto any = [&chance](bool& verb) {
    if (chance.percent(25)) verb = chance.percent(75);
  };
  any(role.produce);
  any(role.work);
  any(role.inspect);
  any(role.admin);
  if (!role.produce && !role.work && !role.inspect && !role.admin) role.produce = true;
  static const std::array<std::vector<std::string>, 5> kTubesOfRoles = {
      {{"default"}, {"default", "a"}, {"default", "a", "b"}, {"?"}, {"b", "default"}}};
  if (chance.percent(30)) role.tubes = chance.one_of(kTubesOfRoles);
  RoleLimits& limits = role.limits;
  const auto limit = [&chance](auto& number, const auto& values) {
    if (chance.percent(15)) number = chance.one_of(values);
  };
  limit(limits.connections, std::array<std::uint32_t, 3>{0, 0, 1});
  limit(limits.job_bytes, std::array<std::uint32_t, 2>{0, 15});
  limit(limits.put_rate, std::array<std::uint32_t, 3>{0, 20, 1000});
  limit(limits.job_memory, std::array<std::uint64_t, 2>{0, 10'000});
  limit(limits.tubes, std::array<std::uint64_t, 2>{0, 3});
  limit(limits.policies, std::array<std::uint64_t, 2>{0, 1});
}

RoleSettings role_named(std::string_view name) {
  RoleSettings made;
  made.role.name = name;
  made.role.produce = made.role.work = made.role.inspect = made.role.admin = true;
  made.role.tubes = {"default", "a", "b"};
  if (name == kTokenRole) made.tokens = {std::string(kTokenRole)};
  return made;
}

// The decision on a command by its row and the rights of the role.
enum class Right : std::uint8_t { allowed, denied };

class RoleClient final : public Script {
 public:
  RoleClient(World& world, Knowledge& known, const Roles& roles, std::string_view role,
             const std::string& name)
      : world_(world),
        known_(known),
        roles_(roles),
        role_(role),
        has_token_(role == kTokenRole),
        name_(name),
        chance_(world.seed(), name + " role") {}

  std::uint16_t port() const override { return has_token_ ? kTokenPort : kRolePort; }

  std::vector<MadeCommand> first(Chance& chance) override {
    used_ = "default";
    watched_ = {"default"};
    std::vector<MadeCommand> commands = Script::first(chance);
    // Has only one possible reply, which shows that the connection is not refused.
    MadeCommand before{.row = commands::find_command("set-caps"), .line = "set-caps 1"};
    if (has_token_) {
      has_wrong_token_ = chance_.percent(5);
      before = {.row = &commands::auth_command(),
                .line = fmt::format("auth {}{}", kToken, has_wrong_token_ ? "x" : ""),
                .waits = 6s};
    }
    commands.insert(commands.begin(), std::move(before));
    return commands;
  }

  std::vector<MadeCommand> next(std::size_t unanswered) override {
    if (unanswered > 3) return {};
    MadeCommand made = make_command(chance_, known_);
    if (made.row->name == "quit") return {};
    if (made.row->concerns == commands::Concerns::job && chance_.percent(50)) {
      if (const auto id = a_hidden_id()) made = name_job(made, *id);
    }
    made.is_slow = made.row->begin_body != nullptr && chance_.percent(40);
    return {std::move(made)};
  }

  bool may_also_answer(const MadeCommand&, std::string_view word) const override {
    return word == "DENIED" || (has_token_ && word == "UNAUTHORIZED");
  }
  bool may_be_refused() const override { return true; }

  void answered(const MadeCommand& command, std::string_view line) override {
    const std::string_view word = line.substr(0, line.find(' '));
    if (word == "UNAUTHORIZED") return check_token(command);
    judge(command, line, word);
    const std::string text =
        command.line.substr(std::min(command.line.size(), command.row->name.size() + 1));
    const std::string tube = text.substr(0, text.find(' '));
    if (command.row->name == "use" && word == "USING") used_ = tube;
    if (command.row->name == "watch" && word == "WATCHING") watched_.insert(tube);
    if (command.row->name == "ignore" && word == "WATCHING") watched_.erase(tube);
    if (command.row->begin_body != nullptr && line.starts_with("INSERTED "))
      known_.add_recent(leading_number(line.substr(line.find(' ') + 1)));
  }

  void lost(const std::deque<MadeCommand>&) override {}
  bool may_skip() const override { return true; }
  unsigned leaves() const override { return 8; }

 private:
  std::optional<JobId> a_hidden_id() {
    if (known_.kept.empty()) return std::nullopt;
    return chance_.one_of(known_.kept);
  }

  // Returns the same line with this id as its first.
  MadeCommand name_job(const MadeCommand& made, JobId id) {
    if (made.row->name == "delete-batch" || made.row->name == "wait") return made;
    MadeCommand named = made;
    const std::size_t begin = made.row->name.size() + 1;
    const std::size_t end = std::min(made.line.find(' ', begin), made.line.size());
    named.line.replace(begin, end - begin, std::to_string(id));
    named.names_hidden_job = true;
    return named;
  }

  void fail(const MadeCommand& command, std::string_view line, std::string_view what) {
    world_.fail(fmt::format("{}: {}: \"{}\" to \"{}\"", name_, what, line.substr(0, 60),
                            command.line.substr(0, 100)));
  }

  // A client has no role: its token was wrong, or its role did not exist.
  void check_token(const MadeCommand& command) {
    bool has_role = has_token_ && !has_wrong_token_;
    roles_.for_each_since(command.begun, role_,
                          [&](const Role* role) { has_role &= role != nullptr; });
    if (has_role) fail(command, "UNAUTHORIZED", "it has authenticated");
  }

  Right right(const Role& role, const MadeCommand& command) const {
    const commands::Command& row = *command.row;
    const bool is_for_server =
        row.access == Access::admin && row.concerns == commands::Concerns::no_tube;
    commands::ArgumentStorage storage;
    const std::string_view line = command.line;
    const bool is_parsed =
        row.parse(line.substr(std::min(line.size(), row.name.size() + 1)), storage);
    const commands::Named named =
        is_parsed ? row.named(storage) : commands::Named{.shows = row.shows_alone};
    const bool may_show = named.shows && may(role, Access::inspect);
    if ((!may(role, row.access) && !may_show) || is_for_server) return Right::denied;
    if (row.concerns == commands::Concerns::no_tube) return Right::allowed;
    const auto is_denied = [&role](std::string_view tube) {
      return !tube.empty() && !may_use(role, tube);
    };
    if (row.concerns == commands::Concerns::used && is_denied(used_)) return Right::denied;
    if (row.concerns == commands::Concerns::watched && std::ranges::any_of(watched_, is_denied))
      return Right::denied;
    if (!is_parsed) return Right::allowed;
    const bool names_denied =
        is_denied(named.tubes[0]) || is_denied(named.tubes[1]) || is_denied(named.next_tube);
    return names_denied ? Right::denied : Right::allowed;
  }

  // True if the role had this right at each moment since `time`.
  bool always(Right wanted, Time time, const MadeCommand& command) const {
    bool all = true;
    roles_.for_each_since(time, role_, [&](const Role* role) {
      all &= role != nullptr && right(*role, command) == wanted;
    });
    return all;
  }

  void judge(const MadeCommand& command, std::string_view line, std::string_view word) {
    const bool is_auth = command.row == &commands::auth_command();
    if (is_auth) {
      if (has_wrong_token_ && word == "AUTHENTICATED") fail(command, line, "a wrong token");
      return;
    }
    const bool is_denied = word == "DENIED";
    if (!is_denied && always(Right::denied, command.begun, command))
      return fail(command, line, "the role may not do that");
    if (word == "INSERTED" && always(Right::denied, command.sent, command))
      return fail(command, line, "the role had lost that right before the body arrived");
    const bool is_allowed = always(Right::allowed, command.begun, command);
    if (is_denied && is_allowed) return fail(command, line, "the role may do that");
    if (command.names_hidden_job && is_allowed && word != "NOT_FOUND")
      return fail(command, line, "a job in a tube of others is shown");
    check_tube(command, line, word);
  }

  // The name of the tube must follow the job.
  void check_tube(const MadeCommand& command, std::string_view line, std::string_view word) {
    if (word != "RESERVED" && word != "FOUND") return;
    if (std::ranges::count(line, ' ') != 3) return;
    const std::string_view tube = line.substr(line.rfind(' ') + 1);
    bool may_see = false;
    roles_.for_each_since(command.begun, role_, [&](const Role* role) {
      may_see |= role != nullptr && may_use(*role, tube);
    });
    if (!may_see) fail(command, line, "a job in a tube of others is given");
  }

  World& world_;
  Knowledge& known_;
  const Roles& roles_;
  const std::string role_;
  const bool has_token_;
  const std::string name_;
  Chance chance_;
  std::string used_;
  std::set<std::string, std::less<>> watched_;
  bool has_wrong_token_ = false;
};

}  // namespace

void Roles::add_to(Settings& settings) {
  settings.default_listener = false;
  settings.listeners = {listener(kDefaultPort), listener(kRolePort), listener(kTokenPort)};
  settings.listeners[1].role = kListenerRole;
  settings.listeners[2].auth = AuthMode::token;
  settings.tokens = kTokenFile;
  settings.roles = {role_named(kListenerRole), role_named(kTokenRole)};
  std::string hash;
  for (const unsigned char byte : access::hash_of(kToken)) hash += fmt::format("{:02x}", byte);
  Machine::current().set_secret(std::string(kTokenFile),
                                fmt::format("{} sha256:{}\n", kTokenRole, hash));
}

// The role of the listener must exist.
void Roles::change(Settings& settings, Chance& chance) {
  for (RoleSettings& one : settings.roles) change_rights(one.role, chance);
  if (!chance.percent(10)) return;
  if (settings.roles.size() > 1) {
    settings.roles.pop_back();
  } else {
    settings.roles.push_back(role_named(kTokenRole));
  }
}

void Roles::begin(const Settings& settings) {
  for (const std::string_view name : {kListenerRole, kTokenRole}) {
    const auto found =
        std::ranges::find(settings.roles, name, [](const auto& one) { return one.role.name; });
    auto role = found == settings.roles.end() ? nullptr : std::make_shared<const Role>(found->role);
    states_[std::string(name)].push_back({world_.now(), std::move(role)});
  }
}

std::unique_ptr<Script> Roles::client(unsigned number, const std::string& name) {
  return std::make_unique<RoleClient>(world_, known_, *this,
                                      number % 2 == 0 ? kListenerRole : kTokenRole, name);
}

}  // namespace tubed::simulation
