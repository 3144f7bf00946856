// Without cluster.name the other settings of the section have no effect, so a value that is not the
// default is refused: its operator expects a cluster. With a name, the addresses are checked, in
// the order of their rows: by itself each, then against the addresses of clients and HTTP. Last
// come the bounds that are narrower in a cluster.
//
// An address that other machines can reach needs TLS or a secret, because without them each of
// those could act as a node. Without TLS nodes do not encrypt, so an address that machines of the
// Internet may reach, such as 0.0.0.0 and [::], needs TLS or cluster.insecure, which also replaces
// the secret. An address with a name counts as one that other machines can reach.
#include "config/cluster_check.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "config/table.h"

namespace tubed::config {
namespace {

constexpr std::string_view kSection = "cluster";
constexpr std::size_t kMaxNameBytes = 32;

// The first setting of the section, but for its name, that is not the default. None: nullptr.
const Setting* first_changed(const Settings& settings, bool with_name) {
  for (const Setting& row : settings_table()) {
    if (row.section() != kSection || (row.name() == "name" && !with_name)) continue;
    if (row.get(settings) != row.default_value()) return &row;
  }
  return nullptr;
}

Error mistake(const std::string& place, std::string_view reason) {
  return Error{fmt::format("{}: {}", place, reason)};
}

bool is_node_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kMaxNameBytes && std::ranges::all_of(name, allowed);
}

Result<void> check_name(const CommandLine& line, const Settings& settings, const Places& places) {
  const std::string place = places.key("cluster.name");
  if (line.test_mode) return mistake(place, "a server in test mode is in no cluster");
  if (!is_node_name(settings.cluster.name)) {
    return mistake(place,
                   fmt::format("{} is not 1 to {} letters, digits, dots, underscores and hyphens",
                               config::in_quotes(settings.cluster.name), kMaxNameBytes));
  }
  if (settings.journal_directory.empty()) return mistake(place, "a node needs journal.directory");
  if (!settings.cluster.listen) return mistake(place, "a node needs cluster.listen");
  return {};
}

// `address`: where the other nodes connect to.
Result<void> check_reachable(const Listen& address, const std::string& place,
                             std::string_view advice) {
  if (is_wildcard(address))
    return mistake(place,
                   fmt::format("{} is the address of no node{}", to_string(address), advice));
  if (address.port == 0)
    return mistake(place, fmt::format("{} has no port{}", to_string(address), advice));
  return {};
}

enum class Exposure : std::uint8_t { none, without_secret, without_encryption };

// Returns what an address lacks that other machines can reach.
Exposure exposure_of_reachable(const ClusterSettings& cluster) {
  const bool may = cluster.insecure == ClusterInsecure::yes || cluster.tls.enabled();
  return may || !cluster.secret_file.empty() ? Exposure::none : Exposure::without_secret;
}

// Returns what the address lacks.
Exposure exposure_of(const Listen& address, const ClusterSettings& cluster) {
  if (cluster.insecure == ClusterInsecure::yes || cluster.tls.enabled() || is_local(address))
    return Exposure::none;
  const Exposure exposure = exposure_of_reachable(cluster);
  if (exposure != Exposure::none || is_private(address)) return exposure;
  return Exposure::without_encryption;
}

Result<void> check_exposure(Exposure exposure, const std::string& address,
                            const std::string& place) {
  switch (exposure) {
    case Exposure::none:
      return {};
    case Exposure::without_secret:
      return mistake(
          place,
          fmt::format("other machines can connect to {}, and without a secret each of them "
                      "can read and change all jobs: make a secret with tubectl cluster "
                      "secret and set cluster.secret_file on all nodes, or set cluster.tls; to do "
                      "without, set cluster.insecure = \"yes\"",
                      address));
    case Exposure::without_encryption:
      break;
  }
  return mistake(place, fmt::format("{} is neither loopback nor private, and nodes do not encrypt "
                                    "without cluster.tls; to allow it, set cluster.insecure = "
                                    "\"yes\"",
                                    address));
}

Result<void> check_tls(const ClusterTlsSettings& tls, const Places& places) {
  struct File {
    std::string_view key;
    const std::string& path;
  };
  const auto files = std::to_array<File>({{"cluster.tls.certificate", tls.certificate},
                                          {"cluster.tls.key", tls.key},
                                          {"cluster.tls.ca", tls.ca}});
  const auto is_set = [](const File& file) { return !file.path.empty(); };
  const auto there = std::ranges::find_if(files, is_set);
  const auto missing = std::ranges::find_if_not(files, is_set);
  if (there == files.end() || missing == files.end()) return {};
  return mistake(places.key(there->key), fmt::format("{} is set without {}: all three files of "
                                                     "cluster.tls are needed, or none",
                                                     there->key, missing->key));
}

// As clash(), and one of them may be for all addresses of its family.
bool overlap(const Listen& one, const Listen& other) {
  if (clash(one, other)) return true;
  if (one.kind != Listen::Kind::tcp || other.kind != Listen::Kind::tcp) return false;
  const auto is_ipv6 = [](const Listen& listen) {
    return listen.host.find(':') != std::string::npos;
  };
  return one.port != 0 && one.port == other.port && is_ipv6(one) == is_ipv6(other) &&
         (is_wildcard(one) || is_wildcard(other));
}

// Found here, since the kernel would report only that the address is in use.
Result<void> check_not_taken(const Listen& address, const Settings& settings, const Places& places,
                             std::string_view key) {
  for (std::size_t i = 0; i < settings.listeners.size(); ++i) {
    const Listen& listen = settings.listeners[i];
    if (!overlap(listen, address)) continue;
    return mistake(places.key(key), fmt::format("clients already connect to {} ({})",
                                                to_string(listen), places.listener(i)));
  }
  if (!settings.http_listen || !overlap(*settings.http_listen, address)) return {};
  return mistake(places.key(key),
                 fmt::format("HTTP is already served at {} ({})", to_string(*settings.http_listen),
                             places.mention("http.listen")));
}

// Where a name leads is known only to the other nodes: it counts as a host that other machines can
// reach, and cluster.listen shows how far.
Result<void> check_named(const NamedAddress& address, const std::string& place) {
  if (address.port == 0) return mistake(place, fmt::format("{} has no port", to_string(address)));
  return {};
}

Result<void> check_addresses(const Settings& settings, const Places& places) {
  const ClusterSettings& cluster = settings.cluster;
  const std::string place = places.key("cluster.listen");
  const auto tcp = [](const Listen& listen, const std::string& where) -> Result<void> {
    if (listen.kind == Listen::Kind::tcp) return {};
    return mistake(where, fmt::format("{}: nodes connect by TCP", to_string(listen)));
  };
  TRY(tcp(*cluster.listen, place));
  if (cluster.address.empty()) {
    TRY(check_reachable(*cluster.listen, place,
                        "; set cluster.address to what the other nodes connect to"));
    TRY(check_exposure(exposure_of(*cluster.listen, cluster), to_string(*cluster.listen), place));
  } else {
    const std::string where = places.key("cluster.address");
    const auto named = TRY(parse_named(cluster.address, kDefaultClusterPort));
    if (named) {
      TRY(check_named(*named, where));
      TRY(check_exposure(exposure_of(*cluster.listen, cluster), to_string(*cluster.listen), place));
      TRY(check_exposure(exposure_of_reachable(cluster), to_string(*named), where));
      return check_not_taken(*cluster.listen, settings, places, "cluster.listen");
    }
    const Listen address = TRY(parse_listen(cluster.address, kDefaultClusterPort));
    TRY(tcp(address, where));
    TRY(check_reachable(address, where, ""));
    TRY(check_exposure(exposure_of(*cluster.listen, cluster), to_string(*cluster.listen), place));
    TRY(check_exposure(exposure_of(address, cluster), to_string(address), where));
  }
  return check_not_taken(*cluster.listen, settings, places, "cluster.listen");
}

Result<void> check_admin(const Settings& settings, const Places& places) {
  const auto& admin = settings.cluster.admin;
  if (!admin) return {};
  if (admin->kind != Listen::Kind::unix_socket) {
    return mistake(places.key("cluster.admin"),
                   fmt::format("{} is not a unix socket; give unix:PATH", to_string(*admin)));
  }
  return check_not_taken(*admin, settings, places, "cluster.admin");
}

}  // namespace

