// run_until() runs the queue of events. All access to a machine is through on_node(); after each
// event there, the operations of its disks and its next deadline become events. world_faults.cc has
// the faults.
#include "tests/cluster/world.h"

#include <algorithm>
#include <cmath>

#include "tests/cluster/text.h"
#include "tests/engine/recording.h"
#include "tests/journal/journal_life.h"

namespace tubed::cluster_test {

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kCluster = 0xc1;
constexpr Duration kConvergence = 5s;
constexpr int kMostIdleTicks = 100;
constexpr cluster::Level kAnyLevel = UINT16_MAX;
constexpr std::int64_t kFirstWall = 1'700'000'000;

}  // namespace

LifeCounts& LifeCounts::operator+=(const LifeCounts& other) {
  events += other.events;
  committed += other.committed;
  leaders += other.leaders;
  crashes += other.crashes;
  inserted += other.inserted;
  reserved += other.reserved;
  deleted += other.deleted;
  held_over += other.held_over;
  fetches += other.fetches;
  comparisons += other.comparisons;
  member_changes += other.member_changes;
  address_changes += other.address_changes;
  hand_overs += other.hand_overs;
  slow_appends += other.slow_appends;
  forgeries += other.forgeries;
  wipes += other.wipes;
  joins += other.joins;
  rises += other.rises;
  sent_bytes += other.sent_bytes;
  loaded_puts += other.loaded_puts;
  loaded += other.loaded;
  return *this;
}

