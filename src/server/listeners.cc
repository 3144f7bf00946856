// open() sorts the inherited sockets by name into sockets of HTTP and of clients. The Opener then
// goes through each protocol: it adds the inherited sockets, and opens a socket for each configured
// listener whose kind was not inherited. If this fails, all sockets opened before are closed and
// their paths removed. Afterwards each socket gets its owner: HTTP the AdminHttp, clients a
// ClientListener, which turns accepted sockets into channels.
#include "server/listeners.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/planted.h"
#include "os/clock.h"
#include "protocol/reply.h"

namespace tubed::server {

using loop::ListenerInfo;
using loop::Protocol;
using os::InheritedSocket;

namespace {

// As systemd passes it on; see FileDescriptorName= in tubed-http.socket.
constexpr std::string_view kHttpSocketName = "http";
// See tubed-tls.socket.
constexpr std::string_view kTlsSocketName = "tls";

// The units of the packages, for advice. Other units may have passed sockets on as well.
constexpr const char* kTcpUnit = "tubed.socket";
constexpr const char* kTlsUnit = "tubed-tls.socket";
constexpr const char* kLocalUnit = "tubed-local.socket";
constexpr const char* kHttpUnit = "tubed-http.socket";
constexpr const char* kEnableHttp = "systemctl enable tubed-http.socket";

// The command by which an operator changes the address of an inherited socket.
std::string edit_command(const char* unit) {
  return fmt::format("systemctl edit {}", unit);
}

// The unit whose socket takes the place of such a listener.
const char* socket_unit(Protocol protocol, const Listen& wanted) {
  if (protocol == Protocol::http) return kHttpUnit;
  return wanted.kind == Listen::Kind::unix_socket ? kLocalUnit : kTcpUnit;
}

// `backlog`: connections that the kernel queues. `unit`: what an operator is to look at where the
// service may open no socket.
Result<os::Socket> open_socket(const Listen& wanted, std::uint32_t backlog, const char* unit) {
  const int length = static_cast<int>(backlog);
  // Of a service whose sockets come from systemd.
  const bool confined = !os::may_open_tcp();
  if (wanted.kind == Listen::Kind::unix_socket) {
    auto opened = os::listen_unix(wanted.path, {wanted.mode, wanted.group}, length);
    if (opened || !confined) return opened;
    return Error{fmt::format("{}; systemd has not passed it on: see systemctl status {}",
                             opened.error().message, unit)};
  }
  if (!confined) return os::listen_tcp(wanted.host, wanted.port, length);
  return Error{fmt::format(
      "{} is not among the sockets that systemd has passed on, and the service may open none "
      "itself: see systemctl status {}",
      to_string(wanted), unit)};
}

struct OpenListener {
  os::Socket socket;
  std::string path;  // of a unix socket that was opened here, to be removed with it; else empty
  ListenerInfo info;
  Listen listen;           // of clients; plain for an inherited socket without a configuration
  access::TlsPointer tls;  // of clients
};

// Opens or inherits the sockets of one protocol after the other.
class Opener {
 public:
  Opener(os::Log& log, const Settings& settings) : log_(log), settings_(settings) {}
  // After an error: closes all sockets that were opened.
  ~Opener() {
    for (const OpenListener& listener : listeners_) {
      if (!listener.path.empty()) os::remove_unix_path(listener.socket, listener.path);
    }
  }
  Opener(const Opener&) = delete;
  Opener& operator=(const Opener&) = delete;

