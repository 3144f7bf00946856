// A program without libraft has no cluster mode. The settings already refuse a [cluster] section
// (config/load.cc).
#include <cstdio>

#include "node/cluster_mode.h"
#include "node/cluster_tasks.h"

namespace tubed::node {

namespace {

constexpr const char* kNotBuiltIn = "this tubed is built without cluster mode";

}  // namespace

Result<std::unique_ptr<ClusterMode>> make_cluster_mode(const ClusterParts& /*parts*/,
                                                       const Settings& /*settings*/,
                                                       ClusterHost& /*host*/) {
  return Error{kNotBuiltIn};
}

Result<void> check_cluster_files(const Settings& /*settings*/) {
  return {};
}

Result<void> print_node(const std::string& /*directory*/) {
  return {};
}

int run_cluster_task(const CommandLine& /*line*/, const Settings& /*settings*/) {
  std::fprintf(stderr, "tubed: %s\n", kNotBuiltIn);
  return kExitConfig;
}

}  // namespace tubed::node
