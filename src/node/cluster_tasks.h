// Cluster tasks: the command line options that make a journal's directory a node of a cluster, or
// undo that. They run without a server, and block.
//
// D is the directory of the journal. Each task can be interrupted anywhere: D is then unchanged, or
// the task can be repeated. Errors are one line.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "cluster/types.h"
#include "config/command_line.h"
#include "config/settings.h"

namespace tubed::node {

struct Founded {
  std::uint64_t cluster = 0;
  cluster::NodeId node = 0;
};

// The contents of a directory.
enum class DirectoryKind : std::uint8_t {
  empty,    // neither a journal nor binlogs
  journal,  // of a server without a cluster
  binlogs,  // of beanstalkd, possibly partly imported
  node,     // the state of a node
};
// Called after finish_install(). Changes nothing.
Result<DirectoryKind> kind_of(const std::string& directory);

// Makes D, which may be empty, the first node of a new cluster, with all its jobs. The steps:
//  1. The position at which a cluster begins is appended to the journal.
//  2. The raft log is created in D/cluster, then the state of the node: D is now a node.
// `address`: HOST:PORT.
Result<Founded> bootstrap(const std::string& directory, const std::string& name,
                          const std::string& address, std::uint64_t segment_bytes);

// Makes the node, which must be the only voter of its cluster, leave it: D becomes the journal of a
// server without a cluster, with all its jobs. The steps:
//  1. Entries that are in the raft log but not in the journal are applied to the journal, durably.
//  2. D/cluster is renamed to D/cluster.left: D is now an ordinary journal.
//  3. D/cluster.left is removed.
Result<void> leave(const std::string& directory, std::uint64_t segment_bytes);

// Makes a node whose cluster has lost the majority of its voters for good the first node of a new
// cluster: like leave(), but without the condition, followed by bootstrap(). Entries that only the
// lost nodes have are lost; everything stored here counts, whether or not it was committed.
Result<Founded> recover(const std::string& directory, const std::string& name,
                        const std::string& address, std::uint64_t segment_bytes);

// Reads the files that the settings of a node name, as a start does. The error is one line with the
// file and the reason.
Result<void> check_cluster_files(const Settings& settings);

// Prints the node and cluster to which the directory belongs, and the extent of its raft log.
// Prints nothing for a directory without a node.
Result<void> print_node(const std::string& directory);

// Runs line.task and prints its results to stdout. Returns the exit code of the process; if it is
// not 0, a line was printed to stderr.
int run_cluster_task(const CommandLine& line, const Settings& settings);

}  // namespace tubed::node
