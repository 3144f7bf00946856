// Drives a real server process over a Unix socket in its own directory.
//
// The driver owns the process, the directory and the sockets. The destructor ends the process and
// removes the directory. Time passes for the server only by advance(): its clocks are stopped
// (stopped_clock.cc), and a server in test mode gets a command that advances its clock.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "tests/wire/driver.h"
#include "tests/wire/tls_stream.h"

namespace tubed::wire {

// test_mode: tubed --test-mode, which was used and reset before the transcript begins.
enum class ServerKind { tubed, beanstalkd, test_mode };

struct ServerProgram {
  ServerKind kind = ServerKind::tubed;
  std::string binary;
  std::string clock;            // library that stops the clocks; empty: they run, without advance()
  Duration step{};              // by which a stopped clock advances whenever the server is idle
  std::optional<TlsFiles> tls;  // for tubed: every connection is encrypted
  std::chrono::milliseconds limit = std::chrono::minutes(10);  // for a reply; the last resort
};

class SocketDriver final : public Driver {
 public:
  // Starts the server and returns when it accepts connections. An error contains its output.
  static Result<std::unique_ptr<SocketDriver>> start(const ServerProgram& program,
                                                     const Options& options);
  ~SocketDriver() override;

  void open(Client client) override;
  void send(Client client, std::string_view bytes) override;
  Received receive(Client client, std::size_t min_bytes) override;
  void half_close(Client client) override;
  void close(Client client) override;
  void wait_until_idle() override;
  void advance(Duration time) override;
  void drain(bool on) override;

 private:
  struct Connection {
    int fd = -1;
    std::unique_ptr<TlsStream> tls;
    std::string incoming;
    bool ended = false;
  };

  explicit SocketDriver(const ServerProgram& program)
      : kind_(program.kind),
        clock_(program.clock),
        step_(program.step),
        is_tls_(program.tls.has_value()),
        limit_(program.limit) {}

  Result<void> make_directory();
  // Creates or replaces the file that stopped_clock.cc reads.
  Result<void> write_clock();
  // Writes a settings file with a TLS listener. Returns its path.
  std::string write_settings(const std::string& address, const TlsFiles& tls) const;
  Result<void> spawn(const std::vector<std::string>& arguments);
  Result<void> wait_until_it_listens();
  bool connect_once(Connection& connection) const;
  bool has_exited();
  std::string printed() const;

  void send_on(Connection& connection, std::string_view bytes);
  // Reads input that has arrived; waits for input until `until`. Returns false if none arrived.
  bool read_on(Connection& connection, std::chrono::steady_clock::time_point until);
  void barrier();
  // Sends text on the driver's own connection and waits for as many bytes as `replies` has. Returns
  // true if they match.
  bool exchange(std::string_view text, std::string_view replies);
  Result<void> use_and_reset();

  ServerKind kind_;
  std::string clock_;
  Duration step_;
  Duration advanced_{};
  bool is_tls_;
  std::chrono::milliseconds limit_;
  std::string directory_;
  pid_t process_ = -1;  // -1: no process, or it has been reaped
  Connection own_;
  std::vector<Connection> clients_;
  std::size_t pending_ticks_ = 0;  // that the server may need for the sent bytes
};

}  // namespace tubed::wire
