#include "cluster/node.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/planted.h"
#include "cluster/membership.h"
#include "cluster/rejection.h"

namespace tubed::cluster {

namespace {

// Why a frame is refused.
constexpr std::string_view kDamaged = "it is damaged, or of a type that this version does not know";
constexpr std::string_view kForAnother = "it is for another node or cluster";
constexpr std::string_view kOfAnother = "it names another sender than its connection";
constexpr std::string_view kNotOfCore = "no node sends such a message";

// The most appends that are sent without an answer.
constexpr unsigned kMostInFlight = 32;
// The raft log is sealed after this time without entries.
constexpr Duration kSealDelay = std::chrono::seconds(1);
// The data of the core's own entries.
constexpr char kBarrier[8] = {};

unsigned whole_milliseconds(Duration time) {
  return static_cast<unsigned>(std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

core_entry as_core(const Entry& entry) {
  const std::string_view data = entry.data.view();
  return {.term = entry.term,
          .type = static_cast<int>(entry.type),
          .data = data.data(),
          .bytes = data.size()};
}

std::vector<core_entry> as_core(std::span<const Entry> entries) {
  std::vector<core_entry> result;
  result.reserve(entries.size());
  for (const Entry& entry : entries) result.push_back(as_core(entry));
  return result;
}

}  // namespace

Result<std::unique_ptr<Node>> Node::open(journal::Storage& storage, NodeHost& host,
                                         const NodeOptions& options, const Applied& base) {
  auto state = TRY(load_node_state(storage));
  if (!state) return Error{"the node has no state: it is not a member of a cluster"};
  if (state->level > options.level) {
    return Error{
        fmt::format("the cluster uses feature level {}, and this version of tubed knows "
                    "only {}: start a later version",
                    state->level, options.level)};
  }
  std::unique_ptr<Node> node(new Node(storage, host, options, std::move(*state)));
  TRY(node->start(base));
  return node;
}

Node::Node(journal::Storage& storage, NodeHost& host, const NodeOptions& options, NodeState state)
    : storage_(storage),
      host_(host),
      options_(options),
      state_(std::move(state)),
      core_(host),
      followers_(options.election_timeout),
      started_(host.clock()) {}

Result<void> Node::start(const Applied& base) {
  RaftLogOptions log_options = options_.log;
  log_options.cluster = state_.cluster;
  log_ = TRY(RaftLog::open(storage_, *this, log_options));
  if (base.index + 1 < log_->first() || base.index > log_->last()) {
    return Error{fmt::format("the raft log has the entries {} to {}, and the journal ends after {}",
                             log_->first(), log_->last(), base.index),
                 Error::Kind::damaged};
  }
  if (base.index >= log_->first() && log_->term_of(base.index) != base.term) {
    return Error{fmt::format("the raft log and the journal differ at entry {}", base.index),
                 Error::Kind::damaged};
  }
  configurations_ = std::make_unique<Configurations>(state_, *log_, core_);
  kept_entries_ = std::make_unique<KeptEntries>(options_, *log_);
  appends_ = std::make_unique<AppendSender>(options_, host_, *log_, core_);
  // Entries that were kept for followers before the start are cut.
  if (base.index >= log_->first()) {
    const Index first = kept_entries_->newest(base.index);
    if (configurations_->keep_before(first)) TRY(store_node_state(storage_, state_));
    log_->cut(first);
  }
  kept_entries_->cut_at(base.index);
  chains_.begin(base);
  for (Index i = base.index + 1; i <= log_->last(); ++i) chains_.replace(i, {&log_->at(i), 1});
  commit_ = base.index;
  reported_ = log_->last();
  return start_core(base);
}

Result<void> Node::start_core(const Applied& base) {
  const unsigned timeout = whole_milliseconds(options_.election_timeout);
  const core_settings settings{.id = state_.node,
                               .seed = options_.seed,
                               .election_timeout_ms = timeout,
                               .heartbeat_ms = std::max(timeout / 10, 1U),
                               .max_inflight = kMostInFlight};
  if (!core_.create(settings)) return Error{"no memory for the node"};
  std::vector<core_entry> entries;
  for (Index i = log_->first(); i <= log_->last(); ++i) entries.push_back(as_core(log_->at(i)));
  const auto [configuration, configuration_index] = configurations_->at(base.index);
  const core_base begin{.time = core_.time(),
                        .term = state_.term,
                        .voted_for = state_.voted_for,
                        .index = base.index,
                        .index_term = base.term,
                        .configuration = configuration.data(),
                        .configuration_bytes = configuration.size(),
                        .configuration_index = configuration_index,
                        .first = log_->first(),
                        .entries = entries.data(),
                        .n_entries = static_cast<unsigned>(entries.size())};
  const core_update* update = nullptr;
  const int code = core_start(core_.get(), &begin, &update);
  if (code != 0) return Error{fmt::format("the node cannot start: {}", core_error(code))};
  configurations_->follow();
  done("start", code, update, {});
  return {};
}

void Node::fail(const std::string& reason) {
  if (!std::exchange(failed_, true)) host_.node_failed(reason);
}

// --- The updates of the core

void Node::done(std::string_view step, int code, const core_update* update,
                std::span<const Entry> given) {
  if (code != 0) return fail(fmt::format("raft, {}: {}", step, core_error(code)));
  if (update->vote_changed != 0 && !TUBED_PLANTED(vote_before_sync)) {
    state_.term = term();
    state_.voted_for = core_voted_for(core_.get());
    store_state();
  }
  if (failed_) return;
  if (update->state_changed != 0 || update->vote_changed != 0) {
    followers_.reset(host_.clock());
    appends_->reset();
    entry_times_.reset();
  }
  if (update->barrier != 0) {
    const Entry barrier{.term = term(),
                        .type = EntryType::barrier,
                        .data = Bytes::copy_of(std::string_view(kBarrier, sizeof kBarrier))};
    store_entries(update->first, {&barrier, 1});
    entry_times_.appended(update->first, host_.clock());
  } else if (update->first != 0) {
    store_entries(update->first, given.last(update->n_entries));
  }
  for (unsigned i = 0; i < update->n_messages; ++i) send(update->messages[i]);
  if (update->commit_changed != 0 || update->state_changed != 0) host_.node_changed();
  if (TUBED_PLANTED(acknowledge_before_sync) && update->first != 0)
    entries_stored(log_->last(), log_->term_of(log_->last()));
  take_committed();
}

void Node::store_state() {
  if (const auto stored = store_node_state(storage_, state_); !stored) fail(stored.error().message);
}

void Node::store_entries(Index first, std::span<const Entry> entries) {
  TUBED_ASSERT(first > commit_);
  chains_.replace(first, entries);
  reported_ = std::min(reported_, first - 1);
  const bool changes = first <= log_->last() ||
                       std::ranges::find(entries, EntryType::change, &Entry::type) != entries.end();
  log_->append(first, entries);
  if (changes) configurations_->follow();
  seal_at_ = host_.clock() + kSealDelay;
}

void Node::send(const core_message& message) {
  Message frame{.cluster = state_.cluster,
                .from = state_.node,
                .to = message.peer,
                .sent = host_.clock(),
                .echo = {},
                .time = {},
                .type = static_cast<MessageType>(message.type),
                .term = message.term,
                .index = message.index,
                .log_term = message.log_term,
                .commit = message.commit,
                .rejected = message.rejected,
                .granted = message.granted != 0,
                .pre_vote = message.pre_vote != 0,
                .disrupt_leader = message.disrupt_leader != 0,
                .entries = {}};
  if (frame.type == MessageType::append) {
    if (time_.is_set()) frame.time = time_.at(frame.sent);
    return appends_->send(std::move(frame), message.n_entries, level() >= kPartsLevel);
  }
  if (frame.type == MessageType::append_result) {
    frame.full = full();
    if (frame.rejected > 0) explain(frame, *log_, applicable());
    frame.echo = leader_frames_.newest(frame.to, frame.term);
    if (level() >= kLevelOfClocks) frame.time = host_.wall();
  }
  // A candidate that was restarted must not take its wall clock for the time of the cluster.
  if (frame.type == MessageType::vote_result && level() >= kLevelOfClocks && time_.is_set() &&
      !TUBED_PLANTED(votes_without_time))
    frame.time = time_.at(frame.sent);
  host_.send(frame.to, encode(frame));
}

// A committed change of the members takes effect.
void Node::take_committed() {
  const Index commit = core_commit(core_.get());
  while (commit_ < commit && !failed_) {
    ++commit_;
    const Entry& entry = log_->at(commit_);
    if (entry.type != EntryType::change) continue;
    const std::string_view data = entry.data.view();
    const core_update* update = nullptr;
    const int code =
        core_configuration(core_.get(), core_.time(), commit_, data.data(), data.size(), &update);
    done("configuration", code, update, {});
  }
}

// --- Events

std::string_view Node::receive(NodeId from, std::string_view frame) {
  if (failed_) return {};
  if (is_part(frame)) return receive_part(from, frame);
  const auto message = decode(frame);
  if (!message) return kDamaged;
  if (message->cluster != state_.cluster || message->to != state_.node) return kForAnother;
  return message->from == from ? receive(*message) : kOfAnother;
}

// Returns why the message is refused.
std::string_view Node::receive(const Message& message) {
  const std::string_view fault = fault_of(message);
  if (!fault.empty() && !TUBED_PLANTED(forged_frames_reach_the_core)) return fault;
  const bool silent = host_.clock() < started_ + options_.election_timeout;
  if (message.type == MessageType::vote && silent && !TUBED_PLANTED(no_silence_after_start))
    return {};
  if (message.type == MessageType::fetch) {
    host_.fetch_state(message.from);
    return {};
  }
  if (message.type == MessageType::append)
    leader_frames_.heard(message.from, message.term, message.sent);
  // While this node leads, the time is its own: a late vote or a former leader that does not know
  // of it would move it on, and end reservations early.
  const bool has_time =
      message.type == MessageType::append || message.type == MessageType::vote_result;
  if (has_time && message.time != Time() && (!leads() || message.term > term()))
    time_.observe(host_.clock(), message.time);
  if (message.type == MessageType::append_result && message.rejected > 0)
    appends_->rejected(message);
  if (!pass(message)) return kNotOfCore;
  if (!failed_ && message.type == MessageType::append_result) take_echo(message);
  return {};
}

std::string_view Node::receive_part(NodeId from, std::string_view frame) {
  const auto part = decode_part(frame);
  if (!part) return kDamaged;
  if (part->cluster != state_.cluster || part->to != state_.node) return kForAnother;
  if (part->from != from) return kOfAnother;
  if (part->term > kMostPosition) return kNotOfCore;
  if (part->term < term()) return {};
  if (const auto append = leader_frames_.take(*part)) return receive(*append);
  if (TUBED_PLANTED(echo_without_core)) {
    leader_frames_.heard(part->from, part->term, part->sent);
    core_message result{};
    result.type = CORE_APPEND_RESULT;
    result.peer = part->from;
    result.term = part->term;
    send(result);
    return {};
  }
  return receive_sign_of_life(*part) ? std::string_view() : kNotOfCore;
}

// As if the leader had sent an append without entries after the last entry that both have.
// Returns false if the core refuses it.
bool Node::receive_sign_of_life(const Part& part) {
  const Term log_term = log_->term_of(commit_);
  core_message event{};
  event.type = CORE_APPEND;
  event.peer = part.from;
  event.term = part.term;
  event.index = event.commit = log_term == 0 ? 0 : commit_;
  event.log_term = log_term;
  const core_update* update = nullptr;
  const int code = core_receive(core_.get(), core_.time(), &event, &update);
  if (code == CORE_MALFORMED) return false;
  if (code == 0 && term() == part.term && leader() == part.from)
    leader_frames_.heard(part.from, part.term, part.sent);
  done("receive", code, update, {});
  return true;
}

// Another node follows this leader.
void Node::take_echo(const Message& result) {
  if (!leads() || result.term != term()) return;
  followers_.answered(result.from, {.at = host_.clock(), .full = result.full});
  if (result.echo == Time()) return;
  followers_.lease().answered(result.from, result.echo);
  if (result.time != Time())
    followers_.read_clock(result.from, result.time, result.echo, host_.clock(), host_.wall());
  appends_->acknowledged(result.from, result.echo);
  host_.node_changed();
}

// Passes a message to the core. Entries starting with a change of the members are passed
// separately, because the core assumes that a change is the first entry of its message. Returns
// false if the core refuses the message, or the rest of its entries.
bool Node::pass(const Message& message) {
  std::span<const Entry> rest = message.entries;
  Index index = message.index;
  Term log_term = message.log_term;
  const bool is_rejection = message.type == MessageType::append_result && message.rejected > 0;
  const bool is_acknowledged = is_rejection && !failed_ && acknowledges(message, *log_, core_);
  const Index rejected = is_acknowledged ? 0 : message.rejected;
  do {
    std::size_t count = std::min<std::size_t>(rest.size(), 1);
    while (count < rest.size() && rest[count].type != EntryType::change) ++count;
    const std::span<const Entry> part = rest.first(count);
    const std::vector<core_entry> entries = as_core(part);
    const core_message event{.type = static_cast<int>(message.type),
                             .peer = message.from,
                             .term = message.term,
                             .index = index,
                             .log_term = log_term,
                             .commit = message.commit,
                             .rejected = rejected,
                             .entries = entries.data(),
                             .n_entries = static_cast<unsigned>(entries.size()),
                             .granted = message.granted,
                             .pre_vote = message.pre_vote,
                             .disrupt_leader = message.disrupt_leader};
    const core_update* update = nullptr;
    const int code = core_receive(core_.get(), core_.time(), &event, &update);
    if (code == CORE_MALFORMED) return false;
    done("receive", code, update, part);
    rest = rest.subspan(count);
    if (count > 0) log_term = part.back().term;
    index += count;
  } while (!rest.empty() && !failed_);
  return true;
}

void Node::tick() {
  if (failed_) return;
  if (Time(std::chrono::milliseconds(core_.time())) >= core_.deadline()) {
    const core_update* update = nullptr;
    const int code = core_timeout(core_.get(), core_.time(), &update);
    done("timeout", code, update, {});
  }
  Lease& lease = followers_.lease();
  if (lease.given_up() && core_.transferee() == 0) lease.transfer_ended(host_.clock());
  if (host_.clock() >= seal_at_) {
    log_->seal();
    seal_at_ = kNever;
  }
  log_->flush();
}

bool Node::is_stranded() const {
  return leads() && followers_.lease().is_stranded(host_.clock());
}

Time Node::next_deadline() const {
  if (failed_) return kNever;
  return std::min({core_.deadline(), log_->next_deadline(), seal_at_});
}

void Node::entries_stored(Index last, Term term) {
  if (failed_) return;
  // Entries that were replaced meanwhile are not stored.
  Index index = std::min(last, log_->last());
  while (index > reported_ && log_->term_of(index) != term) --index;
  host_.node_changed();
  if (index <= reported_) return;
  reported_ = index;
  const core_update* update = nullptr;
  const int code = core_persisted(core_.get(), core_.time(), index, &update);
  done("persisted", code, update, {});
}

// --- The leader

bool Node::leads() const {
  return !failed_ && core_.leads();
}

Term Node::term() const {
  return core_.term();
}

NodeId Node::leader() const {
  return leads() ? 0 : core_.leader();
}

std::optional<Index> Node::match(NodeId member) const {
  return failed_ ? std::nullopt : core_.match(member);
}

std::optional<Time> Node::silent_since(NodeId member) const {
  if (!leads()) return std::nullopt;
  return followers_.silent_since(member);
}

std::optional<Duration> Node::lag(NodeId member) const {
  if (!leads()) return std::nullopt;
  const Index match = member == id() ? log_->stored() : this->match(member).value_or(0);
  if (match >= log_->last()) return Duration::zero();
  const auto since = match == 0 ? std::nullopt : entry_times_.after(*log_, time_, member, match);
  if (!since) return std::nullopt;
  return std::max(host_.clock() - *since, Duration::zero());
}

bool Node::majority_has_room() const {
  std::size_t room = 0;
  const std::vector<NodeId>& voters = configurations_->voters();
  for (const NodeId voter : voters) room += voter == state_.node ? !full() : has_room(voter);
  return room > voters.size() / 2;
}

Index Node::applicable() const {
  if (TUBED_PLANTED(journal_ahead_of_raft_log)) return commit_;
  return std::min(commit_, log_->stored());
}

Time Node::lease_end() const {
  return leads() ? followers_.lease().end(configurations_->voters(), state_.node) : Time::min();
}

bool Node::can_submit() const {
  return leads() && core_.transferee() == 0;
}

Index Node::submit(std::vector<Bytes> data) {
  if (!can_submit()) return 0;
  std::vector<Entry> entries;
  for (Bytes& bytes : data)
    entries.push_back({.term = term(), .type = EntryType::facts, .data = std::move(bytes)});
  const std::vector<core_entry> list = as_core(entries);
  const Index first = log_->last() + 1;
  const core_update* update = nullptr;
  const int code = core_submit(core_.get(), core_.time(), list.data(),
                               static_cast<unsigned>(list.size()), &update);
  if (code != 0) return 0;  // leadership is being transferred: nothing was appended
  done("submit", code, update, entries);
  return failed_ ? 0 : first;
}

bool Node::change_members(const std::vector<Member>& members) {
  const Time recent = host_.clock() - options_.election_timeout;
  if (!leads() || !configurations_->would_elect(members, commit_, followers_, recent)) return false;
  const auto configuration = encode_members(members);
  if (!configuration) return false;
  const Entry entry{
      .term = term(), .type = EntryType::change, .data = Bytes::copy_of(*configuration)};
  const std::vector<Member> present = this->members();
  const core_entry change = as_core(entry);
  const core_update* update = nullptr;
  const int code = core_submit(core_.get(), core_.time(), &change, 1, &update);
  if (code != 0) return false;
  done("submit", code, update, {&entry, 1});
  entry_times_.appended(log_->last(), host_.clock());
  for (const Member& member : members) {
    if (std::ranges::find(present, member.id, &Member::id) == present.end())
      followers_.added(member.id, host_.clock());
  }
  return !failed_;
}

bool Node::may_invite(NodeId member) const {
  if (!leads() || (!has_lease() && !TUBED_PLANTED(invites_without_lease))) return false;
  std::vector<Member> newest = members();
  if (TUBED_PLANTED(invites_by_old_members))
    newest = decode_members(configurations_->at(commit_).first).value_or(newest);
  const auto found = std::ranges::find(newest, member, &Member::id);
  return found != newest.end() && found->role == MemberRole::standby;
}

bool Node::transfer(NodeId to) {
  if (!can_submit() || is_transferring()) return false;
  const core_update* update = nullptr;
  const int code = core_transfer(core_.get(), core_.time(), to, &update);
  if (code != 0) return false;
  followers_.lease().give_up(core_.transferee());
  done("transfer", code, update, {});
  return !failed_;
}

// --- Retained entries

void Node::journal_synced(Index position) {
  TUBED_ASSERT(position <= commit_);
  if (failed_ || !kept_entries_->is_worth_cutting(position)) return;
  const Time recently = host_.clock() - 10 * options_.election_timeout;
  const Index first = kept_entries_->first(position, followers_.acknowledged(recently, core_));
  if (configurations_->keep_before(first)) store_state();
  if (failed_) return;
  kept_entries_->cut_at(position);
  const auto [configuration, configuration_index] = configurations_->at(position);
  const core_update* update = nullptr;
  const int code = core_cut(core_.get(), core_.time(), position, log_->term_of(position),
                            static_cast<unsigned>(position - first + 1), configuration.data(),
                            configuration.size(), configuration_index, &update);
  done("cut", code, update, {});
  if (leads()) {
    for (const Member& member : members())
      entry_times_.before_cut(*log_, time_, first, member.id, match(member.id).value_or(0));
  }
  log_->cut(first);
  entry_times_.cut(log_->first());
  chains_.cut(std::min(position, log_->first()) - 1);
}

// --- The level in use (levels.h)

bool Node::raise_level(Level level) {
  if (level <= state_.level) return true;
  state_.level = level;
  store_state();
  return !failed_;
}

Level Node::common_level() const {
  Level common = options_.level;
  for (const Member& member : members()) {
    if (member.id != state_.node) common = std::min(common, host_.level_of(member.id));
  }
  return common;
}

}  // namespace tubed::cluster
