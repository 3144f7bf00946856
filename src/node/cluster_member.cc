// Each tick ends with drive(), called by the flush of the log: it drives the node, and then
// leadership, members and fetches. An event of the replica or a fetch that ends the life of the
// node calls stop_serving(); the node is destroyed later, outside of its own functions.
#include "node/cluster_member.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "node/cluster_status.h"
#include "node/cluster_tasks.h"
#include "node/former_clusters.h"
#include "node/state_install.h"
#include "os/clock.h"
#include "os/exit_codes.h"

namespace tubed::node {

using cluster::NodeId;
using cluster::WelcomeStatus;
using os::Log;

namespace {

// How often a node that is to be destroyed is asked whether operations on files are under way.
constexpr Duration kIdleCheck = std::chrono::milliseconds(1);
// After how many election timeouts a transfer of leadership has failed.
constexpr int kHandOverTimeouts = 5;
constexpr std::string_view kRemovePath = "/cluster/remove";

std::string own_endpoint(const ClusterSettings& settings) {
  return settings.address.empty() ? to_string(*settings.listen) : settings.address;
}

// A leader of an earlier version does not know each request that this version knows.
cluster::Response explained(const cluster::Response& response) {
  if (response.status != 404 || response.body != refusal(404, kNoSuchRequest).body) return response;
  return refusal(409,
                 "the leader has an earlier version, which does not know this change: upgrade it, "
                 "or pass leadership to a node of this version (tubectl cluster transfer NAME)");
}

Duration shifted(Time deadline, Time from) {
  return std::max(deadline - from, Duration::zero());
}

}  // namespace

Result<std::unique_ptr<ClusterMode>> make_cluster_mode(const ClusterParts& parts,
                                                       const Settings& settings,
                                                       ClusterHost& host) {
  return std::unique_ptr<ClusterMode>(std::make_unique<ClusterMember>(parts, settings, host));
}

ClusterMember::ClusterMember(const ClusterParts& parts, const Settings& settings, ClusterHost& host)
    : parts_(parts),
      settings_(settings),
      host_(host),
      log_(*this),
      own_address_(fmt::format("{}@{}", settings.cluster.name, own_endpoint(settings.cluster))),
      learned_(parts.log),
      hand_over_(parts.loop, parts.log),
      restart_timer_(parts.loop, [this] { go_on_when_idle(); }),
      transfers_(parts, settings, *this) {
  parts_.service.set_log(log_);
  parts_.service.set_clock(*this);
}

// --- The start

Result<void> ClusterMember::listen() {
  const Listen& address = *settings_.cluster.listen;
  auto socket =
      TRY(os::listen_tcp(address.host, address.port, static_cast<int>(settings_.tcp_backlog)));
  PeerHost& host = *this;
  links_ = std::make_unique<PeerLinks>(parts_.loop, parts_.log, host, std::move(socket),
                                       PeerLimits::of(settings_.cluster.election_timeout));
  links_->set_secrets(TRY(ClusterSecrets::read(settings_.cluster.secret_file)));
  introduce();
  if (settings_.cluster.clients == ClusterClients::forward) {
    ClientForwarderHost& clients = *this;
    forwarder_ =
        std::make_unique<ClientForwarder>(parts_.loop, parts_.log, links_->limits(), clients);
  }
  if (!settings_.cluster.admin) return {};
  ClusterAdminHost& operators = *this;
  admin_ = std::make_unique<ClusterAdmin>(parts_.loop, parts_.log, operators);
  return admin_->listen(*settings_.cluster.admin, settings_.tcp_backlog);
}

Result<void> ClusterMember::start() {
  TRY(open_directory());
  parts_.log.info("listening for nodes", {{"address", links_->address()}});
  if (settings_.cluster.admin)
    parts_.log.info("listening for operators", {{"address", to_string(*settings_.cluster.admin)}});
  return {};
}

Result<void> ClusterMember::open_directory() {
  const std::string& directory = settings_.journal_directory;
  TRY(finish_install(directory));
  const DirectoryKind kind = TRY(kind_of(directory));
  if (kind == DirectoryKind::node) {
    TRY(refuse_superseded(directory));
    links_->set_former_clusters(TRY(read_former_clusters(directory)));
    own_removal_.set_was_member();
    return open_node();
  }
  if (kind != DirectoryKind::empty) {
    return Error{fmt::format(
        "journal {}: it is not the journal of a node; tubed --cluster-bootstrap makes it the first "
        "node of a cluster, and a node that is added begins with an empty directory",
        directory)};
  }
  parts_.log.info("waiting to be added to a cluster",
                  {{"name", settings_.cluster.name}, {"address", own_endpoint(settings_.cluster)}});
  return {};
}

Result<void> ClusterMember::open_node() {
  NodeOwnerHost& host = *this;
  node_ = TRY(NodeOwner::open(parts_.loop, parts_.log, settings_, parts_.service, host));
  phase_ = Phase::running;
  cluster_id_ = node_->node().cluster();
  node_id_ = node_->node().id();
  parts_.service.set_now(node_->replica().applied_time());
  learned_.open(settings_.journal_directory, cluster_id_);
  look_at_members();
  introduce();
  parts_.scheduler.begin_tick();
  return {};
}

// --- A tick

bool ClusterMember::drive() {
  if (phase_ == Phase::closing) {
    go_on_closing();
    return false;
  }
  if (phase_ != Phase::running) return false;
  const bool more = node_->drive();
  if (all_committed_ && serves_) close_journal();
  if (phase_ != Phase::running) return false;
  if (!serves_) parts_.service.set_now(node_->replica().applied_time());
  const Time now = NodeOwner::now();
  if (leadership_ != nullptr) {
    const bool is_slow =
        node_->node().log().oldest_write() > 2 * settings_.cluster.election_timeout;
    if (node_->node().full() || is_slow) leadership_->hand_over_soon(now);
    leadership_->go_on(now);
  }
  if (known_.is_due(now)) look_at_members();
  return more;
}

Time ClusterMember::next_deadline() const {
  return phase_ == Phase::running ? node_->next_deadline() : kNever;
}

// Follows changes of the members and of the leader.
void ClusterMember::look_at_members() {
  const cluster::Node& node = node_->node();
  const KnownCluster::Changes changes = known_.look(node, NodeOwner::now());
  if (known_.member(node_id_) != nullptr) own_removal_.set_was_member();
  if (changes.members) {
    introduce();
    follow_addresses();
  }
  learned_.store_when_due(NodeOwner::now());
  request_own_removal();
  transfers_.set_link_rate(node.appends().lowest_rate());
  if (!changes.leader) return;
  introduce();
  leader_changed();
  const bool leads = known_.leader() == node_id_;
  if (leads) ++state_.elections;
  parts_.log.info(leads ? "leading" : "following", {{"leader", known_.name_of(known_.leader())},
                                                    {"term", std::uint64_t{known_.term()}}});
}

// A connected member that gets an address at which it does not listen, or not yet, is reached where
// it has said.
void ClusterMember::follow_addresses() {
  learned_.follow(known_.members());
  for (const cluster::Member& member : known_.members()) {
    if (const std::string stated = links_->stated_address(member.id); !stated.empty())
      learned_.learn(member, stated);
  }
  links_->set_members(known_.members());
  links_->set_learned(learned_.all());
}

std::optional<Time> ClusterMember::tick_began(Time /*tick*/) {
  if (!serves_) return std::nullopt;
  return node_->replica().time().at(NodeOwner::now());
}

// The deadlines of the queue are times of the cluster.
engine::Deadlines ClusterMember::next_deadlines() const {
  engine::Deadlines next;
  if (!serves_) return next;
  next = parts_.service.engine().next_deadlines();
  const Time queue = parts_.service.now();
  const Time tick = parts_.service.tick_time();
  for (Time* deadline : {&next.delay, &next.ttr, &next.pause}) {
    if (*deadline != kNever) *deadline = tick + shifted(*deadline, queue);
  }
  return next;
}

bool ClusterMember::holds_commands() const {
  return leadership_ != nullptr && leadership_->is_handing_over();
}

const journal::Journal* ClusterMember::journal() const {
  return node_ == nullptr ? nullptr : &node_->journal();
}

// --- Leadership

void ClusterMember::begin_serving() {
  log_.attach(node_->replica().log());
  leadership_ = std::make_unique<Leadership>(parts_.log, node_->node(), node_->replica().log());
  serves_ = true;
  parts_.log.info("serving", {{"term", std::uint64_t{node_->node().term()}},
                              {"jobs", parts_.service.engine().info().jobs.total()}});
  host_.role_changed();
  leader_changed();
}

void ClusterMember::leadership_lost() {
  ++state_.leaderships_lost;
  parts_.log.info("leadership lost", {{"clients", std::uint64_t{parts_.clients.count()}}});
  stop_serving();
  if (hand_over_.is_under_way()) {  // the server stops, and the node has no next life
    phase_ = Phase::closing;
    return hand_over_.end();
  }
  phase_ = Phase::restarting;
  restart_timer_.arm(Duration::zero());
}

// Closes the clients. Replies that were held back are not sent.
void ClusterMember::stop_serving() {
  if (!serves_) return;
  past_leases_lost_ += node_->replica().log().leases_lost();
  serves_ = false;
  leadership_.reset();
  log_.detach();
  parts_.service.engine().recorded_reservations().record_to(nullptr);
  parts_.clients.close_all("this node does not lead any more");
  log_.forget_pending();
  host_.role_changed();
}

bool ClusterMember::hand_over(std::function<void()> done) {
  if (leadership_ == nullptr || !leadership_->hand_over(0)) {
    if (forwarded() == 0) return false;
    forwarder_->end(settings_.shutdown_timeout, std::move(done));
    return true;
  }
  hand_over_.begin(kHandOverTimeouts * settings_.cluster.election_timeout, std::move(done));
  parts_.scheduler.begin_tick();
  return true;
}

// --- The next life

// For a node that restarts, or whose server stops.
void ClusterMember::go_on_when_idle() {
  begin_tick();
  if (phase_ == Phase::closing) return go_on_closing();
  if (node_ != nullptr && !node_->idle()) return restart_timer_.arm(kIdleCheck);
  restart();
}

void ClusterMember::restart() {
  transfers_.stop();
  node_.reset();
  if (const auto installed = transfers_.install(node_id_); !installed)
    return fail(os::kExitJournal, installed.error().message);
  parts_.service.replace_queue(Time(), [](engine::Engine&) {});
  if (auto opened = open_node(); !opened) fail(os::kExitJournal, opened.error().message);
}

void ClusterMember::fail(int exit_code, const std::string& reason) {
  parts_.log.error("this node cannot go on", {{"reason", reason}});
  host_.cluster_failed(exit_code);
}

// --- Fetching a state

void ClusterMember::send(NodeId to, std::string frame) {
  links_->send(to, std::move(frame));
}

void ClusterMember::appends_were_slow(NodeId follower, std::uint64_t count, Duration longest) {
  state_.slow_appends += count;
  const auto rate = static_cast<std::uint64_t>(node_->node().appends().rate(follower));
  parts_.log.limited(Log::Level::warning, parts_.service.tick_time(),
                     "changes took longer than half an election timeout to another node",
                     {{"node", known_.name_of(follower)},
                      {"milliseconds", static_cast<std::uint64_t>(longest.count() / 1'000'000)},
                      {"bytes_per_second", rate}});
}

void ClusterMember::fetch_state(NodeId source) {
  if (transfers_.is_fetching() || phase_ != Phase::running) return;
  if (const cluster::Member* const from = known_.member(source))
    begin_fetch(source, links_->address_of(*from));
}

void ClusterMember::begin_fetch(NodeId source, const std::string& address) {
  const PeerFacts& facts = links_->facts();
  transfers_.fetch(address,
                   {.purpose = cluster::Purpose::fetch,
                    .level = cluster::kFeatureLevel,
                    .cluster = cluster_id_,
                    .from = node_id_,
                    .to = source,
                    .address = facts.address,
                    .configuration_index = facts.configuration_index,
                    .name = {},
                    .invites = false},
                   links_->security(), node_ == nullptr ? 0 : node_->node().log().last());
}

void ClusterMember::fetch_ended(bool fetched) {
  if (fetched) {
    stop_serving();
    phase_ = Phase::restarting;
    restart_timer_.arm(Duration::zero());
  } else if (phase_ == Phase::waiting) {
    cluster_id_ = node_id_ = 0;
    introduce();
  }
}

void ClusterMember::on_fetch(const cluster::Hello& hello, loop::Connection connection) {
  transfers_.send(hello, std::move(connection), node_->node());
}

// --- Other nodes

// Updates the facts with which this node introduces itself.
void ClusterMember::introduce() {
  PeerFacts facts{.cluster = cluster_id_, .node = node_id_, .address = own_address_.by_settings()};
  facts.settings = digests_of(settings_, cluster_id_);
  if (phase_ == Phase::running) {
    const cluster::Node& node = node_->node();
    facts.configuration_index = node.configurations().newest();
    facts.has_state = true;
    facts.level = node.level();
    facts.address = own_address_.at(facts.level, known_.member(node_id_), parts_.log);
  }
  links_->set_facts(facts);
}

WelcomeStatus ClusterMember::judge(const cluster::Hello& hello) {
  if (phase_ == Phase::restarting || phase_ == Phase::closing) return WelcomeStatus::busy;
  const WelcomeStatus status = links_->usual_status(hello);
  // The change that has removed it may be taken back.
  const bool is_settled =
      phase_ != Phase::running || links_->facts().configuration_index <= node_->node().committed();
  if (status == WelcomeStatus::not_a_member && !is_settled) return WelcomeStatus::busy;
  if (status == WelcomeStatus::ok && hello.purpose == cluster::Purpose::fetch &&
      transfers_.is_sending())
    return WelcomeStatus::busy;
  if (status == WelcomeStatus::ok && hello.purpose == cluster::Purpose::client &&
      (!serves_ || leadership_->is_handing_over()))
    return WelcomeStatus::busy;
  return status;
}

// The first call that a new node gets makes it a member of that cluster.
void ClusterMember::on_turned_away(const cluster::Hello& hello, WelcomeStatus status) {
  const bool is_call = status == WelcomeStatus::waiting && phase_ == Phase::waiting &&
                       hello.purpose == cluster::Purpose::frames && hello.to != 0;
  if (!is_call || transfers_.is_fetching()) return;
  if (!hello.invites) {
    return parts_.log.limited(
        Log::Level::info, parts_.service.tick_time(),
        "a node without a state waits for a leader that adds it; if it was a voter and has lost "
        "its disk, remove it from the cluster and add it again",
        {{"caller", hello.address}});
  }
  cluster_id_ = hello.cluster;
  node_id_ = hello.to;
  begin_fetch(hello.from, hello.address);
}

// The node knows its members. known_ is older: after a promotion it has the new voter as a
// standby.
bool ClusterMember::may_invite(NodeId member) const {
  return phase_ == Phase::running && node_->node().may_invite(member);
}

std::string_view ClusterMember::on_frame(NodeId from, std::string_view frame) {
  return phase_ == Phase::running ? node_->node().receive(from, frame) : std::string_view();
}

// A member has proved who it is, and says where it listens.
void ClusterMember::on_stated_address(const cluster::Member& member, const std::string& stated) {
  if (learned_.learn(member, stated)) links_->set_learned(learned_.all());
}

void ClusterMember::on_rejected(NodeId by, const cluster::Welcome& welcome) {
  if (welcome.status == WelcomeStatus::superseded) return end_superseded(welcome);
  if (is_removed_by(welcome)) {
    if (!own_removal_.report()) return;
    parts_.log.error("this node was removed from its cluster", {{"reported_by", welcome.name}});
    return host_.removed_from_cluster();
  }
  if (welcome.status != WelcomeStatus::other_cluster && welcome.status != WelcomeStatus::other_node)
    return;
  const bool other_cluster = welcome.status == WelcomeStatus::other_cluster;
  parts_.log.limited(
      Log::Level::warning, parts_.service.tick_time(), "another node is at the address of a member",
      {{"member", known_.name_of(by)},
       {"reason", other_cluster ? "it is of another cluster" : "it has another id"}});
}

// The cluster was recovered from the state of a node that was lost for this node's majority. This
// node ends at once: its clients could otherwise change jobs that the recovered cluster has, too.
void ClusterMember::end_superseded(const cluster::Welcome& welcome) {
  stop_serving();
  if (const auto marked = mark_superseded(settings_.journal_directory); !marked)
    parts_.log.error("the end of this node is not recorded", {{"reason", marked.error().message}});
  parts_.log.error("the cluster of this node was recovered on another node, and this node ends",
                   {{"reported_by", welcome.name}});
  host_.cluster_failed(os::kExitSuperseded);
}

bool ClusterMember::is_removed_by(const cluster::Welcome& welcome) const {
  return welcome.status == WelcomeStatus::not_a_member && phase_ == Phase::running &&
         own_removal_.follows_from(welcome, links_->facts().configuration_index,
                                   known_.member(node_id_) != nullptr);
}

// --- Operators

// A request of another node, which takes this node for the leader.
void ClusterMember::on_request(const cluster::Request& request, Reply answer) {
  if (leadership_ == nullptr) return answer(refusal(503, "this node does not lead"));
  const bool is_own_removal = request.path == kRemovePath && leadership_->names_itself(request);
  if (is_own_removal) {
    if (const auto refused = leadership_->refuse_removal(request)) return answer(*refused);
  }
  if (!is_own_removal || !leadership_->hand_over(0)) return answer(leadership_->run(request));
  // The next leader removes this node.
  own_removal_.begin(request, NodeOwner::now());
  answer({.status = 200, .body = "{}"});
}

void ClusterMember::request_own_removal() {
  if (serves_ || node_->node().leader() == 0) return;
  const cluster::Request* const request = own_removal_.next(NodeOwner::now());
  if (request == nullptr) return;
  change(*request, [this](const cluster::Response& response) { own_removal_.answered(response); });
}

void ClusterMember::change(const cluster::Request& request, Answer answer) {
  if (leadership_ != nullptr) return on_request(request, std::move(answer));
  if (phase_ == Phase::waiting)
    return answer(refusal(409, "this node is not in a cluster: it waits to be added"));
  const cluster::Member* const leader =
      phase_ == Phase::running ? known_.member(node_->node().leader()) : nullptr;
  if (leader == nullptr) {
    const bool is_elected = phase_ == Phase::running && node_->node().leads();
    if (!is_elected && request.path == kSetAddressPath) return answer(try_address(request));
    return answer(refusal(
        503, is_elected ? "this node was elected, and does not serve yet" : "no leader is known"));
  }
  links_->request(
      links_->address_of(*leader), request,
      [answer = std::move(answer)](const Result<cluster::Response>& response) {
        answer(response ? explained(*response) : refusal(503, response.error().message));
      });
}

// The configuration cannot change without a leader. Until then this node also dials the address
// that an operator gives: so a cluster all of whose nodes have moved gets a leader.
cluster::Response ClusterMember::try_address(const cluster::Request& request) {
  const auto given = address_in(request);
  if (!given) return refusal(400, kNoAddress);
  const auto member = std::ranges::find_if(known_.members(), [&](const cluster::Member& one) {
    return cluster::name_in(one.address) == given->name;
  });
  if (phase_ != Phase::running || member == known_.members().end() || member->id == node_id_)
    return refusal(503, "no leader is known");
  if (learned_.learn(*member, to_string(*given))) links_->set_learned(learned_.all());
  return refusal(503, fmt::format("no leader is known; meanwhile this node dials {} at {} too",
                                  given->name, given->endpoint()));
}

const stats::ClusterState& ClusterMember::state() {
  state_.name = settings_.cluster.name;
  state_.id = node_id_;
  if (std::exchange(shown_id_, cluster_id_) != cluster_id_)
    state_.cluster = shown_cluster(cluster_id_);
  state_.serves = serves_;
  state_.raft_log_limit = settings_.cluster.log_size;
  state_.election_timeout = settings_.cluster.election_timeout;
  state_.fetched_bytes = transfers_.fetched_bytes();
  state_.fetches = transfers_.installed();
  state_.forwarded = forwarded();
  state_.differing = links_->differing();
  state_.leases_lost =
      past_leases_lost_ + (serves_ ? node_->replica().log().leases_lost() : std::uint64_t{0});
  state_.held_over =
      serves_ ? parts_.service.engine().recorded_reservations().held_over_count() : 0;
  if (node_ != nullptr) {
    describe_node(node_->node(), node_->replica().applied().index, state_);
    state_.raft_log_full = node_->raft_log_full();
    for (stats::ClusterNode& other : state_.nodes) {
      if (other.is_self) {
        other.reached_at = own_address_.other_than(other.address, node_->node().level());
        continue;
      }
      other.reached_at = links_->learned_address(other.id);
      other.level = links_->last_level(other.id);
      other.failure = links_->last_failure(other.id);
    }
  } else {
    state_.role = stats::ClusterRole::waiting;
  }
  if (transfers_.is_fetching()) state_.role = stats::ClusterRole::fetching;
  return state_;
}

Result<bool> ClusterMember::read_files(const Settings& settings) {
  new_secrets_ = TRY(ClusterSecrets::read(settings.cluster.secret_file));
  return *new_secrets_ != links_->security().secrets;
}

void ClusterMember::settings_changed() {
  const auto secrets = std::exchange(new_secrets_, std::nullopt);
  if (secrets && *secrets != links_->security().secrets && links_->set_secrets(*secrets))
    end_connections();
  if (node_ != nullptr) node_->apply(settings_);
  transfers_.settings_changed();
  introduce();
}

void ClusterMember::set_tls(std::shared_ptr<const loop::TlsContext> tls) {
  if (links_->set_tls(std::move(tls))) end_connections();
}

// A secret, an authority or TLS itself is no longer used as before: ends the connections that
// PeerLinks has handed over. They are made again.
void ClusterMember::end_connections() {
  parts_.clients.close_forwarded("the security of the cluster has changed");
  if (forwarder_ != nullptr) forwarder_->security_changed();
  if (transfers_.is_fetching() && phase_ == Phase::waiting) cluster_id_ = node_id_ = 0;
  transfers_.stop();
  introduce();
}

// --- The end

void ClusterMember::close(std::function<void()> closed) {
  closed_ = std::move(closed);
  transfers_.stop();
  restart_timer_.disarm();
  if (serves_) return node_->replica().log().close([this] { all_committed_ = true; });
  close_journal();
}

void ClusterMember::close_journal() {
  stop_serving();
  phase_ = Phase::closing;
  if (node_ == nullptr) return go_on_closing();
  node_->close([this] {
    journal_closed_ = true;
    go_on_closing();
  });
}

void ClusterMember::go_on_closing() {
  if (node_ != nullptr) {
    if (!journal_closed_) return node_->drive_closing();
    if (!node_->idle()) return restart_timer_.arm(kIdleCheck);
  }
  if (closed_) std::exchange(closed_, nullptr)();
}

}  // namespace tubed::node
