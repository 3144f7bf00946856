// The rows, each with the path to its member of Settings: same<&Settings::queue, &Limits::tubes>()
// makes the row's get and set, which convert between the member's type and Value. Its name says
// whether all nodes of a cluster need the same value (same) or not (own). The checks at the
// end hold when this file compiles: no two rows share a key or a flag, the rows of a section are
// together, and the settings that flags name exist.
//
// To read a setting: the row gives the key, the type with its bounds, the default, whether a reload
// applies it, and the documentation, from which --help and the pages are generated. The order of
// the rows is the order of the documentation. A row that refers to a member of Settings by its path
// needs no code of its own; the keys of listeners and roles (elements.cc) have tables of the same
// kind.
#include "config/table.h"

#include <algorithm>
#include <array>

#include "config/member_value.h"
#include "config/option_rows.h"
#include "config/types.h"

namespace tubed::config {
namespace {

using namespace std::chrono_literals;
using namespace types;

// `Path` leads from Settings to a member: one member pointer, or two for a member of a struct.
// A node of a cluster may have a value of its own, as the setting is about its machine, its
// addresses and files, or the connections that it takes.
template <auto... Path>
constexpr Setting own(Setting setting) {
  setting.get = [](const Settings& settings) { return to_value((settings.*....*Path)); };
  setting.set = [](Settings& settings, const Value& value) {
    assign((settings.*....*Path), value);
  };
  return setting;
}

// All nodes of a cluster need the same value: with another, the queue would change when another
// node leads. Nodes send each other a digest of the value, so it is neither a secret nor a path.
template <auto... Path>
constexpr Setting same(Setting setting) {
  setting = own<Path...>(setting);
  setting.same_on_all_nodes = true;
  return setting;
}

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;
constexpr std::int64_t kGiB = 1024 * kMiB;
constexpr std::int64_t kTiB = 1024 * kGiB;
constexpr std::int64_t kPiB = 1024 * kTiB;
constexpr std::int64_t kMaxLineBytes = 64 * kKiB;

constexpr auto kLogLevels = std::to_array<std::string_view>({"error", "warning", "info", "debug"});
constexpr auto kDrainExits = std::to_array<std::string_view>({"never", "when-idle", "when-empty"});
constexpr auto kDrainReserves = std::to_array<std::string_view>({"refuse", "serve"});
constexpr auto kLogFormats = std::to_array<std::string_view>({"auto", "text", "journald", "json"});
constexpr auto kClusterClients = std::to_array<std::string_view>({"forward", "refuse"});
constexpr auto kClusterInsecure = std::to_array<std::string_view>({"no", "yes"});

constexpr std::int64_t nanoseconds(Duration duration) {
  return duration.count();
}

// The defaults of the queue's limits are the engine's.
constexpr Limits kQueue;

constexpr auto kSettings = std::to_array<Setting>({
    own<&Settings::user>({.key = "user",
                          .short_flag = 'u',
                          .type = text_or_none("NAME"),
                          .default_text = "",
                          .reloadable = false,
                          .doc = "Switch to this user after the sockets are open. Empty: keep the "
                                 "user that started the server."}),
    own<&Settings::pid_file>(
        {.key = "pid_file",
         .type = text_or_none("FILE"),
         .default_text = "",
         .reloadable = false,
         .takes_empty_flag = false,
         .doc = "Write the process id to this file while serving; --drain reads it to find the "
                "server. Empty: no file, and --drain asks systemd."}),
    own<&Settings::journal_directory>(
        {.key = "journal.directory",
         .short_flag = 'b',
         .type = text_or_none("DIR"),
         .default_text = "",
         .reloadable = false,
         .takes_empty_flag = false,
         .doc = "Keep a journal in this directory, so that jobs survive a restart. Empty: jobs are "
                "kept in memory only."}),
    own<&Settings::journal_sync>(
        {.key = "journal.sync",
         .type = sync(1ms, 1h),
         .default_number = nanoseconds(50ms),
         .doc =
             "When a change is acknowledged: with always, after it is synced to disk; with a time "
             "or never, after it is written to the kernel. A time is the interval between syncs; "
             "with never, the kernel decides when to sync. Every value keeps acknowledged jobs "
             "when the server crashes; only always keeps them when the power fails. It has no "
             "effect in a cluster: see cluster.name."}),
    own<&Settings::journal_segment_bytes>(
        {.key = "journal.segment_size",
         .short_flag = 's',
         .type = bytes(4 * kKiB, kGiB),
         .default_number = 10 * kMiB,
         .reloadable = false,
         .doc = "Size of one file of the journal. The server uses a larger size if eight jobs of "
                "limits.job_bytes do not fit."}),
    same<&Settings::journal_max_bytes>(
        {.key = "journal.max_bytes",
         .type = bytes(0, kPiB),
         .default_number = 0,
         .doc =
             "Disk space for the journal; 0 means no limit. A put that would exceed it is answered "
             "OUT_OF_MEMORY; all other commands continue to work. At least four segments."}),
    same<&Settings::connections>({.key = "limits.connections",
                                  .type = count("connections", 1, 1'000'000),
                                  .default_number = 10'000,
                                  .doc = "Clients connected at once. A further client receives "
                                         "OUT_OF_MEMORY and is disconnected."}),
    own<&Settings::handshakes>(
        {.key = "limits.handshakes",
         .type = count("connections", 1, 1'000'000),
         .default_number = 1'024,
         .doc = "Connections at once whose TLS handshake is not complete, and as many again that "
                "have not authenticated, or whose PROXY header is not complete. Beyond it the "
                "oldest of them is closed."}),
    same<&Settings::line_bytes>(
        {.key = "limits.line_bytes",
         .type = bytes(224, kMaxLineBytes),
         .default_number = 224,
         .doc = "Longest command line, with its line end. A longer line is answered BAD_FORMAT."}),
    same<&Settings::queue, &Limits::job_bytes>(
        {.key = "limits.job_bytes",
         .short_flag = 'z',
         .type = bytes(1, kMaxJobBytesCeiling),
         .default_number = kQueue.job_bytes,
         .doc = "Largest body of a job. A larger body is answered JOB_TOO_BIG."}),
    same<&Settings::queue, &Limits::job_memory_bytes>(
        {.key = "limits.job_memory",
         .type = bytes(kMiB, kPiB),
         .default_number = kQueue.job_memory_bytes,
         .doc = "Memory for all jobs, bodies and bookkeeping. A put beyond it is answered "
                "OUT_OF_MEMORY."}),
    same<&Settings::queue, &Limits::tubes>(
        {.key = "limits.tubes",
         .type = count("tubes", 1, 100'000'000),
         .default_number = kQueue.tubes,
         .doc = "Tubes that exist at once. A command that would create another tube is answered "
                "OUT_OF_MEMORY."}),
    same<&Settings::queue, &Limits::policies>(
        {.key = "limits.policies",
         .type = count("values", 0, 1'000'000),
         .default_number = kQueue.policies,
         .doc = "Values that clients have set by tube-policy, of all tubes. A further value is "
                "answered OUT_OF_MEMORY."}),
    same<&Settings::queue, &Limits::session_watches>(
        {.key = "limits.client_watches",
         .type = count("tubes", 1, 1'000'000),
         .default_number = kQueue.session_watches,
         .doc = "Tubes that one client may watch. A watch beyond it is answered OUT_OF_MEMORY."}),
    same<&Settings::queue, &Limits::watches>(
        {.key = "limits.watches",
         .type = count("entries", 1, 1'000'000'000),
         .default_number = kQueue.watches,
         .doc = "Entries of all clients' watch lists together. A watch beyond it is answered "
                "OUT_OF_MEMORY."}),
    same<&Settings::output_bytes>(
        {.key = "limits.output_bytes",
         .type = bytes(64 * kKiB, 4 * kGiB),
         .default_number = kMiB,
         .doc = "Replies buffered for one client. Beyond it the server reads no further commands "
                "of the client until the client reads its replies."}),
    same<&Settings::output_memory>(
        {.key = "limits.output_memory",
         .type = bytes(kMiB, kPiB),
         .default_number = kGiB,
         .doc = "Replies buffered for all clients together. Beyond it the server disconnects the "
                "client that has not read for the longest time."}),
    same<&Settings::input_memory>({.key = "limits.input_memory",
                                   .type = bytes(kMiB, kPiB),
                                   .default_number = 256 * kMiB,
                                   .doc = "Unprocessed input buffered for all clients together. "
                                          "Near this limit the server reads less at a time."}),
    same<&Settings::queue, &Limits::work_per_turn>(
        {.key = "limits.work_per_turn",
         .type = count("jobs or commands", 1, 1'000'000),
         .default_number = kQueue.work_per_turn,
         .doc = "Jobs or commands processed for one client before the server continues with other "
                "clients."}),
    same<&Settings::idle_timeout>(
        {.key = "timeouts.idle",
         .type = duration(0s, 24h * 365),
         .default_number = nanoseconds(0s),
         .doc = "Disconnect a client that has sent nothing for this long; 0 means never. A client "
                "that holds a job, waits in reserve or has unread replies is not idle; a client in "
                "the middle of a put is."}),
    same<&Settings::stall_timeout>(
        {.key = "timeouts.stall",
         .type = duration(1s, 24h),
         .default_number = nanoseconds(60s),
         .doc = "Disconnect a client that for this long has read no byte of its pending replies, "
                "or has sent no byte of a body that it began to send."}),
    own<&Settings::handshake_timeout>(
        {.key = "timeouts.handshake",
         .type = duration(100ms, 1h),
         .default_number = nanoseconds(10s),
         .doc = "Disconnect a client whose TLS handshake is not complete after this long, or that "
                "has not authenticated this long after it, or a proxy whose PROXY header is not "
                "complete after this long."}),
    own<&Settings::shutdown_timeout>(
        {.key = "timeouts.shutdown",
         .type = duration(0s, 1h),
         .default_number = nanoseconds(5s),
         .doc = "After SIGTERM, wait at most this long for clients to read their last replies."}),
    own<&Settings::drain_exit>(
        {.key = "drain.exit",
         .type = choice(kDrainExits),
         .default_number = static_cast<std::int64_t>(DrainExit::never),
         .doc = "When a server in drain mode exits by itself: when-idle, as soon as no job is "
                "reserved; when-empty, as soon as no job is left; or never."}),
    own<&Settings::drain_reserves>(
        {.key = "drain.reserves",
         .type = choice(kDrainReserves),
         .default_number = static_cast<std::int64_t>(DrainReserves::refuse),
         .doc = "With drain.exit = \"when-idle\", whether a server in drain mode gives out jobs: "
                "refuse answers reserves as if no job were ready; serve gives out jobs, so the "
                "server may not become idle before drain.timeout."}),
    own<&Settings::drain_timeout>(
        {.key = "drain.timeout",
         .type = duration(0s, 24h * 7),
         .default_number = nanoseconds(5min),
         .doc = "With drain.exit, exit after this long in drain mode even if jobs are left, with "
                "exit code 79: jobs that are reserved then are interrupted. 0 means no limit. "
                "Without a journal, the jobs that are left are lost."}),
    own<&Settings::http_listen>(
        {.key = "http.listen",
         .type = {.kind = Kind::address, .port = kDefaultHttpPort, .may_be_empty = true},
         .default_text = "",
         .reloadable = false,
         .takes_empty_flag = false,
         .doc = "Serve /metrics, /healthz, /readyz and /leader, and what http.api adds, over HTTP "
                "at HOST:PORT, [HOST]:PORT or unix:PATH. A host is numeric; the default port is "
                "11380. Empty: no HTTP listener.",
         .service_hint = "For the service, use systemctl enable tubed-http.socket instead."}),
    same<&Settings::http, &HttpApiSettings::api>(
        {.key = "http.api",
         .type = choice(kHttpApiLevels),
         .default_number = static_cast<std::int64_t>(HttpApiLevel::off),
         .doc = "Serve the console and its API on the HTTP listener: read, to show the queue and "
                "its jobs; full, to change them too; or off. Without http.auth, each client that "
                "can connect may do this."}),
    same<&Settings::http, &HttpApiSettings::auth>(
        {.key = "http.auth",
         .type = choice(kAuthentications),
         .default_number = static_cast<std::int64_t>(AuthMode::none),
         .doc = "How clients of HTTP show which role they have: token, by Authorization: Bearer "
                "with a token of auth.tokens; mtls, by their certificate; peer, by their user or "
                "group on a unix socket; or none. /metrics then needs a role with inspect; "
                "/healthz, /readyz and /leader need none."}),
    same<&Settings::http, &HttpApiSettings::role>(
        {.key = "http.role",
         .type = text("NAME"),
         .default_text = "",
         .doc = "Without http.auth: the [[role]] of all clients of HTTP. The default is none, and "
                "they may do everything that http.api allows."}),
    own<&Settings::http, &HttpApiSettings::hosts>(
        {.key = "http.hosts",
         .type = list_or_none("NAMES"),
         .doc =
             "Names under which browsers and programs may reach the console, its API and /metrics, "
             "in addition to localhost and numeric addresses. A request for another name is "
             "refused, so that no web page can reach the server by a name of its own."}),
    own<&Settings::http, &HttpApiSettings::title>(
        {.key = "http.title",
         .type = text_or_none("TEXT"),
         .default_text = "",
         .doc = "What the console calls this server, in its header, in the title of the page and "
                "where it asks before an action: for example production. At most 64 bytes. Empty: "
                "the console shows the name of the host alone."}),
    own<&Settings::http, &HttpApiSettings::color>(
        {.key = "http.color",
         .type = text_or_none("COLOR"),
         .default_text = "",
         .doc = "The color of this server in the console, to distinguish servers: red, orange, "
                "yellow, green, teal, blue, purple, pink, brown, gray or #rrggbb. The console "
                "writes on it in black or white, whichever is easier to read. Empty: none."}),
    own<&Settings::http, &HttpApiSettings::keep_alive>(
        {.key = "http.keep_alive",
         .type = duration(0s, 1min),
         .default_number = nanoseconds(10s),
         .doc = "How long a connection of HTTP stays open after an answer, for the next request of "
                "its client, in whole seconds. 0 closes each connection after its answer."}),
    same<&Settings::queue, &Limits::tubes_with_metrics>(
        {.key = "http.max_tubes",
         .type = count("tubes", 0, 1'000'000),
         .default_number = 1'000,
         .doc =
             "Tubes with metrics of their own. Further tubes share the metrics named \"other\"."}),
    same<&Settings::queue, &Limits::metrics_retention>(
        {.key = "http.tube_linger",
         .type = duration(0s, 24h * 7),
         .default_number = nanoseconds(10min),
         .doc = "How long the metrics of a tube are kept after the tube is deleted. If the tube is "
                "created again within this time, its counters continue."}),
    own<&Settings::http_tls, &TlsSettings::certificates>(
        {.key = "http.tls.certificate",
         .type = list("FILES"),
         .doc = "Serve HTTP over TLS with these certificates; see tls.certificate of [[listen]]. "
                "The default is none: without TLS."}),
    own<&Settings::http_tls, &TlsSettings::keys>(
        {.key = "http.tls.key",
         .type = list("FILES"),
         .doc = "The private keys of the certificates; see tls.key of [[listen]]."}),
    own<&Settings::http_tls, &TlsSettings::client_ca>(
        {.key = "http.tls.client_ca",
         .type = text("FILE"),
         .default_text = "",
         .doc = "Serve HTTP only to clients with a certificate that one of these has signed. "
                "The default is none: to all."}),
    own<&Settings::http_tls, &TlsSettings::min_version>(
        {.key = "http.tls.min_version",
         .type = choice(kTlsVersions),
         .default_number = static_cast<std::int64_t>(TlsVersion::v1_2),
         .doc = "The oldest version of TLS that HTTP is served over."}),
    own<&Settings::tokens>(
        {.key = "auth.tokens",
         .type = text_or_none("FILE"),
         .default_text = "",
         .doc = "The file of the tokens that clients may authenticate with: a line for each, with "
                "its name and its hash, as tubectl token new prints it. Others must not be able to "
                "read the file. Empty: no listener takes tokens."}),
    own<&Settings::watch_tokens>(
        {.key = "auth.watch",
         .type = truth(),
         .doc = "Use new tokens as soon as the file auth.tokens has changed, without a reload. "
                "While the file has a mistake, the old tokens stay."}),
    own<&Settings::watch_tls>(
        {.key = "tls.watch",
         .type = truth(),
         .doc = "Use new certificates, keys and CAs of all listeners, HTTP included, and of "
                "cluster.tls, as soon as their files have changed, without a reload: for new "
                "connections. While a pair "
                "does not match, or a file has a mistake, the old ones stay. The directories of "
                "the files are watched by inotify; the user of the server must be able to read "
                "them."}),
    own<&Settings::tcp_keepalive>(
        {.key = "tcp.keepalive",
         .type = duration(1s, 2h),
         .default_number = nanoseconds(60s),
         .doc = "Idle time on a connection before the first keepalive probe."}),
    own<&Settings::tcp_backlog>(
        {.key = "tcp.backlog",
         .type = count("connections", 1, 65'535),
         .default_number = 4096,
         .reloadable = false,
         .doc = "Connections that the kernel queues until the server accepts them. The kernel may "
                "apply a lower limit (net.core.somaxconn)."}),
    own<&Settings::log_level>({.key = "log.level",
                               .type = choice(kLogLevels),
                               .default_number = static_cast<std::int64_t>(LogLevel::info),
                               .doc = "The least important level of messages that is logged."}),
    own<&Settings::log_format>({.key = "log.format",
                                .type = choice(kLogFormats),
                                .default_number = static_cast<std::int64_t>(LogFormat::automatic),
                                .doc = "Format of log lines. auto is journald if stderr is "
                                       "connected to systemd's journal, and text otherwise."}),
    own<&Settings::cluster, &ClusterSettings::name>(
        {.key = "cluster.name",
         .type = text_or_none("NODE"),
         .default_text = "",
         .reloadable = false,
         .takes_empty_flag = false,
         .doc = "The name of this server in its cluster: 1 to 32 letters, digits, dots, "
                "underscores and hyphens, and no other node has it. The nodes of a cluster hold "
                "the same jobs, and one of them serves clients: the leader. A change is "
                "acknowledged after a majority of the nodes has it on disk; journal.sync has no "
                "effect. A node needs journal.directory and cluster.listen. Empty: the server is "
                "in no cluster, and the other settings of this section keep their defaults.",
         .service_hint =
             "For the service, first install its drop-in: see tubed(8), CLUSTER MODE."}),
    own<&Settings::cluster, &ClusterSettings::listen>(
        {.key = "cluster.listen",
         .type = {.kind = Kind::address, .port = kDefaultClusterPort, .may_be_empty = true},
         .default_text = "",
         .reloadable = false,
         .takes_empty_flag = false,
         .doc = "Listen for the other nodes at HOST:PORT or [HOST]:PORT. A host is numeric; the "
                "default port is 11302. An address other than loopback needs cluster.tls, "
                "cluster.secret_file or cluster.insecure. Without cluster.tls, nodes do not "
                "encrypt, so use a network that only machines you trust can read."}),
    own<&Settings::cluster, &ClusterSettings::address>(
        {.key = "cluster.address",
         .type = {.kind = Kind::address,
                  .port = kDefaultClusterPort,
                  .may_be_empty = true,
                  .may_be_named = true},
         .default_text = "",
         .reloadable = false,
         .takes_empty_flag = false,
         .doc = "How the other nodes reach this node, as HOST:PORT or [HOST]:PORT, if that is not "
                "the address that it listens on. A host is numeric, or a name that the other nodes "
                "resolve each time they connect, so that the node may move. After a change of this "
                "setting, tubectl "
                "cluster set-address gives the cluster the new address. An address with a name "
                "needs cluster.secret_file or cluster.insecure. Empty: the address of "
                "cluster.listen, which then is one host and not 0.0.0.0 or [::]."}),
    own<&Settings::cluster, &ClusterSettings::secret_file>(
        {.key = "cluster.secret_file",
         .type = text_or_none("FILE"),
         .default_text = "",
         .takes_empty_flag = false,
         .doc = "The file of the secret with which nodes prove to each other that they belong to "
                "the cluster; all nodes need the same. Each line has a secret as tubectl cluster "
                "secret prints it: one or, while the secret is changed, two. A node proves the "
                "first and accepts both. Only the user of the server may be able to read the "
                "file, unless it is a credential of systemd. Empty: without cluster.tls, nodes do "
                "not authenticate, which is allowed on loopback addresses, and with "
                "cluster.insecure on others."}),
    own<&Settings::cluster, &ClusterSettings::tls, &ClusterTlsSettings::certificate>(
        {.key = "cluster.tls.certificate",
         .type = text_or_none("FILE"),
         .default_text = "",
         .takes_empty_flag = false,
         .doc =
             "Connect to other nodes over TLS alone, with this certificate: a PEM file that "
             "begins with the node's own certificate, followed by those of intermediate "
             "authorities. cluster.name must be one of its alternative names (DNS). The node "
             "uses the certificate for connections in both directions. All nodes need "
             "cluster.tls.certificate, cluster.tls.key and cluster.tls.ca, or none of them does. "
             "Empty: without TLS."}),
    own<&Settings::cluster, &ClusterSettings::tls, &ClusterTlsSettings::key>(
        {.key = "cluster.tls.key",
         .type = text_or_none("FILE"),
         .default_text = "",
         .takes_empty_flag = false,
         .doc = "The private key of the certificate: a PEM file that others must not be able to "
                "read, without a passphrase."}),
    own<&Settings::cluster, &ClusterSettings::tls, &ClusterTlsSettings::ca>(
        {.key = "cluster.tls.ca",
         .type = text_or_none("FILE"),
         .default_text = "",
         .takes_empty_flag = false,
         .doc = "The authorities that sign the certificates of the nodes: a PEM file. Use an "
                "authority for this cluster alone, because each certificate that it signs is that "
                "of a node."}),
    own<&Settings::cluster, &ClusterSettings::admin>(
        {.key = "cluster.admin",
         .type = {.kind = Kind::address, .may_be_empty = true},
         .default_text = "",
         .reloadable = false,
         .takes_empty_flag = false,
         .doc = "The unix socket unix:PATH that tubectl cluster connects to. Only the user of the "
                "server and root may connect to it and so change the cluster. Empty: none, and "
                "the members of the cluster cannot be changed on this node.",
         .service_hint = "For the service, use \"unix:/run/tubed/admin\"."}),
    same<&Settings::cluster, &ClusterSettings::clients>(
        {.key = "cluster.clients",
         .type = choice(kClusterClients),
         .default_number = static_cast<std::int64_t>(ClusterClients::forward),
         .reloadable = false,
         .doc = "How a node that is not the leader treats clients: forward passes what they send "
                "to the leader, and its replies to them, so that a client needs the address of "
                "one node; refuse closes each connection after 0.15 s, so that the client tries "
                "the next node."}),
    same<&Settings::cluster, &ClusterSettings::leader_wait>(
        {.key = "cluster.leader_wait",
         .type = duration(1s, 60s),
         .default_number = nanoseconds(5s),
         .doc = "How long a client that is to be passed to the leader waits while no leader is "
                "known or the leader cannot be reached. Then its connection is closed."}),
    same<&Settings::cluster, &ClusterSettings::election_timeout>(
        {.key = "cluster.election_timeout",
         .type = duration(100ms, 10s),
         .default_number = nanoseconds(300ms),
         .reloadable = false,
         .doc = "How long a node hears nothing from the leader before it starts an election. All "
                "nodes need the same value. A lower value replaces a leader that has failed "
                "sooner; a higher one keeps the leader while the network or a disk is slow."}),
    same<&Settings::cluster, &ClusterSettings::hold_grace>(
        {.key = "cluster.hold_grace",
         .type = duration(0s, 1h),
         .default_number = nanoseconds(10s),
         .doc = "After a change of the leader, how long a reserved job waits for its worker to "
                "connect to the new leader before it is ready again, or less if its TTR ends "
                "before; 0 means that it is ready at once."}),
    same<&Settings::cluster, &ClusterSettings::log_size>(
        {.key = "cluster.log_size",
         .type = bytes(64 * kMiB, kTiB),
         .default_number = kGiB,
         .doc = "Disk space and memory for the changes that a node keeps for nodes that lag, in "
                "addition to its journal; it keeps 64 MiB if none lags. A node that lags by more "
                "fetches the whole journal of another."}),
    own<&Settings::cluster, &ClusterSettings::fetch_rate>(
        {.key = "cluster.fetch_rate",
         .type = bytes(0, kTiB),
         .default_number = 0,
         .doc = "Bytes per second that this node sends to a node that fetches its journal; 0 "
                "means half of what its slowest measured link carries, or no limit if no link was "
                "measured."}),
    own<&Settings::cluster, &ClusterSettings::insecure>(
        {.key = "cluster.insecure",
         .type = choice(kClusterInsecure),
         .default_number = static_cast<std::int64_t>(ClusterInsecure::no),
         .reloadable = false,
         .doc = "With yes, cluster.listen and cluster.address may be any addresses, also without "
                "cluster.tls and cluster.secret_file: then each machine that can connect to them "
                "can read and change all jobs. With cluster.tls, no address needs this permission. "
                "With a secret alone, private addresses do not need it, and on other addresses "
                "each machine on the way can read the jobs."}),
});

// Keys that differ only in '.' and '_' have the same flag.
constexpr bool same_flag(std::string_view one, std::string_view other) {
  const auto dashed = [](char c) { return c == '.' || c == '_' ? '-' : c; };
  return std::ranges::equal(one, other, {}, dashed, dashed);
}

// Flags are compared with dots and underscores as dashes, since both spellings become the same
// flag.
constexpr bool names_are_unique() {
  for (std::size_t i = 0; i < kSettings.size(); ++i) {
    const auto& one = kSettings[i];
    for (std::size_t j = 0; j < i; ++j) {
      if (same_flag(one.key, kSettings[j].key)) return false;
      if (one.short_flag && one.short_flag == kSettings[j].short_flag) return false;
    }
    for (const auto& option : kOptions) {
      if (one.short_flag && one.short_flag == option.short_flag) return false;
      if (!option.long_flag.empty() && same_flag(one.key, option.long_flag.substr(2))) return false;
    }
  }
  return true;
}

// In TOML a key after a section header belongs to that section, so the keys without a section have
// to come first.
constexpr bool sections_are_contiguous() {
  for (std::size_t i = 1; i < kSettings.size(); ++i) {
    const auto section = kSettings[i].section();
    if (section == kSettings[i - 1].section()) continue;
    if (section.empty()) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if (kSettings[j].section() == section) return false;
    }
  }
  return true;
}

// A row that sets a setting must name it; the setting's type then parses the argument.
constexpr bool options_name_settings() {
  return std::ranges::all_of(kOptions, [](const Option& option) {
    const auto found = std::ranges::find(kSettings, option.setting, &Setting::key);
    return option.setting.empty() ? option.action != Action::sets : found != kSettings.end();
  });
}

static_assert(names_are_unique());
static_assert(options_name_settings());
static_assert(sections_are_contiguous());

}  // namespace

std::span<const Setting> settings_table() {
  return kSettings;
}

std::span<const Option> options_table() {
  return kOptions;
}

}  // namespace tubed::config
