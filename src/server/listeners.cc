#include "server/listeners.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace tubed::server {

using os::InheritedSocket;

namespace {

// As systemd passes it on; see FileDescriptorName= in tubed-http.socket.
constexpr std::string_view kHttpSocketName = "http";
constexpr const char* kLocalUnit = "tubed-local.socket";

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

void log_listening(os::Log& log, const OpenListener& listener) {
  const std::string_view event =
      listener.info.protocol == Protocol::http ? "listening for HTTP" : "listening";
  const std::string address = os::local_address(listener.socket);
  if (listener.info.inherited.empty()) {
    log.info(event, {{"address", address}});
  } else {
    log.info(event, {{"address", address}, {"inherited", listener.info.inherited}});
  }
}

class Opener {
 public:
  Opener(os::Log& log, const Settings& settings) : log_(log), settings_(settings) {}
  // After an error: nothing stays of what was opened.
  ~Opener() {
    for (const OpenListener& listener : listeners_) {
      if (!listener.path.empty()) os::remove_unix_path(listener.socket, listener.path);
    }
  }
  Opener(const Opener&) = delete;
  Opener& operator=(const Opener&) = delete;

  // `configured`: an operator asks for the listeners that are wanted; false, they are the default.
  Result<void> open(Protocol protocol, std::span<const Listen> wanted, bool configured,
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
      // Whoever made it removes its path.
      add({std::move(one.socket), "", {protocol, one.name}});
    }
    for (const Listen& listen : wanted) {
      const bool is_unix = listen.kind == Listen::Kind::unix_socket;
      const char* const unit = socket_unit(protocol, listen);
      if (!replaced[static_cast<std::size_t>(kind_of(is_unix))]) {
        add({TRY(open_socket(listen, settings_.tcp_backlog, unit)), listen.path, {protocol, ""}});
      } else if (configured && std::ranges::find(addresses, to_string(listen)) == addresses.end()) {
        log_.warning("configured listener replaced by inherited sockets",
                     {{"address", to_string(listen)}, {"to_change", edit_command(unit)}});
      }
    }
    return {};
  }

  std::vector<OpenListener> take() { return std::exchange(listeners_, {}); }

 private:
  void add(OpenListener listener) {
    // Connections inherit these from their listener.
    if (listener.info.protocol == Protocol::beanstalk) {
      os::tune_connection(listener.socket, settings_.tcp_keepalive);
    }
    log_listening(log_, listener);
    listeners_.push_back(std::move(listener));
  }

  os::Log& log_;
  const Settings& settings_;
  std::vector<OpenListener> listeners_;
};

}  // namespace

Result<std::vector<OpenListener>> open_listeners(os::Log& log, const Settings& settings,
                                                 std::vector<InheritedSocket> inherited) {
  const auto of_clients =
      std::stable_partition(inherited.begin(), inherited.end(),
                            [](const InheritedSocket& one) { return one.name == kHttpSocketName; });
  const auto http_sockets = static_cast<std::size_t>(of_clients - inherited.begin());
  const std::span<InheritedSocket> all(inherited);
  std::vector<Listen> http;
  if (settings.http_listen) http.push_back(*settings.http_listen);
  Opener opener(log, settings);
  TRY(opener.open(Protocol::http, http, true, all.first(http_sockets)));
  TRY(opener.open(Protocol::beanstalk, settings.listeners, !settings.default_listener,
                  all.subspan(http_sockets)));
  return opener.take();
}

std::string edit_command(const char* unit) {
  return fmt::format("systemctl edit {}", unit);
}

}  // namespace tubed::server
