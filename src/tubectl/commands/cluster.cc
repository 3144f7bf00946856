// tubectl cluster: shows a node's cluster, and changes its members and its leader.
//
// secret contacts no node, and status and upgrade-check only read. Every other action reads the
// state of the cluster first: a wrong address is reported before anything changes. It then sends
// the change, which the leader accepts or refuses, and polls until it has taken effect. kActionRows
// lists the words that each action takes.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "client/address.h"
#include "text/host.h"
#include "text/numbers.h"
#include "tubectl/cluster/admin.h"
#include "tubectl/cluster/state.h"
#include "tubectl/cluster/upgrade.h"
#include "tubectl/cluster/wait.h"
#include "tubectl/commands/command.h"
#include "tubectl/commands/table.h"
#include "tubectl/exit_codes.h"
#include "tubectl/json.h"
#include "tubectl/server.h"
#include "tubectl/terminal.h"
#include "tubectl/token.h"
#include "tubectl/watch.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kClusterFooter =
    R"(status prints the members and what needs attention. add makes a node without
state a member, and waits until it has caught up and votes, and the loss of any
node no longer undoes that; ADDRESS is its address for the other nodes, HOST:PORT
where HOST is numeric or a name that the nodes resolve each time they connect;
the default port is 11302. With --standby, the node follows and does not vote
until it is promoted. promote waits until such a node votes. remove waits until
NAME is no member. set-address gives a member that has moved, or is going to move,
another address; it keeps its role and its data. All wait for a leader, and for
an earlier change. While no leader is known, the node that is asked for
set-address also dials that address. transfer waits until NAME, or another node,
leads. Each node of the cluster can be asked.
secret prints a new secret, a line for the file that cluster.secret_file of all
nodes names.
upgrade-check prints what keeps the feature level from rising, and which node to
upgrade next; the leader is the last. The exit code is 0 if a node may be
restarted now, and 1, with the reasons, if that or one more failure would stop
the cluster. Only the leader knows, so run it there.

examples:
  tubectl cluster status
  tubectl cluster status --json
  tubectl cluster status --watch
  tubectl cluster add c 10.0.0.3
  tubectl cluster upgrade-check
  tubectl cluster add --no-wait d 10.0.0.4:11302
  tubectl cluster add --standby copy 192.168.7.2
  tubectl cluster promote copy
  tubectl cluster transfer b
  tubectl cluster remove --timeout 10 d
  tubectl cluster set-address b 10.0.0.9:11302
  (umask 077; tubectl cluster secret > cluster.secret))";

constexpr std::array<std::string_view, 8> kClusterActions{
    "status", "add", "promote", "remove", "set-address", "transfer", "secret", "upgrade-check"};
constexpr std::uint16_t kMemberPort = 11302;
constexpr std::size_t kLongestMemberName = 32;
// Pause before status reads the state again, to show whether a standby advances.
constexpr std::chrono::milliseconds kBetweenLooks{500};
// Time limit of a change that copies no data to another node.
constexpr double kShortChangeSeconds = 30;

struct ClusterOptions {
  std::string action;
  std::optional<std::string> name;
  std::optional<std::string> address;
  std::string admin = cluster::kDefaultAdmin;
  bool json = false;
  bool no_wait = false;
  bool force = false;
  bool standby = false;
  std::optional<double> watch;
  std::optional<double> timeout;

  bool is(std::string_view one) const { return action == one; }
};

int cluster_failed(const ClusterOptions& options, const cluster::Failure& failure) {
  return fail(failure.code, fmt::format("cluster {}: {}", options.action, failure.reason));
}

bool is_member_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestMemberName &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

// Returns HOST:PORT, with the default port added if necessary and an IPv6 address in brackets. No
// value: not the address of a node.
std::optional<std::string> member_address(const std::string& text) {
  const bool is_bracketed = text.starts_with('[');
  const bool has_port = is_bracketed ? !text.ends_with(']') : text.find(':') != text.npos;
  const std::size_t name_end = std::min(text.find(':'), text.size());
  if (const auto name = parse_host_name(std::string_view(text).substr(0, name_end))) {
    const auto port = has_port
                          ? parse_number<std::uint16_t>(std::string_view(text).substr(name_end + 1))
                          : kMemberPort;
    return port && *port != 0 ? std::optional(fmt::format("{}:{}", *name, *port)) : std::nullopt;
  }
  auto address = client::parse_address(text);
  if (!address || text.find('/') != text.npos) return std::nullopt;
  if (address->family != AF_INET && address->family != AF_INET6) return std::nullopt;
  if (address->is_localhost) return std::nullopt;
  if (!has_port) address->port = kMemberPort;
  return client::to_string(*address);
}

