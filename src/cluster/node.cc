#include "cluster/node.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/planted.h"
#include "cluster/membership.h"

namespace tubed::cluster {

namespace {

// The most appends that are sent without an answer.
constexpr unsigned kMostInFlight = 32;
// The raft log is sealed after this time without entries.
constexpr Duration kSealDelay = std::chrono::seconds(1);
// The data of the core's own entries.
constexpr char kBarrier[8] = {};

std::uint64_t milliseconds_of(Time time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count());
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
      lease_(options.election_timeout),
      started_(host.clock()) {}

Node::~Node() = default;

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
  // Entries that were kept for followers before the start are cut.
  if (base.index >= log_->first()) {
    const Index first = first_kept(base.index);
    TRY(keep_configuration(first));
    log_->cut(first);
  }
  chains_.begin(base);
  for (Index i = base.index + 1; i <= log_->last(); ++i) chains_.replace(i, {&log_->at(i), 1});
  commit_ = base.index;
  synced_ = base.index;
  reported_ = log_->last();

  const auto timeout = milliseconds_of(Time(options_.election_timeout));
  const core_settings settings{
      .id = state_.node,
      .seed = options_.seed,
      .election_timeout_ms = static_cast<unsigned>(timeout),
      .heartbeat_ms = static_cast<unsigned>(std::max<std::uint64_t>(timeout / 10, 1)),
      .max_inflight = kMostInFlight};
  core_.reset(core_create(&settings));
  if (core_ == nullptr) return Error{"no memory for the node"};
  std::vector<core_entry> entries;
  for (Index i = log_->first(); i <= log_->last(); ++i) entries.push_back(as_core(log_->at(i)));
  const auto [configuration, configuration_index] = configuration_at(base.index);
  const core_base begin{.time = milliseconds(),
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
  follow_configuration();
  done("start", code, update, {});
  return {};
}

std::pair<std::string_view, Index> Node::configuration_at(Index index) const {
  for (Index i = std::min(index, log_->last()); i >= log_->first(); --i) {
    if (log_->at(i).type == EntryType::change) return {log_->at(i).data.view(), i};
  }
  return {state_.configuration, state_.configuration_index};
}

// Returns the core's clock: milliseconds that never go back.
std::uint64_t Node::milliseconds() const {
  milliseconds_ = std::max(milliseconds_, milliseconds_of(host_.clock()));
  return milliseconds_;
}

void Node::fail(const std::string& reason) {
  if (!std::exchange(failed_, true)) host_.node_failed(reason);
}

// --- The updates of the core

void Node::done(std::string_view step, int code, const core_update* update,
                std::span<const Entry> given) {
  if (code != 0) return fail(fmt::format("raft, {}: {}", step, core_error(code)));
  if (update->vote_changed != 0 && !TUBED_PLANTED(vote_before_sync)) store_state();
  if (failed_) return;
  if (update->state_changed != 0 || update->vote_changed != 0) {
    lease_.reset();
    followers_.reset(host_.clock());
    queues_.clear();
  }
  if (update->barrier != 0) {
    const Entry barrier{.term = core_term(core_.get()),
                        .type = EntryType::barrier,
                        .data = Bytes::copy_of(std::string_view(kBarrier, sizeof kBarrier))};
    store_entries(update->first, {&barrier, 1});
  } else if (update->first != 0) {
    store_entries(update->first, given.last(update->n_entries));
  }
  for (unsigned i = 0; i < update->n_messages; ++i) send(update->messages[i]);
  if (update->commit_changed != 0 || update->state_changed != 0) host_.node_changed();
  if (TUBED_PLANTED(acknowledge_before_sync) && update->first != 0)
    entries_stored(last(), log_->term_of(last()));
  take_committed();
}

void Node::store_state() {
  state_.term = core_term(core_.get());
  state_.voted_for = core_voted_for(core_.get());
  store_node();
}

void Node::store_entries(Index first, std::span<const Entry> entries) {
  TUBED_ASSERT(first > commit_);
  chains_.replace(first, entries);
  reported_ = std::min(reported_, first - 1);
  const bool changes = first <= log_->last() ||
                       std::ranges::find(entries, EntryType::change, &Entry::type) != entries.end();
  log_->append(first, entries);
  if (changes) follow_configuration();
  seal_at_ = host_.clock() + kSealDelay;
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
        core_configuration(core_.get(), milliseconds(), commit_, data.data(), data.size(), &update);
    done("configuration", code, update, {});
  }
}

// --- Events

void Node::receive(std::string_view frame) {
  if (failed_) return;
  if (is_part(frame)) return receive_part(frame);
  const auto message = decode(frame);
  if (message && message->cluster == state_.cluster && message->to == state_.node)
    receive(*message);
}

void Node::receive(const Message& message) {
  const bool silent = host_.clock() < started_ + options_.election_timeout;
  if (message.type == MessageType::vote && silent && !TUBED_PLANTED(no_silence_after_start)) return;
  if (message.type == MessageType::fetch) return host_.fetch_state(message.from);
  if (message.type == MessageType::append) {
    hear(message.from, message.term, message.sent);
    if (message.time != Time()) time_.observe(host_.clock(), message.time);
  }
  if (message.type == MessageType::append_result && message.rejected > 0) take_rejection(message);
  pass(message);
  if (!failed_ && message.type == MessageType::append_result) take_echo(message);
}

// Another node follows this leader.
void Node::take_echo(const Message& result) {
  if (!leads() || result.term != term()) return;
  followers_.answered(result.from, {.at = host_.clock(), .full = result.full});
  if (result.echo == Time()) return;
  lease_.answered(result.from, result.echo);
  take_acknowledgement(result.from, result.echo);
  if (result.from == transferee_ && result.echo > transfer_ended_) lease_.take_back();
  host_.node_changed();
}

// True for a rejection from which the core would not learn what the node has. A node that has
// fetched a state rejects appends, because libraft's leader continues from the leader's own state.
// A node whose acknowledgements were lost rejects entries that it has cut. If the node and this
// leader have the same entry with the same term, the node also has all entries before it (log
// matching property): the rejection is an acknowledgement, and the core continues from there.
bool Node::acknowledges(const Message& message) const {
  if (message.type != MessageType::append_result || message.rejected == 0) return false;
  Index match = 0;
  return leads() && message.term == term() && message.log_term != 0 &&
         log_->term_of(message.index) == message.log_term &&
         core_match(core_.get(), message.from, &match) == 0 && message.index > match &&
         (log_->term_of(match) == 0 || message.rejected <= match);
}

// Passes a message to the core. Entries starting with a change of the members are passed
// separately, because the core assumes that a change is the first entry of its message.
void Node::pass(const Message& message) {
  std::span<const Entry> rest = message.entries;
  Index index = message.index;
  Term log_term = message.log_term;
  const Index rejected = acknowledges(message) ? 0 : message.rejected;
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
    const int code = core_receive(core_.get(), milliseconds(), &event, &update);
    if (code == CORE_MALFORMED) return;  // no node sends that
    done("receive", code, update, part);
    rest = rest.subspan(count);
    if (count > 0) log_term = part.back().term;
    index += count;
  } while (!rest.empty() && !failed_);
}

