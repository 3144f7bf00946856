#include "tubectl/commands/table.h"

#include <array>
#include <vector>

#include "tubectl/commands/command.h"

namespace tubed::tubectl {

std::span<const Subcommand* const> subcommands() {
  static const std::array kSubcommands{
      &put_command(),          &reserve_command(), &work_command(),      &delete_command(),
      &release_command(),      &bury_command(),    &kick_command(),      &reprioritize_command(),
      &wait_command(),         &top_command(),     &tubes_command(),     &clients_command(),
      &stats_command(),        &health_command(),  &list_command(),      &peek_command(),
      &job_command(),          &pause_command(),   &policy_command(),    &drain_command(),
      &undrain_command(),      &reload_command(),  &wait_idle_command(), &cluster_command(),
      &wait_cluster_command(), &clear_command(),   &move_command(),      &export_command(),
      &import_command(),       &bench_command(),   &token_command()};
  return kSubcommands;
}

std::span<const OptionRow> program_options() {
  static const std::vector<OptionRow> kOptions = [] {
    std::vector<OptionRow> rows{kVersionOption, options::kHelpOption, kServerOption,
                                kMaxReplyOption};
    rows.insert(rows.end(), kConnectionOptions<>.begin(), kConnectionOptions<>.end());
    return rows;
  }();
  return kOptions;
}

std::vector<OptionRow> options_of(const Subcommand& subcommand) {
  std::vector<OptionRow> rows{options::kHelpOption};
  rows.insert(rows.end(), subcommand.options.begin(), subcommand.options.end());
  rows.insert(rows.end(), subcommand.connection_options.begin(),
              subcommand.connection_options.end());
  return rows;
}

}  // namespace tubed::tubectl
