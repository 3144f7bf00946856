// Cluster tasks: the command line options that make the directory of a journal a node of a cluster,
// or end that. They work without a server, and block.
//
// D is the directory of the journal. Each task can be interrupted anywhere: D is then as before, or
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
  journal,  // of a server that is in no cluster
  binlogs,  // of beanstalkd, or a part of them is imported
  node,     // the state of a node
};
// After finish_install(). Changes nothing.
Result<DirectoryKind> kind_of(const std::string& directory);

// Makes D, which may be empty, the first node of a new cluster, with all jobs. The steps:
//  1. The journal gets the position at which a cluster begins as its newest.
//  2. The raft log is made in D/cluster, and then the state of the node: from here on D is a node.
// `address`: HOST:PORT.
Result<Founded> bootstrap(const std::string& directory, const std::string& name,
                          const std::string& address, std::uint64_t segment_bytes);

// The node, which must be the only voter of its cluster, leaves it: D becomes the journal of a
// server of its own, with all jobs. The steps:
//  1. The entries that the raft log has and the journal lacks are applied to the journal,
//     durably.
//  2. D/cluster is renamed to D/cluster.left: from here on D is an ordinary journal.
//  3. D/cluster.left is removed.
Result<void> leave(const std::string& directory, std::uint64_t segment_bytes);

// The node, whose cluster has lost the majority of its voters for good, becomes the first node of a
// new cluster: as leave() without the condition, and then bootstrap(). Entries that only the
// lost nodes have are lost; everything that is stored here counts, whether it was committed or not.
Result<Founded> recover(const std::string& directory, const std::string& name,
                        const std::string& address, std::uint64_t segment_bytes);

// Prints which node of which cluster the directory is, and how far its raft log goes. Nothing for a
// directory without a node.
Result<void> print_node(const std::string& directory);

// Runs line.task and prints its results to stdout. Returns the exit code of the process: 0, or an
// exit code with a line on stderr.
int run_cluster_task(const CommandLine& line, const Settings& settings);

}  // namespace tubed::node