void Node::tick() {
  if (failed_) return;
  if (milliseconds() >= core_deadline(core_.get())) {
    const core_update* update = nullptr;
    const int code = core_timeout(core_.get(), milliseconds(), &update);
    done("timeout", code, update, {});
  }
  follow_transfer();
  if (host_.clock() >= seal_at_) {
    log_->seal();
    seal_at_ = kNever;
  }
  log_->flush();
}

void Node::follow_transfer() {
  if (lease_.given_up() && transfer_ended_ == kNever && core_transferee(core_.get()) == 0)
    transfer_ended_ = host_.clock();
}

bool Node::is_stranded() const {
  return leads() && lease_.given_up() && transfer_ended_ != kNever &&
         host_.clock() > transfer_ended_ + 4 * options_.election_timeout;
}

Time Node::next_deadline() const {
  if (failed_) return kNever;
  return std::min({Time(std::chrono::milliseconds(core_deadline(core_.get()))),
                   log_->next_deadline(), seal_at_});
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
  const int code = core_persisted(core_.get(), milliseconds(), index, &update);
  done("persisted", code, update, {});
}

// --- The leader

bool Node::leads() const {
  return !failed_ && core_state(core_.get()) == CORE_LEADER;
}

Term Node::term() const {
  return core_term(core_.get());
}

NodeId Node::leader() const {
  return leads() ? 0 : core_leader(core_.get());
}

bool Node::is_candidate() const {
  return !failed_ && core_state(core_.get()) == CORE_CANDIDATE;
}

std::optional<Index> Node::match(NodeId member) const {
  Index match = 0;
  if (!leads() || core_match(core_.get(), member, &match) != 0) return std::nullopt;
  return match;
}

std::optional<Time> Node::silent_since(NodeId member) const {
  if (!leads()) return std::nullopt;
  return followers_.silent_since(member);
}

bool Node::majority_has_room() const {
  std::size_t room = 0;
  for (const NodeId voter : voters_) room += voter == state_.node ? !full() : has_room(voter);
  return room > voters_.size() / 2;
}

Index Node::applicable() const {
  if (TUBED_PLANTED(journal_ahead_of_raft_log)) return commit_;
  return std::min(commit_, log_->stored());
}

std::vector<Member> Node::members() const {
  std::vector<core_member> list(core_members(core_.get(), nullptr, 0));
  core_members(core_.get(), list.data(), static_cast<unsigned>(list.size()));
  return as_members(list);
}

void Node::follow_configuration() {
  members_index_ = configuration_at(last()).second;
  voters_.clear();
  for (const Member& member : members()) {
    if (member.role == MemberRole::voter) voters_.push_back(member.id);
  }
}

Duration Node::oldest_write() const {
  const Time since = log_->storing_since();
  return since == kNever ? Duration() : host_.clock() - since;
}

Time Node::lease_end() const {
  return leads() ? lease_.end(voters_, state_.node) : Time::min();
}

bool Node::can_submit() const {
  return leads() && core_transferee(core_.get()) == 0;
}

