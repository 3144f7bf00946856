// World: a simulated cluster: machines, the net between them, clients, and faults, in virtual time.
//
// Everything is an event of one queue, in the order of true time, and all randomness comes from one
// seed: the same seed gives the same life. After each event these conditions are checked:
//
//  - at most one node leads in a term, and entries with the same index are the same on all nodes;
//  - no node sends a reply after another node has led in a later term (the lease);
//  - a node that begins to serve has everything that was acknowledged;
//  - what clients may rely on (checker.h);
//  - the queue of a node matches the committed facts (the twin); this and the engine's invariants
//    are checked now and then;
//  - a follower that has returned the time of a leader's frame begins no election for an election
//    timeout after that time;
//  - what overtakes entries is an append without entries, at an entry that the follower has;
//  - a node does not tick all the time;
//  - a leader that has heard the cluster time sets it no later than earlier leaders did;
//  - no node invites a voter that has lost its disks to take part again: it has forgotten its
//    votes;
//  - a node refuses a forged frame, and no other;
//  - the level in use rises only when all machines know the new level, and never falls.
//
// After the last fault the cluster must serve again within five seconds, and all nodes must agree.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/cluster/checker.h"
#include "tests/cluster/machine.h"
#include "tests/cluster/sim_client.h"

namespace tubed::cluster_test {

// The kind of a life.
struct Nature {
  std::uint64_t seed = 1;
  std::size_t nodes = 3;
  std::size_t clients = 5;
  Duration length = std::chrono::seconds(20);
  // Average numbers of faults in the life.
  double crashes = 6;                            // of one machine
  Duration most_down = std::chrono::seconds(1);  // for most of them
  double power_losses = 0.5;                     // of all machines at once
  double partitions = 3;
  double one_way_cuts = 2;
  double pauses = 2;
  double resets = 6;  // of the connections between two nodes
  double clock_steps = 1;
  double stalls = 2;      // of a disk
  double hangs = 0;       // stalls for longer than a leader may lead without its disk
  double full_disks = 0;  // of one machine or of all
  double transfers = 1.5;
  double confusions = 0.2;         // followers that lose their leader, and then their memory
  double member_changes = 0.5;     // between voters and standbys
  double address_changes = 0;      // of a member
  double forgeries = 0;            // frames that no node sends
  double wipes = 0;                // of the disks of one machine, often as it becomes a voter
  std::uint64_t crash_steps = 0;   // >0: a crash happens during a disk operation
  std::int64_t rate_skew = 2'000;  // parts per million
  std::uint64_t uplink = 0;        // of each machine, in bytes per second; 0: not limited
  Duration wall_skew = std::chrono::milliseconds(100);
  bool trace = false;  // the story includes what clients send and receive, and all facts
  MachineOptions machine;
  // The feature level of each machine; empty: that of this version.
  std::vector<cluster::Level> levels;
  // Machines that get another level at that time, and are started again.
  struct Upgrade {
    Time at;
    std::size_t node = 0;
    cluster::Level level = cluster::kFeatureLevel;
  };
  std::vector<Upgrade> upgrades;
  SimClient::Habits habits;
};

Nature some_nature(std::uint64_t seed);

struct LifeCounts {
  std::uint64_t events = 0;
  std::uint64_t committed = 0;
  std::uint64_t leaders = 0;
  std::uint64_t crashes = 0;
  std::uint64_t inserted = 0;
  std::uint64_t reserved = 0;
  std::uint64_t deleted = 0;
  std::uint64_t held_over = 0;
  std::uint64_t fetches = 0;
  std::uint64_t comparisons = 0;
  std::uint64_t member_changes = 0;
  std::uint64_t address_changes = 0;
  std::uint64_t hand_overs = 0;
  std::uint64_t slow_appends = 0;
  std::uint64_t forgeries = 0;
  std::uint64_t wipes = 0;
  std::uint64_t joins = 0;        // machines without a state
  std::uint64_t rises = 0;        // of the level in use, on any node
  std::uint64_t sent_bytes = 0;   // by nodes to nodes
  std::uint64_t loaded_puts = 0;  // before the clients fell silent
  Duration loaded{};              // from the first service to the silence

  LifeCounts& operator+=(const LifeCounts& other);
};

// Returns the lines of commands or replies, without bodies.
std::string brief_text(const std::string& bytes);

class World final : public MachineHost {
 public:
  explicit World(const Nature& nature);
  ~World();

  // Lives the life. Returns nothing if no condition was violated.
  std::optional<std::string> live();
  const LifeCounts& counts() const { return counts_; }
  // Returns the last events.
  std::string story() const;

