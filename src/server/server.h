// Server: composes a daemon: the queue and its log, listeners and clients, the loop that schedules
// them, and the requests of operators by signals.
//
// Each part is explained in its header: the ticks in scheduler.h, the stop in lifecycle.h, the
// sockets in listeners.h, the journal in journal_owner.h. This class connects them and has no rule
// of the queue.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/authenticator.h"
#include "commands/service.h"
#include "config/settings.h"
#include "http/admin_http.h"
#include "http/http_api.h"
#include "loop/loop.h"
#include "loop/signal.h"
#include "node/cluster_mode.h"
#include "os/log.h"
#include "os/service_manager.h"
#include "server/lifecycle.h"
#include "server/listeners.h"
#include "server/reloads.h"
#include "server/service_notifier.h"
#include "server/status.h"
#include "server/test_server.h"
#include "server/watched_access.h"
#include "serving/clients.h"
#include "serving/heap_trimmer.h"
#include "serving/journal_owner.h"
#include "serving/scheduler.h"

namespace tubed::server {

class Server final : public serving::TickHost,
                     public commands::ServiceHost,
                     public ConnectionHost,
                     private serving::JournalOwnerHost,
                     private node::ClusterHost,
                     public http::AdminHttpHost,
                     private ReloadsHost {
 public:
  // `test_mode`: none, unless the server is for a test suite. `loop` and `log` outlive the server.
  Server(loop::Loop& loop, os::Log& log, const Settings& settings, ReadSettings read,
         const std::optional<TestModeOptions>& test_mode = {});
  ~Server();

  // Reads certificates, keys and tokens. The error is one line that names the file.
  Result<void> load_access();
  // Takes the sockets that the process was started with, in place of the configured listeners of
  // their kind, and opens the others. The error is one line that names the address. Precondition:
  // load_access().
  Result<void> listen(std::vector<os::InheritedSocket> inherited);
  // With a journal: opens its directory and restores the jobs. In a cluster: starts the node. It
  // blocks; connections wait in the kernel meanwhile. The error is one line.
  Result<void> recover();
  // In test mode: loads the first jobs, opens the control connection and announces the addresses.
  // The error is one line.
  Result<void> begin_test_mode();
  // Calls `changed` when drain mode begins and when it is cancelled.
  void on_drain(std::function<void(bool draining)> changed) {
    lifecycle_.on_drain(std::move(changed));
  }
  // Serves until SIGTERM or SIGINT, or until drain mode ends the server, and until all input read
  // by then is answered. Returns the exit code.
  int run();
  // True after run() if the journal or the node has failed, and the process must end without
  // touching it. For tests.
  const commands::Service& service() const { return service_; }
  bool failed() const { return lifecycle_.phase() == Phase::failed; }
  // After run(): the last status, how drain mode has ended.
  std::string last_status() const { return status_line(service_, lifecycle_, clients_.count()); }

 private:
  bool complete_tick() override { return lifecycle_.complete_tick(); }
  void tick_ended() override;
  const stats::ClusterState* cluster() override;
  bool serves() override { return cluster_ == nullptr || cluster_->serves(); }
  void drain_requested(commands::Service& service, bool draining, SessionId client) override;
  commands::Authentication authenticate(std::string_view token, SessionId session) override;
  std::optional<commands::ReloadResult> reload_requested(SessionId client) override {
    return reloads_.request(client);
  }
  void audit(const commands::AuditEvent& event) override;
  commands::ClientDetails describe_client(SessionId session) override;
  void flush_requested() override { scheduler_.log_advanced(); }
  void journal_failed() override;
  Time journal_time() override { return scheduler_.log_time(); }
  Duration wall_offset() const override;
  void role_changed() override { notifier_.refresh(); }
  void cluster_failed(int exit_code) override { lifecycle_.fail(exit_code); }
  void removed_from_cluster() override { lifecycle_.stop_removed(); }
  void on_forwarded(std::unique_ptr<loop::Channel> channel,
                    const serving::ConnectionOrigin& origin) override;
  void hold(std::unique_ptr<loop::Channel> channel) override {
    listeners_.hold(std::move(channel));
  }
  Admittance admits_connection() override;
  void on_connection(std::unique_ptr<loop::Channel> channel,
                     const serving::ConnectionOrigin& origin) override;
  void on_handshake_failed(const std::string& address, std::string_view reason) override;
  void on_header_failed(const std::string& address, std::string_view reason) override;
  void on_not_a_proxy(const std::string& address) override;
  void on_accept_error(const std::string& reason, std::uint64_t refused) override;
  void begin_tick() override { scheduler_.begin_tick(); }
  std::string_view unready() const override;
  std::string_view not_leader() const override;
  Result<ReloadPlan> apply_reload(const Settings& fresh) override;

  void open_history();
  void apply(const Settings& settings);
  void apply(access::AccessFiles files);
  void set_limits();
  void watched_files_changed(access::WatchedFiles kind);

  loop::Loop& loop_;
  os::Log& log_;
  Settings settings_;
  commands::Service service_;
  std::unique_ptr<serving::JournalOwner> journal_;  // null: jobs are in memory only
  serving::Clients clients_;
  serving::Scheduler scheduler_;
  http::AdminHttp admin_http_;
  Listeners listeners_;
  access::Authenticator authenticator_;
  http::HttpApi http_api_;
  access::AccessFiles access_;
  ServiceNotifier notifier_;
  Lifecycle lifecycle_;
  Reloads reloads_;
  std::unique_ptr<node::ClusterMode> cluster_;  // null: the server is in no cluster
  serving::HeapTrimmer heap_;
  std::unique_ptr<TestServer> test_;  // null outside of test mode
  Duration test_wall_offset_{};       // of the journal in test mode
  std::vector<std::unique_ptr<loop::Signal>> signals_;
  WatchedAccess watched_;
};

}  // namespace tubed::server