Nature some_nature(std::uint64_t seed) {
  journal::Random random(seed * 7'919 + 13);
  const auto one_in = [&random](std::uint64_t bound) { return random() % bound == 0; };
  Nature nature;
  nature.seed = seed;
  nature.nodes = one_in(6) ? 5 : one_in(10) ? 1 : 3;
  nature.clients = 2 + random() % 5;
  nature.machine.segment_bytes = one_in(2) ? 4096 : 16384;
  nature.machine.raft_file_bytes = one_in(2) ? 8192 : 65536;
  nature.machine.kept_entries = one_in(3) ? 16 : 128;
  nature.machine.journal_sync = one_in(2) ? 50ms : 300ms;
  nature.habits.body_bytes = one_in(3) ? 2000 : 200;
  nature.habits.pipelined = one_in(3) ? 12 : 3;
  if (one_in(3)) nature.crash_steps = 400;
  if (one_in(4)) nature.crashes = 14;
  if (one_in(4)) {  // nodes that return before the others have noticed
    nature.crashes = 40;
    nature.most_down = 40ms;
    nature.confusions = 5;
    nature.one_way_cuts = 10;
  }
  if (one_in(4)) nature.pauses = 8;
  if (one_in(4)) nature.partitions = 10;
  if (one_in(4)) nature.rate_skew = 40'000;
  if (one_in(4)) nature.wall_skew = 2s;
  if (one_in(6)) nature.transfers = 10;
  if (one_in(4)) nature.member_changes = 15;
  if (one_in(4)) nature.confusions = 5;
  if (one_in(3)) nature.machine.kept_bytes = 8192;
  if (one_in(3)) nature.machine.in_flight_bytes = 2048;
  if (one_in(3)) nature.machine.raft_log_bytes = 64 << 10;
  if (one_in(4)) nature.hangs = 5;
  if (one_in(4)) nature.full_disks = 5;
  if (nature.nodes > 1 && one_in(5)) {
    nature.wipes = 3;
    nature.member_changes = 30;
  }
  if (one_in(3)) nature.machine.part_bytes = 256;
  if (one_in(3)) {  // the machines are upgraded in turn
    for (std::size_t node = 0; node < nature.nodes; ++node) {
      nature.levels.push_back(static_cast<cluster::Level>(1 + random() % 3));
      for (cluster::Level level = nature.levels.back() + 1; level <= 3; ++level) {
        const Duration length = nature.length / 3;
        const Time at =
            Time() + (level - 1) * length +
            Duration(static_cast<std::int64_t>(random() % 1'000)) * (length / 1s * 1'000'000);
        nature.upgrades.push_back({.at = at, .node = node, .level = level});
      }
    }
  } else if (one_in(4)) {  // narrow uplinks
    nature.uplink = 100'000 * (1 + random() % 4);
    nature.machine.founding_level = cluster::kFeatureLevel;
    nature.machine.part_bytes = 1024;
    nature.habits.body_bytes = one_in(2) ? 30'000 : 3'000;
    nature.habits.pipelined = 3;
    // A new voter may learn so late of its vote that the cluster cannot do without another.
    nature.wipes = 0;
  }
  if (seed % 16 == 0) nature.address_changes = 15;
  return nature;
}

World::World(const Nature& nature)
    : nature_(nature),
      random_(nature.seed),
      checker_([this](const std::string& what) { problem(what); }, nature.machine.hold_grace,
               2.2 * static_cast<double>(nature.rate_skew) / 1e6),
      twin_(std::make_unique<engine::Engine>(Limits{})) {
  twin_->recorded_reservations().record_to(&nothing_);
  std::vector<cluster::Member> members;
  for (NodeId id = 1; id <= nature.nodes; ++id) {
    members.push_back(
        {.id = id, .role = cluster::MemberRole::voter, .address = "node " + text(id)});
  }
  for (const cluster::Member& member : members) {
    MachineClocks clocks;
    clocks.monotonic = std::chrono::seconds(1 + below(1000));
    clocks.rate =
        static_cast<std::int64_t>(below(static_cast<std::uint64_t>(nature.rate_skew) + 1)) -
        nature.rate_skew / 2;
    clocks.wall = std::chrono::seconds(kFirstWall) + some_time(Duration(), nature.wall_skew);
    Node node;
    node.machine = std::make_unique<Machine>(*this, member.id, nature.machine, clocks);
    if (!nature.levels.empty()) node.machine->set_level(nature.levels[member.id - 1]);
    node.machine->found(kCluster, members);
    nodes_.push_back(std::move(node));
  }
  for (ClientId id = 0; id < nature.clients; ++id) {
    SimClient::Habits habits = nature.habits;
    habits.consumes = id != 0;
    clients_.emplace_back(SimClient(id, random_(), habits, checker_));
  }
}

World::~World() = default;

// --- Events

Duration World::some_time(Duration least, Duration most) {
  const auto range = static_cast<std::uint64_t>((most - least).count()) + 1;
  return least + Duration(static_cast<std::int64_t>(below(range)));
}

void World::at(Time time, std::function<void()> happen) {
  events_.push_back(
      {.at = std::max(time, now_), .number = event_number_++, .happen = std::move(happen)});
  std::push_heap(events_.begin(), events_.end(), std::greater());
}

void World::remember(const std::string& event) {
  story_.push_back(text(now_) + " " + event);
  if (story_.size() > (nature_.trace ? 4000 : 60)) story_.pop_front();
}

void World::remember_nodes() {
  for (const Node& node : nodes_) {
    const Machine& machine = *node.machine;
    if (!machine.running() || machine.dead()) continue;
    const cluster::Node& raft = machine.node();
    std::string roles;
    for (const cluster::Member& member : raft.members())
      roles += " " + text(member.id) + (member.role == cluster::MemberRole::voter ? "v" : "s");
    remember("node " + text(machine.id()) + ": term " + text(raft.term()) +
             (raft.leads() ? ", leads" : ", follows " + text(raft.leader())) +
             (machine.serves() ? ", serves" : "") + ", entries " + text(raft.log().first()) +
             " to " + text(raft.log().last()) + ", stored " + text(raft.log().stored()) +
             ", committed " + text(raft.committed()) + ", applied " +
             text(machine.replica().applied().index) + ", members" + roles);
  }
}

void World::problem(const std::string& what) {
  if (problem_) return;
  problem_ = "seed " + text(nature_.seed) + " at " + text(now_) + ": " + what;
  remember("problem: " + what);
}

std::string World::story() const {
  std::string story = problem_.value_or("no problem");
  for (const std::string& event : story_) story += "\n  " + event;
  return story;
}

void World::run_until(Time time) {
  while (!problem_ && !events_.empty() && events_.front().at <= time) {
    std::pop_heap(events_.begin(), events_.end(), std::greater());
    const Event event = std::move(events_.back());
    events_.pop_back();
    now_ = event.at;
    ++counts_.events;
    event.happen();
  }
  now_ = std::max(now_, time);
}

void World::on_node(std::size_t index, const std::function<void()>& happen) {
  Node& node = nodes_[index];
  if (!node.machine->running()) return;
  if (node.paused_until > now_) {
    at(node.paused_until, [this, index, life = node.machine->life(), happen] {
      if (nodes_[index].machine->life() == life) on_node(index, happen);
    });
    return;
  }
  happen();
  after_node_event(index);
}

void World::after_node_event(std::size_t index) {
  Node& node = nodes_[index];
  if (node.machine->dead()) return crash(index);
  if (!node.machine->running()) return;
  if (node.life != node.machine->life()) {  // it has started again in place
    node.life = node.machine->life();
    node.disk_busy = {};
    node.timer = kNever;
    node.has_time = false;
  }
  check_node(index);
  check_time(index);
  check_level(index);
  schedule_disk(index);
  schedule_timer(index);
}

void World::schedule_disk(std::size_t index) {
  Node& node = nodes_[index];
  for (const bool raft : {false, true}) {
    bool& busy = node.disk_busy[raft ? 1 : 0];
    if (busy || node.machine->pending_disk_work(raft) == 0) continue;
    busy = true;
    Time done = now_ + (below(50) == 0 ? some_time(1ms, 20ms) : some_time(30us, 400us));
    done = std::max(done, node.stalled_until);
    at(done, [this, index, raft, life = node.machine->life()] {
      if (nodes_[index].machine->life() != life) return;
      on_node(index, [this, index, raft] {
        nodes_[index].disk_busy[raft ? 1 : 0] = false;
        nodes_[index].machine->disk_work(raft);
      });
    });
  }
}

void World::schedule_timer(std::size_t index) {
  Node& node = nodes_[index];
  const Time next = node.machine->next_deadline();
  if (next == kNever || node.timer <= next) return;
  node.timer = std::max(next, now_ + 1us);
  at(node.timer, [this, index, life = node.machine->life(), timer = node.timer] {
    Node& due = nodes_[index];
    if (due.machine->life() != life || due.timer != timer) return;
    due.timer = kNever;
    on_node(index, [this, index] { nodes_[index].machine->tick(); });
    const bool again = due.machine->running() && due.machine->next_deadline() <= now_;
    due.idle_ticks = again ? due.idle_ticks + 1 : 0;
    if (due.idle_ticks > kMostIdleTicks)
      problem("node " + text(due.machine->id()) + " ticks all the time");
  });
}

// --- Machines

void World::boot(std::size_t index) {
  Node& node = nodes_[index];
  if (node.machine->running() || node.machine->blank() || node.fetching) return;
  remember("node " + text(index + 1) + " starts");
  node.paused_until = node.stalled_until = Time();
  if (nature_.crash_steps > 0 && !faults_ended_ && below(4) == 0) {
    journal::TestDisk& disk =
        below(2) == 0 ? node.machine->journal_disk() : node.machine->raft_disk();
    disk.crash_at(disk.steps() + below(nature_.crash_steps));
  }
  node.machine->boot(static_cast<unsigned>(random_()));
  after_node_event(index);
  if (!node.machine->running() && node.machine->has_full_disks() && !node.machine->dead())
    after(500ms, [this, index] { boot(index); });
}

void World::crash(std::size_t index) {
  crash(index, below(5) == 0 ? some_time(1s, 5s) : some_time(1ms, nature_.most_down));
}

void World::crash(std::size_t index, Duration down) {
  Node& node = nodes_[index];
  ++counts_.crashes;
  const auto fate = below(3) == 0 ? journal::Fate::kill : journal::Fate::power_loss;
  remember("node " + text(index + 1) +
           (fate == journal::Fate::kill ? " is killed" : " loses power"));
  if (node.machine->running()) knows_its_vote(node);
  node.machine->crash(random_, fate);
  after(down, [this, index] { boot(index); });
}

void World::check_node(std::size_t index) {
  const Machine& machine = *nodes_[index].machine;
  const cluster::Node& node = machine.node();
  if (!node.leads()) return;
  const auto [leader, first] = leaders_.try_emplace(node.term(), machine.id());
  if (first) {
    ++counts_.leaders;
    remember("node " + text(machine.id()) + " leads in term " + text(node.term()));
  }
  if (leader->second != machine.id()) problem("two leaders in term " + text(node.term()));
}

// The cluster time continues from what the new leader has heard, which is at most what an earlier
// leader had. It loses time if the leader has not heard the last frames of its predecessor, and may
// regain it when a node leads that has. Only a leader that has heard from no other since its start,
// and whose voters have not either, may set it later, to its wall clock: after a start of a
// majority. Meanwhile clocks run at different rates.
void World::check_time(std::size_t index) {
  Node& node = nodes_[index];
  const Machine& machine = *node.machine;
  const bool is_set = machine.node().time().is_set();
  if (!machine.node().leads()) node.has_time = is_set;
  if (!machine.node().leads() || !is_set) return;
  const Duration ahead = machine.ahead();
  if (ahead > most_ahead_ && most_ahead_ != Duration() && node.has_time) {
    const Duration drift = nature_.length * nature_.rate_skew / 1'000'000;
    if (ahead > most_ahead_ + drift)
      problem("node " + text(machine.id()) + " gains time that no leader had");
  }
  most_ahead_ = std::max(most_ahead_, ahead);
  passed_ = std::max(passed_, machine.queue_time());
}

void World::applied(NodeId id, Index index, const cluster::Entry& entry) {
  const auto [committed, first] =
      committed_.try_emplace(index, Committed{entry.term, entry.data, entry.type});
  const Committed& known = committed->second;
  if (known.term != entry.term || known.data.view() != entry.data.view())
    problem("entry " + text(index) + " of node " + text(id) + " differs");
  if (!first) return;
  ++counts_.committed;
  if (index != twin_index_ + 1) return problem("entry " + text(twin_index_ + 1) + " is skipped");
  twin_index_ = index;
  if (entry.type != cluster::EntryType::facts) return;
  twin_time_ = cluster::read_entry_header(entry.data.view(), kAnyLevel)->time;
  if (nature_.trace) remember_facts(index, entry);
  engine::Replay replay(*twin_, twin_time_);
  cluster::read_facts(entry.data.view(), replay, kAnyLevel);
}

void World::remember_facts(Index index, const cluster::Entry& entry) {
  engine::Recording facts;
  cluster::read_facts(entry.data.view(), facts, kAnyLevel);
  for (const std::string& line : facts.take_facts())
    remember("entry " + text(index) + " in term " + text(entry.term) + ": " + line.substr(0, 120));
}

// --- Levels

// A connection carries frames in both directions.
cluster::Level World::level_of(NodeId node, NodeId other) const {
  const Machine& machine = *nodes_[other - 1].machine;
  const auto is_cut = [this](NodeId from, NodeId to) {
    const auto link = links_.find({from - 1, to - 1});
    return link != links_.end() && link->second.cut_until > now_;
  };
  if (!machine.running() || is_cut(node, other) || is_cut(other, node)) return 0;
  return machine.level();
}

cluster::Level World::lowest_level() const {
  cluster::Level lowest = UINT16_MAX;
  for (const Node& node : nodes_) lowest = std::min(lowest, node.machine->level());
  return lowest;
}

// No machine gets an earlier version, so one that does not know the level did not know it before.
void World::level_risen(NodeId id, cluster::Level level) {
  ++counts_.rises;
  remember("node " + text(id) + " raises its level to " + text(level));
  if (lowest_level() < level)
    problem("node " + text(id) + " raises its level to " + text(level) +
            ", but a node knows only " + text(lowest_level()));
}

void World::check_level(std::size_t index) {
  Node& node = nodes_[index];
  const cluster::Level level = node.machine->node().level();
  if (level < node.level)
    problem("the level of node " + text(index + 1) + " falls to " + text(level));
  node.level = level;
}

// Compares the queue of a node with the twin's if both are at the same entry.
void World::compare(std::size_t index) {
  Machine& machine = *nodes_[index].machine;
  machine.engine().check_invariants();
  if (machine.replica().applied().index != twin_index_ || !machine.is_clean()) return;
  if (machine.serves() && machine.node().log().last() != twin_index_) return;
  ++counts_.comparisons;
  // A serving node lets time pass without a fact: a job whose delay has ended is ready, also in its
  // journal after compaction. At a time that has not passed for the leader, such a job would still
  // be delayed in the twin and in a leader whose time is behind.
  const Time time = std::max(twin_time_, passed_);
  const engine::Lines found = machine.state(time);
  const engine::Lines expected = journal::durable_state(*twin_, time);
  if (found == expected) return;
  const auto [in_found, in_expected] =
      std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
  problem("the queue of node " + text(machine.id()) + " differs at entry " + text(twin_index_) +
          ": " + (in_found == found.end() ? "nothing" : in_found->substr(0, 200)) + ", expected " +
          (in_expected == expected.end() ? "nothing" : in_expected->substr(0, 200)));
}

void World::began_serving(NodeId id) {
  remember("node " + text(id) + " serves");
  first_service_ = std::min(first_service_, now_);
  // A node that was paused may not know of a later leader. Without a lease it sends nothing.
  if (later_leader(id) != 0) return;
  checker_.leader_serves(now_);
  const engine::Engine& engine = node_of(id).machine->engine();
  checker_.check_jobs([&engine](JobId job) -> std::optional<std::string> {
    const auto body = engine.queries().peek(job);
    if (!body) return std::nullopt;
    return std::string(body->body.view());
  });
}

// --- Clients

void World::schedule_client(std::size_t client) {
  Duration delay = below(20) == 0 ? some_time(10ms, 500ms) : some_time(500us, 40ms);
  if (now_ < asking_until_) delay = some_time(500us, 5ms);
  after(delay, [this, client] { client_acts(client); });
}

void World::client_acts(std::size_t index) {
  Client& client = clients_[index];
  const auto id = static_cast<ClientId>(index);
  if (silent_) return;
  schedule_client(index);
  if (!client.connected) {
    const std::size_t node = below(nodes_.size());
    on_node(node, [this, node, index, id] {
      Machine& machine = *nodes_[node].machine;
      Client& connecting = clients_[index];
      if (connecting.connected || !machine.connect(id)) return;
      connecting.connected = true;
      connecting.node = node;
      connecting.life = machine.life();
      ++connecting.connection;
    });
    return;
  }
  const std::size_t node = client.node;
  const bool asks = now_ < asking_until_;
  // A client without an answer tries another node after a while.
  if (!asks && nature_.habits.put_bytes == 0 &&
      below(client.self.unanswered() > 0 ? 100 : 400) == 0) {
    client.connected = false;
    const bool alive = nodes_[node].machine->running() && nodes_[node].machine->serves();
    client.self.disconnected(alive);
    on_node(node, [this, node, id] { nodes_[node].machine->hang_up(id); });
    return;
  }
  if (client.self.unanswered() > (nature_.habits.put_bytes > 0 ? 0 : 20)) return;
  const std::string bytes = asks ? client.self.questions(now_) : client.self.commands(now_);
  if (nature_.trace) remember("client " + text(index) + " -> " + brief_text(bytes));
  client.last_commands = std::max(client.last_commands, now_ + some_time(50us, 300us));
  at(client.last_commands,
     [this, node, id, index, connection = client.connection, life = client.life, bytes] {
       if (!clients_[index].connected || clients_[index].connection != connection) return;
       if (nodes_[node].machine->life() != life) return;
       on_node(node, [this, node, id, index, connection, bytes] {
         if (!clients_[index].connected || clients_[index].connection != connection) return;
         nodes_[node].machine->receive(id, bytes);
       });
     });
}

// --- Catching up

// Copies the files of a node that has more, as they are on disk, like the transfer of a state.
void World::fetch_wanted(NodeId id, NodeId from) {
  Node& node = node_of(id);
  if (node.fetching) return;
  node.fetching = true;
  remember("node " + text(id) + " fetches the state of node " + text(from));
  after(some_time(1ms, 300ms), [this, id, from] { finish_fetch(id - 1, from - 1); });
}

void World::finish_fetch(std::size_t index, std::size_t from) {
  Node& node = nodes_[index];
  const Node& source = nodes_[from];
  node.fetching = false;
  if (!node.machine->running()) return boot(index);
  if (!source.machine->running()) return;
  ++counts_.fetches;
  node.machine->take_state_of(*source.machine);
  if (node.machine->dead()) crash(index);
  if (source.machine->dead()) crash(from);
  after(1ms, [this, index] { boot(index); });
}

// --- A life

std::optional<std::string> World::live() {
  for (std::size_t index = 0; index < nodes_.size(); ++index) boot(index);
  for (std::size_t client = 0; client < clients_.size(); ++client) schedule_client(client);
  plan_faults();
  for (Time time = Time() + 100ms; time < Time() + nature_.length && !problem_; time += 100ms) {
    run_until(time);
    const std::size_t index = below(nodes_.size());
    const bool is_long = nature_.habits.put_bytes > 0;  // compared at the end only
    if (nodes_[index].machine->running() && !problem_ && !is_long) compare(index);
  }
  if (!problem_) end_faults();
  if (!problem_) check_end();
  counts_.inserted = checker_.inserted_count();
  counts_.reserved = checker_.reserved_count();
  counts_.deleted = checker_.deleted_count();
  counts_.held_over = checker_.held_over_count();
  for (const Node& node : nodes_) {
    counts_.hand_overs += node.machine->hand_overs();
    counts_.slow_appends += node.machine->slow_appends();
  }
  return problem_;
}

void World::check_end() {
  const std::uint64_t before = checker_.inserted_count();
  run_until(now_ + kConvergence);
  // On a narrow link, a node that lacks much takes its share for longer.
  const Time limit = now_ + (nature_.uplink > 0 ? nature_.length : Duration());
  while (!problem_ && now_ < limit && checker_.inserted_count() == before) run_until(now_ + 1s);
  if (problem_) return;
  if (checker_.inserted_count() == before) {
    remember_nodes();
    return problem("no put was answered after the faults");
  }
  // The clients fall silent, and everything is applied everywhere.
  silent_ = true;
  counts_.loaded_puts = checker_.inserted_count();
  counts_.loaded = now_ - first_service_;
  // A narrow link may need as long as the life for what a node lacks.
  const Time end = now_ + kConvergence + (nature_.uplink > 0 ? 2 * nature_.length : Duration());
  while (!problem_ && now_ < end && !all_agree()) {
    change_members();  // until all are voters
    run_until(now_ + 50ms);
  }
  if (problem_) return;
  if (!all_agree()) remember_nodes();
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    const Machine& machine = *nodes_[index].machine;
    if (!machine.running()) return problem("node " + text(index + 1) + " does not run");
    if (machine.replica().applied().index != twin_index_)
      return problem("node " + text(index + 1) + " has applied " +
                     text(machine.replica().applied().index) + " of " + text(twin_index_));
    if (machine.node().level() != lowest_level())
      return problem("node " + text(index + 1) + " uses level " + text(machine.node().level()) +
                     ", and all nodes know " + text(lowest_level()));
    if (machine.node().members() != nodes_.front().machine->node().members())
      return problem("node " + text(index + 1) + " knows other members than node 1");
    compare(index);
  }
}

// True if every node runs and has applied everything, and the serving node has nothing under way.
bool World::all_agree() const {
  return std::ranges::all_of(nodes_, [this](const Node& node) {
    return node.machine->running() && node.machine->replica().applied().index == twin_index_ &&
           node.machine->node().log().last() == twin_index_ && node.machine->is_clean();
  });
}

}  // namespace tubed::cluster_test
