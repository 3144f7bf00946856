// The messages that a node sends, and the parts of appends that it receives.
//
// From kPartsLevel on, appends go through a queue for each follower (append_queue.h), which cuts
// long ones into parts and bounds the bytes under way. This needs care in three places:
//
//  1. Nothing overtakes entries but the heartbeat that this node makes: an append without entries
//     at an entry that the follower has acknowledged, which the follower therefore accepts. The
//     core's own heartbeat follows all entries that the core has sent, also those that wait: the
//     follower would reject it, and everything would be sent again.
//  2. A part is a sign of life only if the follower's core accepts it: the follower passes to its
//     core an append without entries at its own last committed entry. Only then does it return the
//     time at which the part was sent, on which the leader's lease rests.
//  3. If the follower rejects entries that it should have, or returns no time for an election
//     timeout, everything that waits is dropped, and the core sends it again.
#include <algorithm>
#include <array>
#include <utility>

#include "base/planted.h"
#include "cluster/node.h"

namespace tubed::cluster {

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
  drop_if_stuck(frame.to);
  if (frame.type == MessageType::append && message.n_entries > 0) {
    if (message.index + 1 < log_->first() || message.index + message.n_entries > log_->last())
      return;
    take_entries(message, frame);
  }
  if (frame.type == MessageType::append && time_.is_set()) frame.time = time_.at(frame.sent);
  if (frame.type == MessageType::append_result) {
    frame.full = full();
    if (frame.rejected > 0) explain(frame);
    const auto heard = heard_.find(frame.to);
    if (heard != heard_.end() && heard->second.term == frame.term) frame.echo = heard->second.sent;
  }
  if (frame.type == MessageType::append && uses_parts()) return send_append(std::move(frame));
  host_.send(frame.to, encode(frame));
}

// A rejection has the term of the last entry that may be the leader's too. The entries cut here,
// and those after them up to applicable(), are committed, so every later leader has them.
void Node::explain(Message& rejection) const {
  if (rejection.rejected < log_->first() && log_->term_of(applicable()) != 0)
    rejection.index = applicable();
  if (rejection.index <= log_->stored()) rejection.log_term = log_->term_of(rejection.index);
}

// Selects the entries that are sent with an append: as many as may be under way, without those that
// already are. The core assumes that it has sent every entry, and repeats them when it has heard
// nothing for a heartbeat, although they may take longer. Entries sent in the last election timeout
// are therefore not sent again unless they are rejected. If no entry remains, the append is a
// heartbeat.
void Node::take_entries(const core_message& message, Message& frame) {
  const Index last = message.index + message.n_entries;
  Index match = 0;
  if (core_match(core_.get(), message.peer, &match) != 0) match = message.index;
  Followers::Sent& sent = followers_.sent(message.peer);
  const bool fresh =
      sent.last >= match && log_->term_of(sent.last) != 0 &&
      (has_waiting_entries(message.peer) || frame.sent < sent.at + options_.election_timeout);
  const Index first = fresh ? sent.last + 1 : message.index + 1;
  const std::uint64_t under_way = log_->bytes_of(match + 1, first - 1);
  for (Index i = first; i <= last; ++i) {
    const std::uint64_t bytes = under_way + log_->bytes_of(first, i);
    if (bytes > options_.in_flight_bytes && (under_way > 0 || i > first)) break;
    frame.entries.push_back(log_->at(i));
  }
  if (frame.entries.empty()) return;
  if (first != message.index + 1) {
    frame.index = first - 1;
    frame.log_term = log_->term_of(frame.index);
  }
  sent = {.last = frame.index + frame.entries.size(), .at = frame.sent};
}

// --- Appends in parts

bool Node::uses_parts() const {
  return level() >= kPartsLevel;
}

AppendQueue& Node::queue_of(NodeId follower) {
  const AppendQueue::Options options{.election_timeout = options_.election_timeout,
                                     .part_bytes = options_.part_bytes};
  return queues_.try_emplace(follower, options).first->second;
}

bool Node::has_waiting_entries(NodeId follower) const {
  const auto queue = queues_.find(follower);
  return queue != queues_.end() && queue->second.waits();
}

// Entries that are under way may be lost.
void Node::drop_if_stuck(NodeId follower) {
  const auto queue = queues_.find(follower);
  if (queue == queues_.end() || !queue->second.is_stuck(host_.clock())) return;
  queue->second.drop();
  followers_.sent(follower) = {};
}

void Node::send_append(Message append) {
  const NodeId to = append.to;
  AppendQueue& queue = queue_of(to);
  if (!append.entries.empty()) {
    queue.add(std::move(append));
    return send_queued(to);
  }
  if (queue.waits() && !TUBED_PLANTED(heartbeat_overtakes_entries)) {
    Index match = 0;
    core_match(core_.get(), to, &match);
    append.log_term = log_->term_of(match);
    append.index = append.log_term == 0 ? 0 : match;
    append.commit = std::min(append.commit, append.index);
  }
  append.sent = queue.stamp(append.sent);
  host_.send(to, encode(append));
}

