// Settings: everything that an operator can configure, as plain values.
//
// The rows of config/table.h define keys, bounds, defaults and words.
// Invariant: values that came through load_settings() are within their rows' bounds.
//
// Sizes are bytes and times are Durations. A value of zero often means "no limit"; the member's
// comment says where. Settings are copied on a reload, so they own their text and refer to nothing
// else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log_level.h"
#include "base/time.h"
#include "config/listen.h"
#include "facts/policy.h"
#include "facts/role.h"
#include "facts/types.h"

namespace tubed {

// When a server in drain mode exits by itself. In the order of the words in the table.
enum class DrainExit : std::uint8_t { never, when_idle, when_empty };
// Reserves while a server drains that exits when it is idle. In the order of the words in the
// table.
enum class DrainReserves : std::uint8_t { refuse, serve };

// The extent of the HTTP API. In the order of the words in config/types.h.
enum class HttpApiLevel : std::uint8_t { off, read, full };

// The HTTP API and the console, which listen with /metrics.
struct HttpApiSettings {
  HttpApiLevel api{};
  AuthMode auth{};
  std::string role;                // of all clients, without authentication; empty: none
  std::vector<std::string> hosts;  // names of the server that clients may use
  Duration keep_alive{};           // of connections between two requests; zero: none
  std::string title;               // of the server, in the console; empty: none
  std::string color;               // one of kHttpColors or #rrggbb; empty: none
};

// How a node that does not serve treats its clients. In the order of the words in the table.
enum class ClusterClients : std::uint8_t { forward, refuse };
// In the order of the words in the table.
enum class ClusterInsecure : std::uint8_t { no, yes };

// The largest limits.job_bytes in a cluster: an entry with a job must reach the other nodes within
// a part of an election timeout.
inline constexpr std::uint32_t kMaxClusterJobBytes = std::uint32_t{8} << 20;
// Permissions of the socket for operators, which decide who may change the cluster.
inline constexpr unsigned kClusterAdminMode = 0600;

// Files in PEM, with which the nodes of a cluster encrypt and verify each other: all three or none.
struct ClusterTlsSettings {
  std::string certificate;  // of this node, with cluster.name as an alternative name
  std::string key;
  std::string ca;  // that signs the certificates of all nodes

  bool enabled() const { return !certificate.empty(); }
  friend bool operator==(const ClusterTlsSettings&, const ClusterTlsSettings&) = default;
};

// The cluster that the server is a node of.
struct ClusterSettings {
  std::string name;              // of this node; empty: the server is in no cluster
  std::optional<Listen> listen;  // for the other nodes; TCP
  std::string address;           // HOST:PORT, how they reach it; empty: as `listen`
  std::string secret_file;       // that all nodes know; empty: none
  ClusterTlsSettings tls;
  std::optional<Listen> admin;  // unix socket for operators, of kClusterAdminMode; none: none
  ClusterClients clients{};
  Duration leader_wait{};  // of clients, for a leader that they are passed to
  Duration election_timeout{};
  Duration hold_grace{};         // of reservations after a change of the leader
  std::uint64_t log_size = 0;    // bytes of the raft log
  std::uint64_t fetch_rate = 0;  // bytes per second that a node sends of its state; 0: by the links
  ClusterInsecure insecure{};    // without secret and TLS, or public addresses without TLS

  bool enabled() const { return !name.empty(); }
};

// Two values of Settings::journal_sync; any other is an interval.
inline constexpr Duration kSyncAlways = Duration::zero();
inline constexpr Duration kSyncNever = Duration::max();

// A role, and the clients that have it.
struct RoleSettings {
  Role role;
  std::vector<std::string> tokens;    // names of tokens in the file of tokens
  std::vector<std::string> subjects;  // of certificates: "CN=mailer,O=example" or "DNS:mailer"
  std::vector<std::string> users;     // names or numbers, of the clients of unix sockets
  std::vector<std::string> groups;    // the same
  friend bool operator==(const RoleSettings&, const RoleSettings&) = default;
};

struct Settings {
  // Every setting at its row's default, and one listener at the default address.
  Settings();

  std::string user;               // empty: keep the user of the process
  std::string pid_file;           // empty: none
  std::string journal_directory;  // empty: no journal, jobs are in memory only
  Duration journal_sync{};
  std::uint64_t journal_segment_bytes = 0;
  std::uint64_t journal_max_bytes = 0;  // zero: no limit
  Limits queue;
  std::uint32_t connections = 0;
  std::uint32_t line_bytes = 0;     // with the line end
  std::uint64_t output_bytes = 0;   // buffered replies of one client
  std::uint64_t output_memory = 0;  // buffered replies of all clients
  std::uint64_t input_memory = 0;   // unprocessed input of all clients
  Duration idle_timeout{};          // zero: never
  Duration stall_timeout{};
  Duration shutdown_timeout{};
  DrainExit drain_exit{};
  DrainReserves drain_reserves{};
  Duration drain_timeout{};           // zero: no limit
  std::optional<Listen> http_listen;  // none: no HTTP listener
  Duration tcp_keepalive{};
  std::uint32_t tcp_backlog = 0;
  LogLevel log_level{};
  LogFormat log_format{};
  TlsSettings http_tls;
  HttpApiSettings http;
  ClusterSettings cluster;
  std::string tokens;             // file; empty: no listener takes tokens
  bool watch_tls = false;         // notice changes of the files of certificates, as a reload does
  bool watch_tokens = false;      // the same of the file of tokens
  Duration handshake_timeout{};   // of TLS and of authentication
  std::uint32_t handshakes = 0;   // under way at once, as many again for authentication
  std::vector<Listen> listeners;  // never empty
  bool default_listener = true;   // no listener is configured: `listeners` has the default
  std::vector<TubePattern> policies;
  std::vector<RoleSettings> roles;

  // Compares row by row, the listeners, whether they are configured or not, the policies and the
  // roles.
  friend bool operator==(const Settings& one, const Settings& other);
};

// The size of the journal's files: the setting, or room for eight of the largest jobs if that is
// more. On a full disk, the facts that must be written then still fit into one segment.
std::uint64_t segment_bytes_in_force(const Settings& settings);

}  // namespace tubed