  // `tls`: of the listeners that are wanted, in their order. `configured`: an operator asks for
  // these; false: they are the default.
  Result<void> open(Protocol protocol, std::span<const Listen> wanted,
                    std::span<const access::TlsPointer> tls, bool configured,
                    std::span<InheritedSocket> inherited) {
    // HTTP has one kind of listener; clients have TCP and unix.
    const auto kind_of = [protocol](bool is_unix) {
      return protocol == Protocol::beanstalk && is_unix ? 1 : 0;
    };
    std::array<bool, 2> replaced{};
    std::vector<std::string> addresses;
    for (InheritedSocket& one : inherited) {
      replaced[static_cast<std::size_t>(kind_of(one.is_unix))] = true;
      addresses.push_back(os::local_address(one.socket));
      const auto same = std::ranges::find(wanted, addresses.back(),
                                          [](const Listen& listen) { return to_string(listen); });
      const bool is_wanted = same != wanted.end();
      const auto plain = parse_listen(addresses.back());
      if (one.name == kTlsSocketName && (!is_wanted || !same->tls.enabled()))
        return without_tls(addresses.back());
      // The process that made it removes its path.
      add({std::move(one.socket),
           "",
           {protocol, one.name},
           is_wanted ? *same
           : plain   ? *plain
                     : Listen(),
           is_wanted ? tls[static_cast<std::size_t>(same - wanted.begin())] : nullptr});
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Listen& listen = wanted[i];
      const bool is_unix = listen.kind == Listen::Kind::unix_socket;
      const char* const unit = socket_unit(protocol, listen);
      if (!replaced[static_cast<std::size_t>(kind_of(is_unix))]) {
        add({TRY(open_socket(listen, settings_.tcp_backlog, unit)),
             listen.path,
             {protocol, ""},
             listen,
             tls[i]});
      } else if (configured && std::ranges::find(addresses, to_string(listen)) == addresses.end()) {
        if (!is_plain(listen)) return not_passed_on(listen, addresses);
        log_.warning("configured listener replaced by inherited sockets",
                     {{"address", to_string(listen)}, {"to_change", edit_command(unit)}});
      }
    }
    return {};
  }

  // The operator has enabled the socket for TLS, and no settings say how.
  static Error without_tls(const std::string& address) {
    return Error{
        fmt::format("{} was passed on as the socket {}, and no [[listen]] with tls has "
                    "this address: see ListenStream= in systemctl cat {}",
                    address, kTlsSocketName, kTlsUnit)};
  }

  // Clients would find a listener without authentication in its place, or no listener.
  static Error not_passed_on(const Listen& listen, const std::vector<std::string>& addresses) {
    return Error{
        fmt::format("{} has tls, auth, role or proxy_protocol and is not among the sockets that "
                    "were passed on ({}): see "
                    "ListenStream= in systemctl cat {}",
                    to_string(listen), fmt::join(addresses, " "), kTlsUnit)};
  }

  std::vector<OpenListener> take() { return std::exchange(listeners_, {}); }

 private:
  void add(OpenListener listener) {
    // Connections inherit the options of their listener.
    os::tune_connection(listener.socket, settings_.tcp_keepalive);
    listeners_.push_back(std::move(listener));
  }