void Node::send_queued(NodeId follower) {
  AppendQueue& queue = queue_of(follower);
  while (auto frame = queue.next(host_.clock())) {
    host_.send(follower, std::move(*frame));
    followers_.sent(follower).at = host_.clock();
  }
}

void Node::take_acknowledgement(NodeId follower, Time stamp) {
  const auto queue = queues_.find(follower);
  if (queue == queues_.end()) return;
  queue->second.acknowledge(stamp, host_.clock());
  send_queued(follower);
  const AppendQueue::Slow slow = queue->second.take_slow();
  if (slow.count > 0) host_.appends_were_slow(follower, slow.count, slow.longest);
}

// The follower lacks the entry before those that were sent. A rejection of an entry that it has
// acknowledged since is late.
void Node::take_rejection(const Message& rejection) {
  const auto queue = queues_.find(rejection.from);
  if (queue != queues_.end() && queue->second.waits()) {
    Index match = 0;
    const bool is_late = leads() && core_match(core_.get(), rejection.from, &match) == 0 &&
                         rejection.rejected <= match;
    if (is_late || rejection.term != term()) return;
    queue->second.drop();
  }
  Followers::Sent& sent = followers_.sent(rejection.from);
  sent.last = std::min(sent.last, rejection.index);
}

// --- Rates

double Node::link_rate(NodeId follower) const {
  const auto queue = queues_.find(follower);
  return queue == queues_.end() ? 0 : queue->second.rate();
}

double Node::lowest_link_rate() const {
  double lowest = 0;
  for (const auto& [follower, queue] : queues_) {
    if (queue.rate() > 0) lowest = lowest == 0 ? queue.rate() : std::min(lowest, queue.rate());
  }
  return lowest;
}

bool Node::links_are_congested(std::uint64_t waiting) const {
  // A few bytes never wait: a part may always be under way.
  if (queues_.empty() || log_->bytes_of(commit_ + 1, last()) + waiting <= options_.part_bytes)
    return false;
  std::array<double, CORE_MOST_MEMBERS> seconds{};  // each of the other voters needs
  std::size_t others = 0;
  for (const NodeId voter : voters_) {
    if (voter == state_.node || others == seconds.size()) continue;
    const double rate = link_rate(voter);
    const auto lacks = static_cast<double>(log_->bytes_of(match(voter).value_or(0) + 1, last()));
    // Without an answer, the rate of the link is not known yet.
    seconds[others++] = (lacks + static_cast<double>(waiting)) / std::max(rate, 1e-9);
  }
  const std::size_t needed = voters_.size() / 2;  // beside this node
  if (needed == 0 || needed > others) return false;
  const auto slowest = seconds.begin() + static_cast<std::ptrdiff_t>(needed - 1);
  std::nth_element(seconds.begin(), slowest, seconds.begin() + static_cast<std::ptrdiff_t>(others));
  return *slowest > std::chrono::duration<double>(options_.election_timeout / 2).count();
}

// --- Received parts

// The newest frame of a leader decides what this node returns to it.
void Node::hear(NodeId from, Term term, Time sent) {
  Heard& heard = heard_[from];
  if (term != heard.term || sent > heard.sent) heard = {.term = term, .sent = sent};
}

void Node::receive_part(std::string_view frame) {
  const auto part = decode_part(frame);
  if (!part || part->cluster != state_.cluster || part->to != state_.node || part->term < term())
    return;
  if (const auto whole = assembly_.take(*part)) {
    auto message = decode(*whole);
    const bool is_append = message && message->type == MessageType::append &&
                           message->cluster == part->cluster && message->from == part->from &&
                           message->to == part->to && message->term == part->term;
    if (!is_append) return;
    message->sent = part->sent;
    return receive(*message);
  }
  if (TUBED_PLANTED(echo_without_core)) return return_time(*part);
  receive_sign_of_life(*part);
}

// As if the leader had sent an append without entries after the last entry that both have.
void Node::receive_sign_of_life(const Part& part) {
  const Term log_term = log_->term_of(commit_);
  core_message event{};
  event.type = CORE_APPEND;
  event.peer = part.from;
  event.term = part.term;
  event.index = event.commit = log_term == 0 ? 0 : commit_;
  event.log_term = log_term;
  const core_update* update = nullptr;
  const int code = core_receive(core_.get(), milliseconds(), &event, &update);
  if (code == CORE_MALFORMED) return;  // no node sends that
  if (code == 0 && term() == part.term && leader() == part.from)
    hear(part.from, part.term, part.sent);
  done("receive", code, update, {});
}

// The planted fault: the core has not seen the part.
void Node::return_time(const Part& part) {
  hear(part.from, part.term, part.sent);
  core_message result{};
  result.type = CORE_APPEND_RESULT;
  result.peer = part.from;
  result.term = part.term;
  send(result);
}

}  // namespace tubed::cluster
