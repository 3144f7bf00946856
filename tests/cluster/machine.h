// Machine: one node of a simulated cluster: a computer with two disks and clocks, and its process:
// the queue, its conversations, the journal, the raft log and libraft's core.
//
// The World drives it: it delivers frames and the bytes of clients, does operations of its disks,
// and lets its deadlines pass. Each event is a tick of the process, as in serving/scheduler.h: the
// event, the work of the replica, the flush of the log, and the replies.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cluster/node.h"
#include "cluster/replica.h"
#include "commands/conversation.h"
#include "commands/service.h"
#include "engine/replay.h"
#include "journal/journal.h"
#include "journal/restorer.h"
#include "serving/commit_gate.h"
#include "tests/journal/test_disk.h"

namespace tubed::cluster_test {

using cluster::Index;
using cluster::NodeId;
using cluster::Term;

using ClientId = std::uint32_t;

// The world, as a machine sees it.
class MachineHost {
 public:
  // Returns the true time, starting at 0.
  virtual Time now() const = 0;
  virtual void send(NodeId from, NodeId to, std::string frame) = 0;
  // Sends replies to a client that is connected here. They will arrive unless the connection
  // breaks.
  virtual void reply(NodeId from, ClientId client, std::string bytes) = 0;
  // A connection has ended.
  virtual void disconnected(NodeId from, ClientId client) = 0;
  virtual void began_serving(NodeId node) = 0;
  // Entry `index` is applied.
  virtual void applied(NodeId node, Index index, const cluster::Entry& entry) = 0;
  // Returns the level of a node that is connected to `node`; 0: it is not connected.
  virtual cluster::Level level_of(NodeId node, NodeId other) const = 0;
  virtual void level_risen(NodeId node, cluster::Level level) = 0;
  // This node lacks entries.
  virtual void fetch_wanted(NodeId node, NodeId from) = 0;
  // A condition is violated.
  virtual void problem(const std::string& what) = 0;

