// The rows of the options that are not settings, for table.cc.
#pragma once

#include <array>

#include "config/table.h"

namespace tubed::config {

inline constexpr auto kOptions = std::to_array<Option>({
    {'\0', "--config", "FILE", Action::config_file, false,
     "Read the settings of this TOML file and its drop-ins."},
    {'\0', "--check-config", "", Action::check_config, false, "Check the settings, and exit."},
    {'\0', "--print-config", "", Action::print_config, false,
     "Print the settings in force as TOML, each with its origin, and exit."},
    {'\0', "--dump", "DIR", Action::task, false,
     "Print the journal in DIR record by record, and exit.", Task::dump},
    {'\0', "--check", "DIR", Action::task, false,
     "Verify the journal in DIR without changing it, and exit.", Task::check},
    {'\0', "--salvage", "DIR", Action::task, false,
     "Copy the readable part of a damaged journal (-b) to the new directory DIR, and exit.",
     Task::salvage, "journal.directory"},
    {'\0', "--backup", "DIR", Action::task, false,
     "Copy the journal (-b) to the new directory DIR, and exit.", Task::backup,
     "journal.directory"},
    {'\0', "--drain", "", Action::task, false,
     "Put the running server (pid_file, or the unit tubed.service) into drain mode, wait until it "
     "exits if drain.exit allows that, and exit.",
     Task::drain},
    {'\0', "--cluster-bootstrap", "", Action::task, false,
     "Make the journal of this stopped server that of the first node of a new cluster, and exit. "
     "It needs cluster.name, cluster.listen and journal.directory.",
     Task::cluster_bootstrap, "cluster.name"},
    {'\0', "--cluster-leave", "", Action::task, false,
     "Make the journal (-b) of this stopped node that of a server without a cluster, and exit. "
     "First remove the other nodes from the cluster.",
     Task::cluster_leave, "journal.directory"},
    {'\0', "--cluster-recover", "", Action::task, false,
     "After a majority of the nodes is lost for good: make this stopped node the only node of a "
     "new cluster, and exit. Changes that only the lost nodes have are lost: it needs "
     "--i-accept-the-loss. Run it on the node with the newest changes, as --check shows.",
     Task::cluster_recover, "cluster.name"},
    {'\0', "--i-accept-the-loss", "", Action::accept_loss, false,
     "With --cluster-recover: confirm that changes may be lost."},
    {.long_flag = "--test-mode",
     .argument = "CLOCK",
     .action = Action::test_mode,
     .doc = "Serve a test suite: print the address, obey the test verbs, and end with standard "
            "input. The clock is manual (the default), auto or real. No file is read.",
     .argument_is_optional = true},
    {'\0', "--no-stdin", "", Action::no_stdin, false,
     "With --test-mode: leave standard input alone."},
    {'\0', "--address-file", "FILE", Action::address_file, false,
     "With --test-mode: write the address to FILE instead of standard output."},
    {'\0', "--preload", "FILE", Action::preload, false,
     "With --test-mode: begin with the jobs in FILE, as tubectl export writes them."},
    {'h', "--help", "", Action::help, true, "Print this help, and exit."},
    {'v', "--version", "", Action::version, true,
     "Print the version and whether cluster mode is built in, and exit."},
    {'l', "--listen", "ADDR", Action::listen, true,
     "Listen on HOST, HOST:PORT, [HOST]:PORT or unix:PATH (default 127.0.0.1:11300). May be "
     "repeated; replaces all listeners of the file."},
    {'p', "--port", "PORT", Action::port, true,
     "Port for a -l host that has none, or for the default address."},
    {'V', "", "", Action::raise_log_level, true, "Raise log.level by one. May be repeated."},
    {'f', "", "MS", Action::sets, true,
     "The same as --journal-sync with milliseconds; 0 is always. Of -f, -F and --journal-sync, the "
     "last takes effect.",
     Task::serve, "journal.sync", "ms"},
    {'F', "", "", Action::sets, true, "The same as --journal-sync never.", Task::serve,
     "journal.sync", "never"},
    {'c', "", "", Action::ignored, true, "Ignored: compaction is automatic."},
    {'n', "", "", Action::ignored, true, "Ignored: compaction is automatic."},
});

}  // namespace tubed::config
