// The table of subcommands: everything that tubectl can do, as data.
//
// A row names the subcommand, its options and the function that runs it. The command line, the
// help, the completions and the manual page are made from these rows. To add a subcommand, define
// its function in a file of its own, declare it here and add it to subcommands().
#pragma once

#include <span>
#include <vector>

#include "tubectl/options.h"

namespace tubed::tubectl {

// Each is defined in the file of its subcommand.
const Subcommand& bench_command();
const Subcommand& bury_command();
const Subcommand& clear_command();
const Subcommand& clients_command();
const Subcommand& cluster_command();
const Subcommand& delete_command();
const Subcommand& drain_command();
const Subcommand& export_command();
const Subcommand& health_command();
const Subcommand& import_command();
const Subcommand& job_command();
const Subcommand& kick_command();
const Subcommand& list_command();
const Subcommand& move_command();
const Subcommand& pause_command();
const Subcommand& peek_command();
const Subcommand& policy_command();
const Subcommand& put_command();
const Subcommand& release_command();
const Subcommand& reprioritize_command();
const Subcommand& reserve_command();
const Subcommand& stats_command();
const Subcommand& token_command();
const Subcommand& top_command();
const Subcommand& tubes_command();
const Subcommand& undrain_command();
const Subcommand& reload_command();
const Subcommand& wait_command();
const Subcommand& wait_cluster_command();
const Subcommand& wait_idle_command();
const Subcommand& work_command();

// All subcommands, in the order of the help.
std::span<const Subcommand* const> subcommands();

// Headings of the help.
inline constexpr std::string_view kWorkGroup = "Put jobs and work them off";
inline constexpr std::string_view kLookGroup = "Look";
inline constexpr std::string_view kControlGroup = "Steer tubes and the server";
inline constexpr std::string_view kManyGroup = "Many jobs at once";

// The options of tubectl itself.
inline constexpr OptionRow kVersionOption{.names = "-V,-v,--version",
                                          .help = "Print the version, and exit"};
std::span<const OptionRow> program_options();
// All options of a subcommand: --help, its own, and the connection's.
std::vector<OptionRow> options_of(const Subcommand& subcommand);

}  // namespace tubed::tubectl