 protected:
  ~MachineHost() = default;
};

struct MachineClocks {
  Duration monotonic{};   // monotonic clock at true time 0
  std::int64_t rate = 0;  // parts per million by which it runs too fast
  Duration wall{};        // wall clock minus true time
};

struct MachineOptions {
  Duration election_timeout = std::chrono::milliseconds(300);
  Duration hold_grace = std::chrono::seconds(1);
  std::uint64_t segment_bytes = 16 << 10;
  std::uint64_t raft_file_bytes = 32 << 10;
  Index kept_entries = 64;
  std::uint64_t kept_bytes = 64 << 20;
  std::uint64_t in_flight_bytes = 16 << 20;
  std::uint32_t part_bytes = 128 << 10;
  std::uint64_t raft_log_bytes = 1 << 30;
  Duration journal_sync = std::chrono::milliseconds(200);
  std::uint32_t job_bytes = 65'535;                      // limits.job_bytes
  cluster::Level level = cluster::kFeatureLevel;         // the highest that the program knows
  cluster::Level founding_level = cluster::kFirstLevel;  // in use at the beginning
};

class Machine final : public cluster::NodeHost,
                      public cluster::ReplicaHost,
                      public journal::JournalHost {
 public:
  Machine(MachineHost& world, NodeId id, const MachineOptions& options,
          const MachineClocks& clocks);
  ~Machine();

  NodeId id() const { return id_; }

  // --- The computer

  journal::TestDisk& journal_disk() { return journal_disk_; }
  journal::TestDisk& raft_disk() { return raft_disk_; }
  bool off() const { return journal_disk_.off() || raft_disk_.off(); }
  // True if a disk was switched off during an operation or the process has failed: the machine must
  // be crashed.
  bool dead() const { return failed_ || off(); }
  // Prepares the disks of a founder.
  void found(std::uint64_t cluster, const std::vector<cluster::Member>& members);
  void step_wall(Duration by) { clocks_.wall += by; }
  // Installs another version of the program, for the next start.
  void set_level(cluster::Level level) { options_.level = level; }
  cluster::Level level() const { return options_.level; }
  // Limits the room on its disks until empty_disks().
  void fill_disks(std::uint64_t room);
  void empty_disks();
  bool has_full_disks() const { return full_; }
  // Ends the process and leaves the disks as after a crash.
  void crash(journal::Random& random, journal::Fate fate);
  // Starts the process. Returns false if the machine was switched off meanwhile, its disks are
  // full, or a problem was found.
  bool boot(unsigned seed);
  // Ends the process and replaces the contents of its disks by the state of another running
  // machine, as far as that machine's disks have it. Returns false, without a change, if the other
  // machine has not applied everything that is applied here.
  bool take_state_of(Machine& source);
  // Ends the process and loses the disks. Without a state the machine cannot be started.
  void wipe();
  bool blank() const { return blank_; }
  // For a machine without a state: becomes the standby that it is in the state of another running
  // machine. Returns false, without a change, if it is not a standby there.
  bool join(Machine& source);
  // Counts starts: frames and bytes of an earlier life are not delivered.
  std::uint64_t life() const { return life_; }
  bool running() const { return process_ != nullptr; }

  // --- The process. Precondition: running(). After each call the world checks dead().

  // Returns why the node refuses the frame, or nothing.
  std::string_view receive(NodeId from, const std::string& frame);
  // Returns false if the node accepts no clients now.
  bool connect(ClientId client);
  void receive(ClientId client, const std::string& bytes);
  void hang_up(ClientId client);
  // Does one operation of one of the disks. Returns false if no operation is pending.
  bool disk_work(bool raft);
  std::size_t pending_disk_work(bool raft) const;
  // Does what is due.
  void tick();
  // Returns when tick() will have something to do, in true time.
  Time next_deadline() const;

  bool transfer();
  bool change_members(const std::vector<cluster::Member>& members);
  bool serves() const;
  const cluster::Node& node() const;
  const cluster::Replica& replica() const;
  // The log of a serving node: its durable position.
  Lsn durable() const;
  bool is_clean() const;
  // How often it has passed on leadership because it cannot store entries.
  std::uint64_t hand_overs() const { return hand_overs_; }
  std::uint64_t slow_appends() const { return slow_appends_; }
  engine::Engine& engine();
  // The time of its queue; 1970: it does not serve.
  Time queue_time() const;
  // How far the cluster time is ahead of the true time, on a node that knows it.
  Duration ahead() const;
  // Returns the durable state, for comparisons.
  std::vector<std::string> state(Time now) const;

  Time true_time_of(Time monotonic) const;

 private:
  struct Connection {
    explicit Connection(commands::Service& service) : conversation(service) {}
    commands::Conversation conversation;
    serving::CommitGate gate;
  };
  struct Process;

  cluster::RaftLogOptions raft_options(std::uint64_t cluster) const;
  void begin_tick();
  void end_tick();
  void follow_replica();
  void flush();
  void serve(ClientId client, Connection& connection);
  void hand_over();
  void end_process();
  struct State;
  std::optional<State> state_of(Machine& source) const;
  bool install(State& state, cluster::NodeState identity);
  void start_if_wanted();
  Result<void> start_process(unsigned seed);

  // NodeHost, ReplicaHost, JournalHost.
  Time clock() const override;
  Time wall() const override;
  void send(NodeId to, std::string frame) override { world_.send(id_, to, std::move(frame)); }
  void node_changed() override {}
  void fetch_state(NodeId from) override { world_.fetch_wanted(id_, from); }
  cluster::Level level_of(NodeId member) const override { return world_.level_of(id_, member); }
  void appends_were_slow(NodeId /*follower*/, std::uint64_t count, Duration longest) override {
    slow_appends_ += longest > options_.election_timeout / 2 ? count : 0;
  }
  void level_risen(cluster::Level /*from*/, cluster::Level to) override {
    world_.level_risen(id_, to);
  }
  void node_failed(const std::string& reason) override { failed(reason); }
  void raft_log_full(bool full, const std::string& reason) override;
  void begin_serving() override;
  void start_again() override;
  void replica_failed(const std::string& reason) override;
  void request_flush() override {}
  void report_failure(const std::string& reason) override { failed(reason); }
  void report_full(bool /*full*/, const std::string& /*reason*/) override {}
  bool describe_job(JobId id, FactSink& sink) override;
  void describe_delay(JobId /*id*/, FactSink& /*sink*/) override {}
  Time now() const override { return wall(); }
  Time settled_time() const override;
  journal::WallClock wall_clock() const override { return {}; }

  void failed(const std::string& reason);

  MachineHost& world_;
  NodeId id_;
  MachineOptions options_;
  MachineClocks clocks_;
  journal::TestDisk journal_disk_;
  journal::TestDisk raft_disk_;
  std::uint64_t life_ = 0;
  unsigned seed_ = 0;
  bool again_ = false;   // the process must be started again in place
  bool failed_ = false;  // the process must end
  bool full_ = false;    // the disks
  bool blank_ = false;   // the disks were lost
  std::uint64_t hand_overs_ = 0;
  std::uint64_t slow_appends_ = 0;
  Time hand_over_at_;  // earliest time of the next
  std::unique_ptr<Process> process_;
};

}  // namespace tubed::cluster_test