Index Node::submit(std::vector<Bytes> data) {
  if (!can_submit()) return 0;
  std::vector<Entry> entries;
  for (Bytes& bytes : data)
    entries.push_back({.term = term(), .type = EntryType::facts, .data = std::move(bytes)});
  const std::vector<core_entry> list = as_core(entries);
  const Index first = last() + 1;
  const core_update* update = nullptr;
  const int code = core_submit(core_.get(), milliseconds(), list.data(),
                               static_cast<unsigned>(list.size()), &update);
  if (code != 0) return 0;  // leadership is being transferred: nothing was appended
  done("submit", code, update, entries);
  return failed_ ? 0 : first;
}

// True if a majority of these voters know that they are voters, and each new voter has all
// committed entries. Otherwise the change might be committed and leave the cluster without a leader
// for good: libraft's core does not vote if the node is not a voter in its own configuration.
bool Node::would_elect(const std::vector<Member>& members) const {
  std::size_t voters = 0;
  std::size_t ready = 0;
  for (const Member& member : members) {
    if (member.role != MemberRole::voter) continue;
    ++voters;
    Index match = last();
    const bool itself = member.id == state_.node;
    if (!itself && core_match(core_.get(), member.id, &match) != 0) match = 0;
    const bool is_new = std::ranges::find(voters_, member.id) == voters_.end();
    if (is_new && match < commit_) return false;
    if (match >= members_index_) ++ready;
  }
  return ready > voters / 2;
}

bool Node::change_members(const std::vector<Member>& members) {
  if (!leads() || !would_elect(members)) return false;
  const auto configuration = encode_members(members);
  if (!configuration) return false;
  const Entry entry{
      .term = term(), .type = EntryType::change, .data = Bytes::copy_of(*configuration)};
  const std::vector<Member> present = this->members();
  const core_entry change = as_core(entry);
  const core_update* update = nullptr;
  const int code = core_submit(core_.get(), milliseconds(), &change, 1, &update);
  if (code != 0) return false;
  done("submit", code, update, {&entry, 1});
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
    newest = decode_members(configuration_at(commit_).first).value_or(newest);
  const auto found = std::ranges::find(newest, member, &Member::id);
  return found != newest.end() && found->role == MemberRole::standby;
}

bool Node::transfer(NodeId to) {
  if (!can_submit() || lease_.given_up()) return false;
  const core_update* update = nullptr;
  const int code = core_transfer(core_.get(), milliseconds(), to, &update);
  if (code != 0) return false;
  lease_.give_up();
  transferee_ = core_transferee(core_.get());
  transfer_ended_ = kNever;
  done("transfer", code, update, {});
  return !failed_;
}

// --- Retained entries

// Returns the first of the newest entries up to `position` that are kept. O(log of their number).
Index Node::first_kept(Index position) const {
  const Index oldest = log_->first();
  Index first = position > options_.kept_entries ? position - options_.kept_entries + 1 : 1;
  first = std::max(first, oldest);
  for (Index last = position; first < last;) {
    const Index middle = first + (last - first) / 2;
    if (log_->bytes_of(middle, position) > options_.kept_bytes) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return first;
}

// Returns the first entry that is kept when the journal has everything up to `position`. That
// includes entries that a responding follower lacks, unless they are too many.
Index Node::first_needed(Index position) const {
  Index first = first_kept(position);
  if (log_->exceeds_bound()) return first;
  first = std::min(first, pinned_);
  if (!leads()) return first;
  const Time recently = host_.clock() - 10 * options_.election_timeout;
  for (const auto& [node, answer] : followers_.answers()) {
    Index match = 0;
    if (answer.at > recently && core_match(core_.get(), node, &match) == 0)
      first = std::min(first, match);  // later entries are sent with its term
  }
  return first;
}

void Node::journal_synced(Index position) {
  TUBED_ASSERT(position <= commit_);
  if (failed_ || position <= synced_) return;
  // Not for every entry.
  if (position < synced_ + options_.kept_entries / 8 &&
      log_->bytes_of(synced_ + 1, position) < options_.kept_bytes / 8)
    return;
  const Index first = std::max(first_needed(position), log_->first());
  if (const auto kept = keep_configuration(first); !kept) return fail(kept.error().message);
  synced_ = position;
  const auto [configuration, configuration_index] = configuration_at(position);
  const core_update* update = nullptr;
  const int code = core_cut(core_.get(), milliseconds(), position, log_->term_of(position),
                            static_cast<unsigned>(position - first + 1), configuration.data(),
                            configuration.size(), configuration_index, &update);
  done("cut", code, update, {});
  log_->cut(first);
  chains_.cut(std::min(position, log_->first()) - 1);
}

// Keeps the configuration before `first` in the state of the node, because its entry will be cut.
Result<void> Node::keep_configuration(Index first) {
  if (first == log_->first()) return {};
  const auto [configuration, index] = configuration_at(first - 1);
  if (index == state_.configuration_index) return {};
  state_.configuration = std::string(configuration);
  state_.configuration_index = index;
  return store_node_state(storage_, state_);
}

}  // namespace tubed::cluster