  os::Log& log_;
  const Settings& settings_;
  std::vector<OpenListener> listeners_;
};

// HTTP first, then clients in the order of the settings.
Result<std::vector<OpenListener>> open_all(os::Log& log, const Settings& settings,
                                           const std::vector<access::TlsPointer>& tls,
                                           std::vector<InheritedSocket> inherited) {
  const auto of_clients =
      std::stable_partition(inherited.begin(), inherited.end(),
                            [](const InheritedSocket& one) { return one.name == kHttpSocketName; });
  const auto http_sockets = static_cast<std::size_t>(of_clients - inherited.begin());
  const std::span<InheritedSocket> all(inherited);
  std::vector<Listen> http;
  if (settings.http_listen) http.push_back(*settings.http_listen);
  Opener opener(log, settings);
  // The HTTP server has its own TLS.
  const std::vector<access::TlsPointer> none(http.size());
  TRY(opener.open(Protocol::http, http, none, true, all.first(http_sockets)));
  TRY(opener.open(Protocol::beanstalk, settings.listeners, tls, !settings.default_listener,
                  all.subspan(http_sockets)));
  return opener.take();
}

// True if the settings say who may do what.
bool restricts_clients(const Settings& settings) {
  return !settings.roles.empty() || !settings.tokens.empty() ||
         !std::ranges::all_of(settings.listeners, is_plain);
}

// True if no other machine can connect to the socket. False for an unknown address.
bool is_local_address(const std::string& address) {
  const auto listen = parse_listen(address);
  return address.starts_with("unix:") || (listen && is_local(*listen));
}

// An inherited socket has authentication only by its [[listen]]. Otherwise its clients may do
// everything.
bool is_unnamed(const Settings& settings, const std::string& address) {
  return std::ranges::find(settings.listeners, address, [](const Listen& listen) {
           return to_string(listen);
         }) == settings.listeners.end();
}

Result<void> check_client_socket(const Settings& settings, const std::string& address) {
  if (TUBED_PLANTED(unnamed_socket_is_served) || is_local_address(address) ||
      !restricts_clients(settings) || !is_unnamed(settings, address))
    return {};
  return Error{fmt::format(
      "{} was passed on, and no [[listen]] has this address: its clients could do everything, "
      "which tls, auth, roles, tokens or proxy_protocol limit elsewhere; give it a [[listen]], or "
      "see "
      "ListenStream= in systemctl cat {}",
      address, kTcpUnit)};
}

// The authentication of HTTP has the same requirements as at a configured address.
Result<void> check_http_socket(const Settings& settings, const std::string& address) {
  if (TUBED_PLANTED(unnamed_socket_is_served)) return {};
  const auto refused = [&](std::string_view reason) {
    return Error{
        fmt::format("http.auth: {} was passed on, and {}; see ListenStream= in systemctl "
                    "cat {}",
                    address, reason, kHttpUnit)};
  };
  if (settings.http.auth == AuthMode::peer && !address.starts_with("unix:"))
    return refused("auth = \"peer\" needs a unix: address");
  if (settings.http.auth == AuthMode::token && !settings.http_tls.enabled() &&
      !is_local_address(address))
    return refused(
        "auth = \"token\" needs http.tls, or other machines could read the tokens on their way");
  return {};
}

}  // namespace

// One listening socket of clients: turns what it accepts into channels. A connection of a proxy
// passes through ProxyHeaders, and a connection with TLS through TlsHandshakes.
class Listeners::ClientListener final : public loop::ListenerOwner,
                                        public loop::ProxyOwner,
                                        public loop::TlsOwner {
 public:
  ClientListener(Listeners& all, OpenListener opened)
      : all_(all),
        loop_(all.loop_),
        host_(all.host_),
        handshakes_(all.handshakes_),
        headers_(all.headers_),
        info_(std::move(opened.info)),
        listen_(std::move(opened.listen)),
        proxy_networks_(proxy_networks(listen_)),
        tls_(std::move(opened.tls)),
        listener_(all.loop_, std::move(opened.socket), std::move(opened.path), refusal(), *this) {}
  ~ClientListener() {
    headers_.forget(*this);
    handshakes_.forget(*this);
  }

  const ListenerInfo& info() const { return info_; }
  const os::Socket& socket() const { return listener_.socket(); }
  const Listen& listen() const { return listen_; }
  void apply(const Listen& listen, access::TlsPointer tls) {
    listen_ = listen;
    proxy_networks_ = proxy_networks(listen);
    tls_ = std::move(tls);
    listener_.set_refusal(refusal());
  }

 private:
  // A client of TLS cannot read a line before its handshake is done.
  std::string_view refusal() const {
    return tls_ == nullptr ? protocol::word::kOutOfMemory : std::string_view();
  }

  void on_connection(os::Socket socket) override {
    const Admittance admittance = host_.admits_connection();
    if (admittance != Admittance::admitted) {
      if (admittance == Admittance::full) os::send_refusal(socket, refusal());
      return all_.hold(std::move(socket));
    }
    if (listen_.proxies.empty()) return open(std::move(socket), {});
    std::string address = os::peer_address(socket);
    if (address == "?") return;  // reset before it was accepted, as by a health check
    if (!is_proxy(address)) {
      host_.on_not_a_proxy(address);
      return all_.hold(std::move(socket));
    }
    if (!headers_.begin(std::move(socket), std::move(address), *this)) not_watched();
  }

  bool is_proxy(const std::string& address) const {
    // Only processes that may connect to the path have this address.
    if (listen_.kind == Listen::Kind::unix_socket) return true;
    const auto host = os::host_of(address);
    return host && std::ranges::any_of(proxy_networks_, [&](const Network& network) {
             return contains(network, *host);
           });
  }

  void on_proxied(os::Socket socket, loop::ProxiedClient client) override {
    const Admittance admittance = host_.admits_connection();
    if (admittance == Admittance::admitted) return open(std::move(socket), std::move(client));
    if (admittance == Admittance::full) os::send_refusal(socket, refusal());
    all_.hold(std::move(socket));
  }
  void on_header_failed(const std::string& address, std::string_view reason) override {
    host_.on_header_failed(address, reason);
  }

  // `proxied`: what a proxy has reported of the client.
  void open(os::Socket socket, loop::ProxiedClient proxied) {
    if (tls_ != nullptr) {
      if (!handshakes_.begin(std::move(socket), tls_, *this, std::move(proxied))) not_watched();
      return;
    }
    serving::ConnectionOrigin origin{.listen = listen_};
    if (listen_.auth == AuthMode::peer) origin.process = os::peer_credentials(socket);
    auto channel = loop::open_channel(loop_, std::move(socket), info_, std::move(proxied));
    if (channel == nullptr) return not_watched();
    host_.on_connection(std::move(channel), origin);
  }
  void not_watched() { host_.on_accept_error("the kernel watches no more connections", 1); }
  void on_accept_error(const std::string& reason, std::uint64_t refused) override {
    host_.on_accept_error(reason, refused);
  }
  bool free_descriptors() override {
    const bool frees = all_.held_.count() > 0;
    all_.held_.close_all();
    return frees;
  }

  void on_secured(std::unique_ptr<loop::Channel> channel, const loop::TlsPeer& peer) override {
    const Admittance admittance = host_.admits_connection();
    if (admittance == Admittance::full)
      channel->write(fmt::format("{}\r\n", protocol::word::kOutOfMemory));
    if (admittance != Admittance::admitted) return all_.hold(std::move(channel));
    host_.on_connection(std::move(channel), {.listen = listen_, .certificate = peer});
  }
  void on_handshake_failed(const std::string& address, std::string_view reason) override {
    host_.on_handshake_failed(address, reason);
  }

  Listeners& all_;
  loop::Loop& loop_;
  ConnectionHost& host_;
  loop::TlsHandshakes& handshakes_;
  loop::ProxyHeaders& headers_;
  ListenerInfo info_;
  Listen listen_;
  std::vector<Network> proxy_networks_;  // of `listen_`
  access::TlsPointer tls_;               // for the connections to come
  loop::Listener listener_;
};

Listeners::Listeners(loop::Loop& loop, os::Log& log, ConnectionHost& host,
                     http::AdminHttp& admin_http)
    : loop_(loop),
      log_(log),
      host_(host),
      admin_http_(admin_http),
      handshakes_(loop),
      headers_(loop),
      held_timer_(loop, [this] { close_held(); }) {}

Listeners::~Listeners() = default;

Result<void> Listeners::open(const Settings& settings, const std::vector<access::TlsPointer>& tls,
                             std::vector<InheritedSocket> inherited) {
  for (const InheritedSocket& one : inherited) {
    // The Opener refuses a socket for TLS without its [[listen]], with a reason of its own.
    if (one.name != kTlsSocketName)
      inherited_.push_back({os::local_address(one.socket), one.name == kHttpSocketName});
  }
  TRY(check(settings));
  warn_of_open_sockets(settings);
  auto opened = TRY(open_all(log_, settings, tls, std::move(inherited)));
  for (OpenListener& one : opened) {
    opened_.push_back({one.info, os::local_address(one.socket)});
    switch (one.info.protocol) {
      case Protocol::http:
        admin_http_.listen(std::move(one.socket), one.path);
        break;
      case Protocol::beanstalk:
        clients_.push_back(std::make_unique<ClientListener>(*this, std::move(one)));
        break;
    }
  }
  return {};
}

void Listeners::log_listening() const {
  for (const Opened& one : opened_) {
    const std::string_view event =
        one.info.protocol == Protocol::http ? "listening for HTTP" : "listening";
    if (one.info.inherited.empty()) {
      log_.info(event, {{"address", one.address}});
    } else {
      log_.info(event, {{"address", one.address}, {"inherited", one.info.inherited}});
    }
  }
}

Result<void> Listeners::check(const Settings& settings) const {
  for (const auto& [address, is_http] : inherited_) {
    TRY(is_http ? check_http_socket(settings, address) : check_client_socket(settings, address));
  }
  return {};
}

void Listeners::warn_of_open_sockets(const Settings& settings) {
  const bool configured = !settings.default_listener || restricts_clients(settings);
  const HttpApiSettings& http = settings.http;
  const bool is_open = http.auth == AuthMode::none && http.role.empty();
  for (const auto& [address, is_http] : inherited_) {
    if (is_http && http.api != HttpApiLevel::off && is_open && !is_local_address(address)) {
      log_.warning("http.api without http.auth: each machine that can connect may use it",
                   {{"address", address}, {"to_change", edit_command(kHttpUnit)}});
    } else if (!is_http && configured && is_unnamed(settings, address)) {
      log_.warning("inherited socket without a [[listen]]: its clients may do everything",
                   {{"address", address}});
    }
  }
}

std::string Listeners::client_addresses() const {
  std::string addresses;
  for (const auto& listener : clients_) {
    if (!addresses.empty()) addresses += ' ';
    addresses += os::local_address(listener->socket());
  }
  return addresses;
}

void Listeners::apply(const Settings& settings, const std::vector<access::TlsPointer>& tls) {
  admin_http_.tune(settings.tcp_keepalive);
  // Several listeners may have port 0: each takes settings of its own, in their order.
  std::vector<bool> taken(settings.listeners.size());
  for (const auto& listener : clients_) {
    os::tune_connection(listener->socket(), settings.tcp_keepalive);
    for (std::size_t i = 0; i < taken.size(); ++i) {
      if (taken[i] || !same_socket(settings.listeners[i], listener->listen())) continue;
      taken[i] = true;
      listener->apply(settings.listeners[i], tls[i]);
      break;
    }
  }
}

// A restart changes no address that systemd keeps open.
void Listeners::advise_units(std::vector<std::string>& settings) const {
  const auto is_of_a_unit = [&](std::string_view key, const std::string& command) {
    if (std::erase(settings, key) == 0) return;
    log_.warning("the address is set in a unit", {{"setting", key}, {"to_change", command}});
  };
  const bool inherits = std::ranges::any_of(
      clients_, [](const auto& listener) { return !listener->info().inherited.empty(); });
  if (!inherits) return;
  is_of_a_unit("listen", edit_command(kTcpUnit));
  is_of_a_unit("http.listen", admin_http_.is_listening() ? edit_command(kHttpUnit) : kEnableHttp);
}

void Listeners::hold(serving::HeldConnections::Connection connection) {
  if (closed_) return;
  const bool is_first = held_.count() == 0;
  held_.hold(std::move(connection), os::monotonic_now());
  if (is_first) held_timer_.arm(serving::HeldConnections::kTime);
}

void Listeners::close_held() {
  const Time now = os::monotonic_now();
  held_.close_due(now);
  if (const auto next = held_.next_due()) held_timer_.arm(*next - now);
}

void Listeners::close_clients() {
  closed_ = true;
  clients_.clear();
  held_.close_all();
  held_timer_.disarm();
}

}  // namespace tubed::server
