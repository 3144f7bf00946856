// Communicates with the service manager through libsystemd:
//
// - Sockets: LISTEN_FDS and LISTEN_FDNAMES describe open descriptors from 3 on. Each must be a
//   listening TCP or unix stream socket. It is made non-blocking and close-on-exec, like all
//   sockets of this process.
// - Notifications: datagrams of KEY=VALUE lines to the socket $NOTIFY_SOCKET. A notification that
//   cannot be sent is lost, because its receiver is not part of the service.
// - Units: D-Bus calls to systemd on the system bus. Each query opens a connection of its own. Only
//   --drain makes queries.
#include "os/service_manager.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include <fmt/format.h>
#include <sys/socket.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-login.h>

#include "os/clock.h"
#include "os/descriptor.h"

namespace tubed::os {

namespace {

constexpr const char* kManager = "org.freedesktop.systemd1";

std::int64_t microseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

// Replaces line feeds: text after one would be another message.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

void notify(const std::string& message) {
  ::sd_notify(0, message.c_str());
}

struct FreeNames {
  void operator()(char** names) const {
    for (char** name = names; *name != nullptr; ++name) std::free(*name);
    std::free(names);
  }
};

// A deleter for objects allocated by libsystemd.
template <auto Release>
struct Releaser {
  template <class T>
  void operator()(T* object) const {
    Release(object);
  }
};
using Bus = std::unique_ptr<sd_bus, Releaser<&sd_bus_flush_close_unref>>;
using Message = std::unique_ptr<sd_bus_message, Releaser<&sd_bus_message_unref>>;

struct BusError {
  sd_bus_error error{};  // SD_BUS_ERROR_NULL
  BusError() = default;
  BusError(const BusError&) = delete;
  BusError& operator=(const BusError&) = delete;
  ~BusError() { sd_bus_error_free(&error); }
};

}  // namespace

Result<std::vector<InheritedSocket>> inherited_sockets() {
  std::vector<InheritedSocket> sockets;
  char** raw_names = nullptr;
  const int count = ::sd_listen_fds_with_names(1, &raw_names);
  if (count < 0) return Error{fmt::format("inherited sockets: {}", error_text(-count))};
  if (count == 0) return sockets;
  const std::unique_ptr<char*, FreeNames> names(raw_names);
  for (int i = 0; i < count; ++i) {
    const int descriptor = SD_LISTEN_FDS_START + i;
    InheritedSocket inherited;
    inherited.socket = Socket(descriptor);
    inherited.name = names.get()[i];
    inherited.is_unix = ::sd_is_socket(descriptor, AF_UNIX, SOCK_STREAM, 1) > 0;
    const bool is_tcp = ::sd_is_socket(descriptor, AF_INET, SOCK_STREAM, 1) > 0 ||
                        ::sd_is_socket(descriptor, AF_INET6, SOCK_STREAM, 1) > 0;
    if (!inherited.is_unix && !is_tcp) {
      return Error{fmt::format("inherited descriptor {} ({}) is no listening stream socket",
                               descriptor, inherited.name)};
    }
    set_nonblocking_cloexec(inherited.socket);
    sockets.push_back(std::move(inherited));
  }
  return sockets;
}

bool has_service_manager() {
  return std::getenv("NOTIFY_SOCKET") != nullptr;
}

void notify_status(std::string_view status) {
  notify(fmt::format("STATUS={}", one_line(status)));
}

void notify_starting(std::string_view status, Duration more) {
  notify(fmt::format("EXTEND_TIMEOUT_USEC={}\nSTATUS={}", microseconds(more), one_line(status)));
}

void notify_ready(std::string_view status) {
  notify(fmt::format("READY=1\nSTATUS={}", one_line(status)));
}

void notify_reloading() {
  notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=reloading",
                     microseconds(monotonic_now().time_since_epoch())));
}

void notify_stopping(std::string_view status, Duration at_most) {
  notify(fmt::format("STOPPING=1\nEXTEND_TIMEOUT_USEC={}\nSTATUS={}", microseconds(at_most),
                     one_line(status)));
}

Duration watchdog_interval() {
  std::uint64_t interval = 0;
  if (::sd_watchdog_enabled(0, &interval) <= 0) return Duration::zero();
  return std::chrono::microseconds(interval);
}