// Returns the mistake, or an empty string if the words are right. Completes the address.
std::string check_words(ClusterOptions& options) {
  struct ActionRow {
    std::string_view action;
    bool needs_name;
    bool takes_name;
    bool takes_address;
    bool waits;
  };
  constexpr std::array<ActionRow, kClusterActions.size()> kActionRows{
      {{"status", false, false, false, false},
       {"add", true, true, true, true},
       {"promote", true, true, false, true},
       {"remove", true, true, false, true},
       {"set-address", true, true, true, true},
       {"transfer", false, true, false, true},
       {"secret", false, false, false, false},
       {"upgrade-check", false, false, false, false}}};
  const ActionRow& row = *std::ranges::find(kActionRows, options.action, &ActionRow::action);
  if (row.needs_name && !options.name) return "NAME is missing: that of the node";
  if (row.takes_address && !options.address) return "ADDRESS is missing: that of the node";
  for (const auto& [takes, word] :
       {std::pair(row.takes_name, options.name), std::pair(row.takes_address, options.address)}) {
    if (!takes && word) return fmt::format("there is an argument too many: {}", one_line(*word));
  }
  if (!options.is("status") && options.watch) return "--watch is for status";
  if (!row.waits && (options.no_wait || options.timeout)) {
    return "--no-wait and --timeout are for add, promote, remove, set-address and transfer";
  }
  if (!options.is("remove") && options.force) return "--force is for remove";
  if (!options.is("add") && options.standby) return "--standby is for add";
  if (options.name && !is_member_name(*options.name)) {
    return fmt::format("\"{}\" is no name of a node: it has 1 to {} letters, digits, and . _ -",
                       one_line(*options.name), kLongestMemberName);
  }
  if (!options.address) return {};
  auto address = member_address(*options.address);
  if (!address) {
    return fmt::format(
        "\"{}\" is no address of a node: it is HOST:PORT with a numeric HOST or a name, as "
        "10.0.0.2:11302, [fd00::2]:11302 or b.example:11302",
        *options.address);
  }
  options.address = std::move(*address);
  return {};
}

// An Error: the node did not answer, and may do so later.
Result<int> print_status(const ClusterOptions& options, const cluster::Admin& admin) {
  auto document = admin.document(cluster::kLongestLook);
  if (const auto* const failure = std::get_if<cluster::Failure>(&document)) {
    if (options.watch && failure->may_pass) return Error{failure->reason};
    return cluster_failed(options, *failure);
  }
  const std::string& text = std::get<std::string>(document);
  if (options.json) {
    return print(shown_body(text, !text.ends_with('\n'), false));
  }
  cluster::State state = *cluster::read_state(text);
  std::optional<cluster::State> before;
  if (cluster::has_standby_behind(state)) {
    std::this_thread::sleep_for(kBetweenLooks);
    // If the node has ended meanwhile, its last state is shown.
    auto again = admin.look(cluster::kLongestLook);
    if (auto* const now = std::get_if<cluster::State>(&again)) {
      before = std::exchange(state, std::move(*now));
    }
  }
  const Paint paint = Paint::for_descriptor(STDOUT_FILENO);
  std::string shown = cluster::overview(state, paint);
  for (const std::string& warning :
       cluster::warnings(state, before ? &*before : nullptr, kBetweenLooks)) {
    shown += fmt::format("{} {}\n", paint(Style::yellow, "warning:"), warning);
  }
  return print(shown);
}

int check_cluster_upgrade(const ClusterOptions& options, const cluster::Admin& admin) {
  const auto seen = admin.look(cluster::kLongestLook);
  if (const auto* const failure = std::get_if<cluster::Failure>(&seen)) {
    return cluster_failed(options, *failure);
  }
  const auto& state = std::get<cluster::State>(seen);
  const cluster::UpgradeCheck check = cluster::check_upgrade(state);
  const std::string text =
      options.json ? cluster::upgrade_json(state, check) + "\n"
                   : cluster::upgrade_text(state, check, Paint::for_descriptor(STDOUT_FILENO));
  if (const int code = print(text); code != 0 || check.may_restart()) return code;
  return cluster_failed(options, {kExitFailure, fmt::format("no node may be restarted now: {}",
                                                            fmt::join(check.reasons, "; "))});
}