bool is_exposed(const ClusterSettings& cluster) {
  if (!cluster.enabled()) return false;
  const auto lacks = [&](const Listen& address) {
    return exposure_of(address, cluster) != Exposure::none;
  };
  const auto address = parse_listen(cluster.address, kDefaultClusterPort);
  if (cluster.listen && lacks(*cluster.listen)) return true;
  if (cluster.address.empty()) return false;
  return address ? lacks(*address) : exposure_of_reachable(cluster) != Exposure::none;
}

Result<void> refuse_cluster(const CommandLine& line, const Settings& settings,
                            const Places& places) {
  constexpr std::string_view kReason =
      "this tubed is built without cluster mode; see tubed --version";
  if (is_cluster_task(line.task)) {
    const auto row = std::ranges::find(options_table(), line.task, &Option::task);
    return mistake(std::string(row->long_flag), kReason);
  }
  const Setting* const changed = first_changed(settings, true);
  if (changed == nullptr) return {};
  return mistake(places.key(changed->key), kReason);
}

Result<void> check_cluster(const CommandLine& line, const Settings& settings,
                           const Places& places) {
  if (!settings.cluster.enabled()) {
    const Setting* const changed = first_changed(settings, false);
    if (changed == nullptr) return {};
    return mistake(places.key(changed->key),
                   "cluster.name is not set, so the server is in no cluster");
  }
  TRY(check_name(line, settings, places));
  TRY(check_tls(settings.cluster.tls, places));
  TRY(check_addresses(settings, places));
  TRY(check_admin(settings, places));
  if (settings.queue.job_bytes <= kMaxClusterJobBytes) return {};
  return mistake(
      places.key("limits.job_bytes"),
      fmt::format("{} is above {}, the maximum in a cluster ({})", settings.queue.job_bytes,
                  kMaxClusterJobBytes, places.mention("cluster.name")));
}

}  // namespace tubed::config