void notify_watchdog() {
  notify("WATCHDOG=1");
}

namespace {

// Reads properties of one unit. After the first failure, all functions return empty values without
// a call, and failure() has the error.
class UnitReader {
 public:
  UnitReader(sd_bus* bus, const std::string& unit) : bus_(bus) {
    sd_bus_message* reply = nullptr;
    code_ = sd_bus_call_method(bus, kManager, "/org/freedesktop/systemd1",
                               "org.freedesktop.systemd1.Manager", "GetUnit", &error_.error, &reply,
                               "s", unit.c_str());
    reply_.reset(reply);
    if (code_ >= 0) code_ = sd_bus_message_read(reply, "o", &path_);
  }

  // Empty if all properties were read.
  std::string failure() const {
    if (code_ >= 0) return "";
    return error_.error.message != nullptr ? error_.error.message : error_text(-code_);
  }

  std::string text(const char* interface, const char* name) {
    char* raw = nullptr;
    read([&] {
      return sd_bus_get_property_string(bus_, kManager, path_, interface, name, &error_.error,
                                        &raw);
    });
    const std::unique_ptr<char, Releaser<&std::free>> owned(raw);
    return raw == nullptr ? "" : raw;
  }

  std::vector<std::string> texts(const char* interface, const char* name) {
    char** raw = nullptr;
    read([&] {
      return sd_bus_get_property_strv(bus_, kManager, path_, interface, name, &error_.error, &raw);
    });
    std::vector<std::string> result;
    if (raw == nullptr) return result;
    const std::unique_ptr<char*, FreeNames> owned(raw);
    for (char** text = raw; *text != nullptr; ++text) result.emplace_back(*text);
    return result;
  }

  // `type`: "u", or "(uo)", a structure whose first field is the number.
  std::uint32_t number(const char* interface, const char* name, const char* type) {
    sd_bus_message* raw = nullptr;
    read([&] {
      return sd_bus_get_property(bus_, kManager, path_, interface, name, &error_.error, &raw, type);
    });
    const Message message(raw);
    std::uint32_t value = 0;
    if (type[0] == '(') read([&] { return sd_bus_message_enter_container(raw, 'r', "uo"); });
    read([&] { return sd_bus_message_read_basic(raw, 'u', &value); });
    return value;
  }

 private:
  template <class Call>
  void read(Call call) {
    if (code_ >= 0) code_ = call();
  }

  sd_bus* bus_;
  BusError error_;
  Message reply_;
  const char* path_ = nullptr;  // in reply_
  int code_ = 0;
};

}  // namespace

Result<UnitState> unit_state(const std::string& unit) {
  sd_bus* raw_bus = nullptr;
  if (const int error = sd_bus_open_system(&raw_bus); error < 0) {
    return Error{fmt::format("systemd cannot be asked for {}: {}", unit, error_text(-error))};
  }
  const Bus bus(raw_bus);
  constexpr const char* kUnit = "org.freedesktop.systemd1.Unit";
  constexpr const char* kService = "org.freedesktop.systemd1.Service";
  UnitReader reader(bus.get(), unit);
  UnitState state;
  state.active = reader.text(kUnit, "ActiveState");
  state.has_job = reader.number(kUnit, "Job", "(uo)") != 0;
  state.triggered_by = reader.texts(kUnit, "TriggeredBy");
  if (unit.ends_with(".service")) {
    state.main_process = reader.number(kService, "MainPID", "u");
    state.status = reader.text(kService, "StatusText");
  }
  const std::string failure = reader.failure();
  if (!failure.empty()) return Error{fmt::format("{}: {}", unit, failure)};
  return state;
}

std::string unit_of_process(std::uint64_t process) {
  char* raw = nullptr;
  if (::sd_pid_get_unit(static_cast<pid_t>(process), &raw) < 0) return "";
  const std::unique_ptr<char, Releaser<&std::free>> owned(raw);
  return raw;
}

Result<std::uint64_t> main_process_of(const std::string& unit) {
  const auto state = TRY(unit_state(unit));
  if (state.main_process == 0) return Error{fmt::format("{} is not running", unit)};
  return state.main_process;
}

}  // namespace tubed::os
