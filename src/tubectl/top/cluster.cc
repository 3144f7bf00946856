// The cluster's lines in the head: which node leads, and how far each node is and for how long it
// has been silent. A silent node comes first, to be visible in a narrow window as well.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "text/numbers.h"
#include "tubectl/cluster/state.h"
#include "tubectl/top/frame.h"

namespace tubed::tubectl::top {
namespace {

struct ClusterNode {
  std::string_view name;
  std::string_view role;
  std::optional<std::uint64_t> match;
  std::optional<std::uint64_t> silent_ms;

  bool is_silent() const {
    return silent_ms && *silent_ms > static_cast<std::uint64_t>(cluster::kSilent.count());
  }
};

// Removes the text before the first `separator`, and the separator, from `text`; returns that text.
std::string_view take_until(std::string_view& text, char separator) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

// Parses "a:leader:120:0 b:voter:118:30". Skips words that describe no node.
std::vector<ClusterNode> parse_nodes(std::string_view text) {
  std::vector<ClusterNode> nodes;
  while (!text.empty()) {
    std::string_view fields = take_until(text, ' ');
    ClusterNode node;
    node.name = take_until(fields, ':');
    node.role = take_until(fields, ':');
    node.match = parse_number<std::uint64_t>(take_until(fields, ':'));
    node.silent_ms = parse_number<std::uint64_t>(fields);
    if (!node.name.empty() && !node.role.empty()) nodes.push_back(node);
  }
  return nodes;
}

std::string short_time(std::uint64_t milliseconds) {
  constexpr std::uint64_t kLongest = 1'000'000'000'000;
  return cluster::in_words(
      cluster::Milliseconds(static_cast<std::int64_t>(std::min(milliseconds, kLongest))));
}

// "b voter lacks 3 12 ms": the role, the number of missing entries and the silence, where known.
Line node_item(const ClusterNode& node, std::uint64_t committed, const Glyphs& glyphs) {
  constexpr std::size_t kMostColumns = 32;
  const bool leads = node.role == "leader";
  Line item(glyphs.shorten(node.name, kMostColumns), leads ? Style::green : Style::bold);
  item.add(" ");
  item.add(glyphs.shorten(leads ? "leads" : node.role, kMostColumns),
           node.role == "standby" ? Style::yellow : Style::dim);
  if (leads) return item;
  if (node.match) {
    const std::uint64_t behind = committed > *node.match ? committed - *node.match : 0;
    item.add(fmt::format(" lacks {}", shortened(behind)),
             behind > cluster::kFarBehind ? Style::yellow : Style::plain);
  }
  if (node.is_silent()) {
    item.add(fmt::format(" SILENT {}", short_time(*node.silent_ms)), Style::red);
  } else if (node.silent_ms) {
    item.add(fmt::format(" {}", short_time(*node.silent_ms)), Style::dim);
  }
  return item;
}

Line labelled_item(std::string label, std::string value) {
  Line item(std::move(label), Style::dim);
  item.add(" ");
  item.add(std::move(value));
  return item;
}

Line cluster_line(const client::StatsBlock& server, const Glyphs& glyphs, std::size_t columns) {
  constexpr std::size_t kNameColumns = 32;
  const std::string_view leader = server.text("cluster-leader").value_or("");
  std::vector<Line> items{Line("cluster    ", Style::bold)};
  // A node that knows no leader reports an empty name or a hyphen.
  if (leader.empty() || leader == "-") {
    items.emplace_back("NO LEADER", Style::red);
  } else {
    items.push_back(labelled_item("leader", glyphs.shorten(leader, kNameColumns)));
  }
  const auto name = server.text("cluster-name");
  const auto role = server.text("cluster-role");
  if (name && role) {
    items.push_back(
        labelled_item("this", glyphs.shorten(fmt::format("{} {}", *name, *role), kNameColumns)));
  }
  for (const auto& [label, key] :
       {std::pair("term", "cluster-term"), std::pair("committed", "cluster-commit-index"),
        std::pair("applied", "cluster-applied-index")}) {
    if (const auto number = server.number(key)) {
      items.push_back(labelled_item(label, shortened(*number)));
    }
  }
  if (server.count("cluster-held-over") > 0) {
    items.push_back(labelled_item("held over", shortened(server.count("cluster-held-over"))));
  }
  return join(items, columns);
}

}  // namespace

std::vector<Line> compose_cluster(const client::StatsBlock& server, const Glyphs& glyphs,
                                  std::size_t columns) {
  if (!server.text("cluster-name")) return {};
  std::vector<Line> lines{cluster_line(server, glyphs, columns)};
  std::vector<ClusterNode> nodes = parse_nodes(server.text("cluster-nodes").value_or(""));
  if (nodes.empty()) return lines;
  std::stable_partition(nodes.begin(), nodes.end(),
                        [](const ClusterNode& node) { return node.is_silent(); });
  std::vector<Line> items{Line("nodes      ", Style::bold)};
  for (const ClusterNode& node : nodes) {
    items.push_back(node_item(node, server.count("cluster-commit-index"), glyphs));
  }
  lines.push_back(join(items, columns));
  return lines;
}

}  // namespace tubed::tubectl::top