 private:
  struct Event {
    Time at;
    std::uint64_t number = 0;
    std::function<void()> happen;
    friend bool operator<(const Event& a, const Event& b) {
      return a.at != b.at ? a.at < b.at : a.number < b.number;
    }
    friend bool operator>(const Event& a, const Event& b) { return b < a; }
  };
  struct Node {
    std::unique_ptr<Machine> machine;
    std::uint64_t life = 0;           // to which the next two belong
    std::array<bool, 2> disk_busy{};  // a disk operation is under way
    Time timer = kNever;              // the earliest that is set
    int idle_ticks = 0;               // consecutive ticks after which the next was due at once
    Time paused_until;
    Time stalled_until;
    Time uplink_free;       // when it has sent everything
    bool has_time = false;  // it has heard the cluster time before it led
    bool fetching = false;
    bool knew_its_vote = false;  // knows_its_vote() before it ended
    cluster::Level level = 0;    // in use, as last seen
  };
  struct Client {
    explicit Client(SimClient its_self) : self(std::move(its_self)) {}
    SimClient self;
    std::size_t node = 0;    // its connection's node
    std::uint64_t life = 0;  // life of that node
    bool connected = false;
    std::uint64_t connection = 0;  // its number
    Time last_commands;            // when the last bytes arrive, in each direction
    Time last_reply;
  };

  // MachineHost.
  Time now() const override { return now_; }
  void send(NodeId from, NodeId to, std::string frame) override;
  Time departure(NodeId from, std::size_t bytes);
  void reply(NodeId from, ClientId client, std::string bytes) override;
  void disconnected(NodeId from, ClientId client) override;
  void began_serving(NodeId node) override;
  void applied(NodeId node, Index index, const cluster::Entry& entry) override;
  void fetch_wanted(NodeId node, NodeId from) override;
  cluster::Level level_of(NodeId node, NodeId other) const override;
  void level_risen(NodeId node, cluster::Level level) override;
  void problem(const std::string& what) override;

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  Duration some_time(Duration least, Duration most);
  void at(Time time, std::function<void()> happen);
  void after(Duration delay, std::function<void()> happen) { at(now_ + delay, std::move(happen)); }
  // Runs `happen` on this node now, or when it is no longer paused; not at all if the node has
  // ended.
  void on_node(std::size_t node, const std::function<void()>& happen);
  void after_node_event(std::size_t node);
  Node& node_of(NodeId id) { return nodes_[id - 1]; }
  void remember(const std::string& event);
  void remember_nodes();
  void run_until(Time time);

  void boot(std::size_t node);
  void crash(std::size_t node);
  void crash(std::size_t node, Duration down);
  void schedule_disk(std::size_t node);
  void schedule_timer(std::size_t node);
  void check_node(std::size_t node);
  void check_time(std::size_t node);
  void check_level(std::size_t node);
  void check_frame(NodeId from, NodeId to, const std::string& frame);
  void check_answer(NodeId from, const cluster::Message& answer);
  cluster::Level lowest_level() const;
  void remember_facts(Index index, const cluster::Entry& entry);
  void compare(std::size_t node);
  void finish_fetch(std::size_t node, std::size_t from);

  void client_acts(std::size_t client);
  void schedule_client(std::size_t client);
  void plan_faults();
  void plan(double average, const std::function<void()>& fault);
  void cut_link(std::size_t from, std::size_t to, Duration how_long);
  void change_members();
  void change_address();
  bool knows_its_vote(Node& node);
  void wipe(std::size_t node);
  void call(std::size_t node);
  void demote(std::size_t node);
  void finish_join(std::size_t node, std::size_t from);
  void check_invitation(std::size_t node, std::size_t from);
  std::optional<std::size_t> blank_node() const;
  void forge();
  void confuse();
  void confuse(std::size_t leader);
  void end_faults();
  void check_end();
  bool all_agree() const;
  NodeId later_leader(NodeId id);

  Nature nature_;
  journal::Random random_;
  Time now_;
  Time wiped_;  // when a machine has lost its disks, last
  std::uint64_t event_number_ = 0;
  std::vector<Event> events_;  // a heap: the first is next
  std::vector<Node> nodes_;
  std::vector<Client> clients_;
  Checker checker_;
  // By sender and receiver: when the last frame arrives, until when the link is cut, and how often
  // it was reset.
  struct Link {
    Time last_arrival;
    Time cut_until;
    std::uint64_t resets = 0;
  };
  std::map<std::pair<std::size_t, std::size_t>, Link> links_;
  Time first_service_ = kNever;
  bool faults_ended_ = false;
  bool silent_ = false;  // clients send nothing further
  Time asking_until_;    // clients change nothing until then

  // The twin: the committed entries in order, and the engine that results from them.
  struct Committed {
    Term term = 0;
    Bytes data;
    cluster::EntryType type = cluster::EntryType::facts;
  };
  std::map<Index, Committed> committed_;
  NullLog nothing_;
  std::unique_ptr<engine::Engine> twin_;
  Index twin_index_ = 1;
  Time twin_time_;
  Time passed_;            // latest time so far on a serving node's clock
  Duration most_ahead_{};  // the most by which the cluster time was ahead of the true time
  std::map<Term, NodeId> leaders_;

  LifeCounts counts_;
  std::optional<std::string> problem_;
  std::deque<std::string> story_;
};

}  // namespace tubed::cluster_test