Json change_of(const ClusterOptions& options) {
  Json change = Json::object();
  if (options.name) change["name"] = *options.name;
  if (options.address) change["address"] = *options.address;
  if (options.force) change["force"] = true;
  return change;
}

Duration in_duration(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

cluster::Wait wait_of(const ClusterOptions& options, const cluster::State& before) {
  cluster::Wait wait;
  wait.is_first = false;
  std::optional<double> seconds = options.timeout;
  if (options.is("add") || options.is("promote")) {
    wait.judge = options.standby ? cluster::until_follows(*options.name)
                                 : cluster::until_votes(*options.name);
  } else if (options.is("remove")) {
    wait.judge = cluster::until_gone(*options.name);
    if (*options.name == before.name) {
      wait.when_node_ends = fmt::format("{} was removed, and has ended", before.name);
    }
    if (!seconds) seconds = kShortChangeSeconds;
  } else if (options.is("set-address")) {
    wait.judge = cluster::until_has_address(*options.name, *options.address);
    if (!seconds) seconds = kShortChangeSeconds;
  } else {
    wait.judge = cluster::until_leads(before.leader.value_or(""), options.name.value_or(""));
    if (!seconds) seconds = kShortChangeSeconds;
  }
  if (seconds) {
    wait.limit = in_duration(*seconds);
  }
  return wait;
}

// The last part of the path of the request.
std::string_view path_of(const ClusterOptions& options) {
  return options.standby ? std::string_view("add-standby") : options.action;
}

// True if the change is found made, by a request whose answer was lost.
bool is_made(const ClusterOptions& options, const cluster::State& before,
             const cluster::State& now) {
  const cluster::Member* const member = now.find(*options.name);
  if (options.is("remove")) return member == nullptr;
  if (member == nullptr) return false;
  if (options.is("promote")) return !member->stays;
  if (options.is("set-address")) return member->address == *options.address;
  return before.find(*options.name) == nullptr && member->address == *options.address;
}

// A transfer is sent once: repeated, it might pass on the leadership of the new leader.
// `accepted` is true if an answer has said that the change was made, and false if it was found
// made.
cluster::Outcome<std::monostate> send_change(const ClusterOptions& options,
                                             const cluster::State& before,
                                             const cluster::Admin& admin, StatusLine& line,
                                             bool& accepted) {
  const std::string json = to_line(change_of(options));
  if (options.is("transfer")) return admin.change(options.action, json, cluster::kLongestLook);
  auto sent = cluster::run_change(
      in_duration(options.timeout.value_or(kShortChangeSeconds)), cluster::system_clock(),
      [&](Duration most) {
        auto answer = admin.change(path_of(options), json, most);
        accepted = std::holds_alternative<std::monostate>(answer);
        return answer;
      },
      [&] {
        const auto seen = admin.look(cluster::kLongestLook);
        const auto* const state = std::get_if<cluster::State>(&seen);
        return state != nullptr && is_made(options, before, *state);
      },
      [&](const std::string& text) { line.show(text); });
  line.clear();
  return sent;
}

// An add has failed: removes the standby that it has made, so that the next add is no repetition of
// a name, unless it only waits for its vote. Returns a clause for the error.
std::string take_back(const ClusterOptions& options, const cluster::Admin& admin) {
  const auto seen = admin.look(cluster::kLongestLook);
  const auto* const state = std::get_if<cluster::State>(&seen);
  const cluster::Member* const member = state == nullptr ? nullptr : state->find(*options.name);
  if (state != nullptr && member == nullptr) return {};
  if (member != nullptr && what_vote_waits_for(*state, *member)) return {};
  if (member != nullptr && !member->votes) {
    const auto removed = cluster::run_change(
        in_duration(kShortChangeSeconds), cluster::system_clock(),
        [&](Duration most) {
          return admin.change("remove", to_line(Json{{"name", *options.name}}), most);
        },
        [] { return true; }, [](const std::string&) {});
    if (std::holds_alternative<std::monostate>(removed)) return "; it was removed again";
  }
  return fmt::format("; to take it back: tubectl cluster remove {}", *options.name);
}

int change_cluster(const ClusterOptions& options, const cluster::Admin& admin) {
  auto before = admin.look(cluster::kLongestLook);
  if (const auto* const failure = std::get_if<cluster::Failure>(&before)) {
    return cluster_failed(options, *failure);
  }
  const auto start = client::Clock::now();
  StatusLine line;
  bool accepted = false;
  const auto changed =
      send_change(options, std::get<cluster::State>(before), admin, line, accepted);
  if (const auto* const failure = std::get_if<cluster::Failure>(&changed)) {
    if (failure->code != kExitUnavailable) return cluster_failed(options, *failure);
    // The node may have received the request.
    return cluster_failed(options,
                          {failure->code, failure->reason + "; tubectl cluster status "
                                                            "shows whether the change was made"});
  }
  const auto print_change = [&options](bool done) {
    return print(to_line({{"action", options.action},
                          {"name", options.name ? Json(*options.name) : Json()},
                          {"done", done}}) +
                 "\n");
  };
  if (options.no_wait) return options.json ? print_change(false) : 0;
  cluster::Wait wait = wait_of(options, std::get<cluster::State>(before));
  wait.start = start;
  auto result = cluster::run_wait(
      wait, cluster::system_clock(), [&](Duration most) { return admin.look(most); },
      [&](const std::string& text) { line.show(text); });
  line.clear();
  if (auto* const failure = std::get_if<cluster::Failure>(&result)) {
    if (options.is("add") && accepted) failure->reason += take_back(options, admin);
    return cluster_failed(options, *failure);
  }
  return options.json ? print_change(true) : print(std::get<std::string>(result) + "\n");
}

int print_secret(const ClusterOptions& options) {
  const auto secret = make_cluster_secret();
  if (!secret) return fail(kExitFailure, secret.error().message);
  return print((options.json ? to_line({{"secret", *secret}}) : *secret) + "\n");
}

Result<int> run_cluster(ClusterOptions& options) {
  if (const auto mistake = check_words(options); !mistake.empty()) {
    return fail(kExitUsage, fmt::format("{}; try tubectl cluster --help", mistake));
  }
  if (options.is("secret")) return print_secret(options);
  const cluster::Admin admin(options.admin);
  if (options.is("upgrade-check")) return check_cluster_upgrade(options, admin);
  if (!options.is("status")) return change_cluster(options, admin);
  return look_or_watch({.seconds = options.watch,
                        .json = options.json,
                        .title = "tubectl cluster status on " + options.admin},
                       [&] { return print_status(options, admin); });
}

constexpr std::array kClusterOptions{
    option<&ClusterOptions::action>({.names = "ACTION",
                                     .type = choice("ACTION", kClusterActions),
                                     .help = "What to do; see below",
                                     .required = true}),
    option<&ClusterOptions::name>(
        {.names = "NAME", .type = text("NAME"), .help = "The node, by its cluster.name"}),
    option<&ClusterOptions::address>({.names = "ADDRESS",
                                      .type = text("ADDRESS"),
                                      .help = "Of add and set-address: the node's address for "
                                              "the others"}),
    cluster::admin_option<&ClusterOptions::admin>(),
    json_option<&ClusterOptions::json>(
        "Of status: print the node's answer as it is; of upgrade-check: the same facts"),
    watch_option<&ClusterOptions::watch>(),
    option<&ClusterOptions::no_wait>(
        {.names = "--no-wait", .help = "End when the leader has accepted the change"}),
    option<&ClusterOptions::force>(
        {.names = "--force",
         .help = "Of remove: also if the other voters that answer are too few"}),
    option<&ClusterOptions::standby>(
        {.names = "--standby",
         .help = "Of add: the node stays without a vote until it is promoted"}),
    option<&ClusterOptions::timeout>(
        {.names = "--timeout",
         .type = time(0, 1e7),
         .help =
             "Wait at most this time for the change [30; add, promote: while there is progress]",
         .excludes = {"--no-wait"}}),
};

}  // namespace

const Subcommand& cluster_command() {
  static constexpr Subcommand kCommand =
      runs<ClusterOptions, run_cluster>({.name = "cluster",
                                         .group = kControlGroup,
                                         .summary = "Show or change the cluster of a node",
                                         .options = kClusterOptions,
                                         .footer = kClusterFooter,
                                         .usage = "[OPTIONS] status\n[OPTIONS] add NAME ADDRESS\n"
                                                  "[OPTIONS] promote NAME\n[OPTIONS] remove NAME\n"
                                                  "[OPTIONS] set-address NAME ADDRESS\n"
                                                  "[OPTIONS] transfer [NAME]\n[OPTIONS] secret\n"
                                                  "[OPTIONS] upgrade-check"});
  return kCommand;
}

}  // namespace tubed::tubectl
