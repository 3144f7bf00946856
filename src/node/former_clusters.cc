// The file cluster.former has a line of 16 hexadecimal digits for each identity.
#include "node/former_clusters.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "disk/directory_tree.h"
#include "node/state_directory.h"
#include "text/numbers.h"

namespace tubed::node {

using disk::DirectoryTree;

namespace {

constexpr std::size_t kMost = 16;
constexpr std::size_t kLineBytes = 17;

}  // namespace

Result<std::vector<std::uint64_t>> read_former_clusters(const std::string& directory) {
  const auto text = TRY(DirectoryTree(directory).read(kFormerFile, kMost * kLineBytes));
  std::vector<std::uint64_t> clusters;
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    const auto cluster = parse_number<std::uint64_t>(rest.substr(0, kLineBytes - 1), 16);
    if (!cluster || rest.size() < kLineBytes || rest[kLineBytes - 1] != '\n') {
      return Error{fmt::format("{}/{} is damaged", directory, kFormerFile), Error::Kind::damaged};
    }
    clusters.push_back(*cluster);
    rest.remove_prefix(kLineBytes);
  }
  return clusters;
}

Result<void> add_former_cluster(const std::string& directory, std::uint64_t cluster) {
  std::vector<std::uint64_t> clusters = TRY(read_former_clusters(directory));
  std::erase(clusters, cluster);
  if (clusters.size() == kMost) clusters.erase(clusters.begin());
  clusters.push_back(cluster);
  std::string text;
  for (const std::uint64_t one : clusters) text += fmt::format("{:016x}\n", one);
  return DirectoryTree(directory).store(kFormerFile, text);
}

Result<void> forget_former_clusters(const std::string& directory) {
  return DirectoryTree(directory).remove(kFormerFile);
}

Result<void> mark_superseded(const std::string& directory) {
  return DirectoryTree(directory).store(kSupersededMarker, "");
}

Result<void> refuse_superseded(const std::string& directory) {
  const bool is_marked = TRY(DirectoryTree(directory).exists(kSupersededMarker));
  if (!is_marked) return {};
  return Error{fmt::format(
      "journal {}: the cluster of this node was recovered on another node, which has the jobs now: "
      "empty the directory, and add the node to the recovered cluster",
      directory)};
}

}  // namespace tubed::node
