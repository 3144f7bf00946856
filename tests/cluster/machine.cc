#include "tests/cluster/machine.h"

#include <algorithm>

#include "cluster/founding.h"
#include "cluster/membership.h"
#include "tests/commands/talk.h"
#include "tests/journal/journal_life.h"
#include "tests/protocol/take_replies.h"

namespace tubed::cluster_test {

namespace {

constexpr std::int64_t kMillion = 1'000'000;

}  // namespace

struct Machine::Process {
  explicit Process(std::uint32_t job_bytes)
      : service(Limits{.job_bytes = job_bytes}, commands::test_identity(),
                {.cpu_times = [] { return stats::CpuTimes{}; },
                 .resident_bytes = [] { return std::uint64_t{1}; },
                 .open_descriptors = [] { return std::uint64_t{1}; },
                 .descriptor_limit = [] { return std::uint64_t{1024}; }}) {}

  commands::Service service;
  std::unique_ptr<journal::Journal> journal;
  std::unique_ptr<cluster::Node> node;
  std::unique_ptr<cluster::Replica> replica;
  std::map<ClientId, std::unique_ptr<Connection>> connections;
  Index seen = 0;  // entries up to here were reported to the world
};

Machine::Machine(MachineHost& world, NodeId id, const MachineOptions& options,
                 const MachineClocks& clocks)
    : world_(world), id_(id), options_(options), clocks_(clocks) {}

Machine::~Machine() = default;

Time Machine::clock() const {
  const std::int64_t passed = world_.now().time_since_epoch().count();
  return Time(clocks_.monotonic + Duration(passed + passed / kMillion * clocks_.rate));
}

Time Machine::true_time_of(Time monotonic) const {
  if (monotonic == kNever) return kNever;
  const std::int64_t passed = (monotonic - Time(clocks_.monotonic)).count();
  // Rounded up, so the deadline has passed by then.
  return Time(Duration(passed - passed / (kMillion + clocks_.rate) * clocks_.rate + 1000));
}

Time Machine::wall() const {
  return world_.now() + clocks_.wall;
}

// --- The computer

cluster::RaftLogOptions Machine::raft_options(std::uint64_t cluster) const {
  cluster::RaftLogOptions options;
  options.file_bytes = options_.raft_file_bytes;
  options.log_bytes = options_.raft_log_bytes;
  options.cluster = cluster;
  return options;
}

void Machine::found(std::uint64_t cluster, const std::vector<cluster::Member>& members) {
  const auto founded =
      cluster::found(raft_disk_, raft_options(cluster), id_, members, options_.founding_level);
  if (!founded) return world_.problem("cannot found: " + founded.error().message);
  // A journal with only the position of the founders.
  auto nothing = journal::revive(journal_disk_, {}, Time());
  auto opened = journal::Journal::open(journal_disk_, *this,
                                       {.segment_bytes = options_.segment_bytes,
                                        .directory = id_,
                                        .clock = {},
                                        .reservations = true},
                                       std::move(nothing->found));
  if (!opened) return world_.problem("no journal: " + opened.error().message);
  journal::Journal& journal = **opened;
  journal.fact(cluster::founding_position(cluster));
  bool closed = false;
  journal.close([&closed] { closed = true; });
  for (int i = 0; i < 1000 && !closed; ++i) {
    journal.flush();
    journal_disk_.run_all();
  }
  if (!closed) world_.problem("the journal of a founder does not close");
}

void Machine::crash(journal::Random& random, journal::Fate fate) {
  end_process();
  // Both disks at the same time.
  journal::TestDisk journal_disk = journal_disk_.after_crash(random, fate);
  journal::TestDisk raft_disk = raft_disk_.after_crash(random, fate);
  journal_disk_ = std::move(journal_disk);
  raft_disk_ = std::move(raft_disk);
}

void Machine::fill_disks(std::uint64_t room) {
  full_ = true;
  for (journal::TestDisk* disk : {&journal_disk_, &raft_disk_})
    disk->set_capacity(disk->total_bytes() + room);
}

void Machine::empty_disks() {
  full_ = false;
  for (journal::TestDisk* disk : {&journal_disk_, &raft_disk_}) disk->set_capacity(UINT64_MAX);
}

// A copy of another machine's state.
struct Machine::State {
  journal::TestDisk journal_disk;
  Index first = 0;
  Index last = 0;  // position of the journal
  std::vector<cluster::Entry> entries;
  cluster::NodeState node;
};

// Returns nothing if the source lacks entries or a problem was found.
std::optional<Machine::State> Machine::state_of(Machine& source) const {
  // The durable prefix of the journal, which compaction may be changing.
  State state{.journal_disk = journal::TestDisk(source.journal_disk_.durable_files()),
              .entries = {},
              .node = {}};
  auto copied = journal::revive(state.journal_disk, {}, Time());
  if (!copied) {
    world_.problem("a copy of a journal is refused: " + copied.error().message);
    return std::nullopt;
  }
  state.last = copied->found.applied ? copied->found.applied->index : 0;
  const cluster::RaftLog& log = source.process_->node->log();
  state.first = log.first();
  if (state.last + 1 < state.first) return std::nullopt;
  for (Index i = state.first; i <= state.last; ++i) state.entries.push_back(log.at(i));
  const auto node = cluster::load_node_state(source.raft_disk_);
  if (source.off()) return std::nullopt;
  if (!node || !node.value()) {
    world_.problem("a node has no state");
    return std::nullopt;
  }
  state.node = *node.value();
  return state;
}

bool Machine::take_state_of(Machine& source) {
  auto state = state_of(source);
  if (!state || state->last < process_->node->log().last()) return false;
  const auto own = cluster::load_node_state(raft_disk_);
  if (off()) return false;
  end_process();
  if (!own) {
    world_.problem("a node has no state");
    return false;
  }
  // Its term and vote are kept.
  return install(*state, *own.value());
}

void Machine::wipe() {
  end_process();
  journal_disk_ = journal::TestDisk();
  raft_disk_ = journal::TestDisk();
  full_ = false;
  blank_ = true;
}

bool Machine::join(Machine& source) {
  auto state = state_of(source);
  if (!state) return false;
  const auto members =
      cluster::decode_members(source.node().configurations().at(state->last).first);
  const auto itself = std::ranges::find(members.value(), id_, &cluster::Member::id);
  if (itself == members->end() || itself->role != cluster::MemberRole::standby) return false;
  // The leader does not send again what this machine has acknowledged.
  if (source.node().match(id_).value_or(0) > state->last) return false;
  cluster::NodeState identity;
  identity.cluster = state->node.cluster;
  identity.node = id_;
  blank_ = !install(*state, identity);
  return !blank_;
}

// Replaces everything at once, as by renaming a directory.
bool Machine::install(State& fetched, cluster::NodeState state) {
  journal::TestDisk raft_disk;
  const std::vector<cluster::Entry>& entries = fetched.entries;
  // The node's term must not be lower than the term of an entry. It may have voted in its term.
  if (!entries.empty() && entries.back().term > state.term) {
    state.term = entries.back().term;
    state.voted_for = 0;
  }
  state.configuration = fetched.node.configuration;
  state.configuration_index = fetched.node.configuration_index;
  state.level = std::max(state.level, fetched.node.level);
  cluster::NullRaftLogHost host;
  auto copy = cluster::RaftLog::open(raft_disk, host, raft_options(state.cluster));
  if (!copy || !(*copy)->reset(fetched.first - 1) || !cluster::store_node_state(raft_disk, state)) {
    world_.problem("a raft log cannot be copied");
    return false;
  }
  (*copy)->append(fetched.first, entries);
  bool closed = false;
  (*copy)->close([&closed] { closed = true; });
  while (!closed) {
    (*copy)->flush();
    raft_disk.run_all();
  }
  copy->reset();
  journal_disk_ = std::move(fetched.journal_disk);
  raft_disk_ = std::move(raft_disk);
  full_ = false;
  return true;
}

void Machine::end_process() {
  if (process_ == nullptr) return;
  // Facts of clients that release their jobs are discarded.
  NullLog nothing;
  process_->service.engine().recorded_reservations().record_to(nullptr);
  process_->service.set_log(nothing);
  for (const auto& [client, connection] : process_->connections) world_.disconnected(id_, client);
  process_->connections.clear();
  process_->replica.reset();
  process_->node.reset();
  process_->journal.reset();
  process_.reset();
  again_ = failed_ = false;
}

bool Machine::boot(unsigned seed) {
  ++life_;
  seed_ = seed;
  again_ = failed_ = false;
  const auto started = start_process(seed);
  if (started) {
    end_tick();
    return true;
  }
  process_.reset();
  const bool no_room = full_ && started.error().kind == Error::Kind::no_space;
  if (!off() && !no_room)
    world_.problem("node " + std::to_string(id_) + ": " + started.error().message);
  return false;
}

Result<void> Machine::start_process(unsigned seed) {
  process_ = std::make_unique<Process>(options_.job_bytes);
  engine::Engine& engine = process_->service.engine();
  engine::Replay replay(engine, Time());
  journal::Restorer restorer(replay);
  auto found = TRY(journal::examine(journal_disk_, {}, restorer, nullptr));
  TRY(journal::repair(journal_disk_, found));
  restorer.finish(found);
  if (!found.applied) return Error{"the journal has no position"};
  const Applied base = *found.applied;
  process_->journal = TRY(journal::Journal::open(journal_disk_, *this,
                                                 {.sync = options_.journal_sync,
                                                  .segment_bytes = options_.segment_bytes,
                                                  .directory = id_,
                                                  .clock = {},
                                                  .reservations = true},
                                                 std::move(found)));
  cluster::NodeOptions options;
  options.election_timeout = options_.election_timeout;
  options.seed = seed;
  options.level = options_.level;
  options.kept_entries = options_.kept_entries;
  options.kept_bytes = options_.kept_bytes;
  options.in_flight_bytes = options_.in_flight_bytes;
  options.part_bytes = options_.part_bytes;
  options.log = raft_options(0);  // the node sets the identity
  process_->node = TRY(cluster::Node::open(raft_disk_, *this, options, base));
  process_->replica = std::make_unique<cluster::Replica>(
      *this, *process_->node, *process_->journal, engine, base,
      cluster::Replica::Options{.hold_grace = options_.hold_grace});
  process_->seen = base.index;
  return {};
}

// --- A tick

void Machine::begin_tick() {
  if (serves()) process_->service.begin_tick(process_->replica->time().at(clock()));
}

void Machine::follow_replica() {
  cluster::Replica& replica = *process_->replica;
  bool more = true;
  while (more && !again_ && !dead()) {
    more = replica.advance();
    for (; process_->seen < replica.applied().index; ++process_->seen) {
      const Index index = process_->seen + 1;
      world_.applied(id_, index, process_->node->log().at(index));
    }
  }
}

void Machine::flush() {
  for (int i = 0; i < 3; ++i) {
    FactLog& log = serves() ? static_cast<FactLog&>(process_->replica->log()) : *process_->journal;
    if (!log.flush()) return;
  }
}

void Machine::end_tick() {
  if (process_ == nullptr || dead()) return;
  process_->node->tick();
  follow_replica();
  if (!again_ && !dead()) {
    flush();
    follow_replica();  // a single node has committed at once
  }
  if (dead()) return;
  if (!again_ && serves()) {
    auto& connections = process_->connections;
    for (auto next = connections.begin(); next != connections.end();) {
      auto& [client, connection] = *next++;
      serve(client, *connection);
    }
    hand_over();
  }
  start_if_wanted();
}

// A leader that cannot store entries passes on leadership when nothing is under way.
void Machine::hand_over() {
  cluster::Node& node = *process_->node;
  const bool cannot_store =
      node.full() || node.log().oldest_write() > 2 * options_.election_timeout;
  if (!cannot_store || clock() < hand_over_at_ || !is_clean()) return;
  hand_over_at_ = clock() + std::chrono::seconds(1);
  if (node.transfer(0)) ++hand_overs_;
}

void Machine::start_if_wanted() {
  if (!again_ || failed_) return;
  // Disk operations requested by the process are completed first.
  journal_disk_.run_all();
  raft_disk_.run_all();
  if (dead()) return;
  end_process();
  boot(seed_ + 1);
}

void Machine::serve(ClientId client, Connection& connection) {
  commands::Conversation& conversation = connection.conversation;
  const FactLog& log = process_->service.log();
  if (conversation.can_resume() && !log.congested()) conversation.resume();
  auto& replies = conversation.replies();
  const std::size_t sendable =
      connection.gate.sendable(replies.size(), log.appended(), log.durable());
  if (sendable == 0) return;
  std::string bytes;
  while (bytes.size() < sendable) {
    const std::string_view piece = replies.front().substr(0, sendable - bytes.size());
    bytes.append(piece);
    replies.take(piece.size());
  }
  connection.gate.sent(bytes.size());
  world_.reply(id_, client, std::move(bytes));
}

// --- Events

std::string_view Machine::receive(NodeId from, const std::string& frame) {
  begin_tick();
  const std::string_view fault = process_->node->receive(from, frame);
  end_tick();
  return fault;
}

bool Machine::connect(ClientId client) {
  if (!serves()) return false;
  process_->connections[client] = std::make_unique<Connection>(process_->service);
  return true;
}

void Machine::receive(ClientId client, const std::string& bytes) {
  begin_tick();
  const auto connection = process_->connections.find(client);
  if (connection != process_->connections.end()) connection->second->conversation.receive(bytes);
  end_tick();
}

void Machine::hang_up(ClientId client) {
  begin_tick();
  process_->connections.erase(client);
  end_tick();
}

bool Machine::disk_work(bool raft) {
  begin_tick();
  const bool done = (raft ? raft_disk_ : journal_disk_).run_one();
  if (process_ != nullptr) end_tick();
  return done;
}

std::size_t Machine::pending_disk_work(bool raft) const {
  return (raft ? raft_disk_ : journal_disk_).pending();
}

void Machine::tick() {
  begin_tick();
  end_tick();
}

Time Machine::next_deadline() const {
  Time next = process_->node->next_deadline();
  const Time journal = process_->journal->next_deadline();
  if (journal != kNever) next = std::min(next, clock() + std::max(journal - wall(), Duration()));
  if (serves()) {
    const engine::Deadlines due = process_->service.next_deadlines();
    if (due.closing) return world_.now() + std::chrono::microseconds(1);
    next =
        std::min(next, process_->replica->time().local(std::min({due.delay, due.ttr, due.pause})));
  }
  return true_time_of(next);
}

bool Machine::transfer() {
  begin_tick();
  const bool begun = process_->node->transfer(0);
  end_tick();
  return begun;
}

bool Machine::change_members(const std::vector<cluster::Member>& members) {
  begin_tick();
  const bool begun = process_->node->change_members(members);
  end_tick();
  return begun;
}

bool Machine::serves() const {
  return process_ != nullptr && process_->replica != nullptr && process_->replica->serving();
}

const cluster::Node& Machine::node() const {
  return *process_->node;
}
const cluster::Replica& Machine::replica() const {
  return *process_->replica;
}
engine::Engine& Machine::engine() {
  return process_->service.engine();
}
Time Machine::queue_time() const {
  return serves() ? process_->service.now() : Time();
}
Duration Machine::ahead() const {
  return process_->replica->time().at(clock()) - world_.now();
}
Lsn Machine::durable() const {
  return process_->service.log().durable();
}
bool Machine::is_clean() const {
  return !serves() || process_->replica->log().is_clean();
}

std::vector<std::string> Machine::state(Time now) const {
  return journal::durable_state(process_->service.engine(), now);
}

// --- Hosts

Time Machine::settled_time() const {
  return process_ == nullptr || process_->replica == nullptr ? Time()
                                                             : process_->replica->applied_time();
}

void Machine::begin_serving() {
  process_->service.set_log(process_->replica->log());
  world_.began_serving(id_);
}

void Machine::start_again() {
  again_ = true;
}

void Machine::replica_failed(const std::string& reason) {
  world_.problem("node " + std::to_string(id_) + ": " + reason);
  failed_ = true;
}

void Machine::failed(const std::string& reason) {
  // As after another failure of a disk, the process ends.
  const bool no_room = full_ && reason.find("No space left on device") != std::string::npos;
  if (!off() && !no_room) world_.problem("node " + std::to_string(id_) + " has failed: " + reason);
  failed_ = true;
}

void Machine::raft_log_full(bool /*full*/, const std::string& /*reason*/) {}

bool Machine::describe_job(JobId id, FactSink& sink) {
  if (process_->replica != nullptr && !process_->replica->is_settled(id)) return false;
  process_->service.engine().durable_state().describe(process_->replica->applied_time(), id, sink);
  return true;
}

}  // namespace tubed::cluster_test
