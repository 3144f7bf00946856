#include "cluster/append_sender.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/planted.h"

namespace tubed::cluster {

void AppendSender::reset() {
  sent_.clear();
  queues_.clear();
}

void AppendSender::send(Message append, unsigned entries, bool in_parts) {
  drop_if_stuck(append.to);
  if (entries > 0) {
    const Index last = append.index + entries;
    if (append.index + 1 < log_.first() || last > log_.last()) return;
    take_entries(append, last);
  }
  if (in_parts) return send_in_parts(std::move(append));
  host_.send(append.to, encode(append));
}

// Adds the entries up to `last` that may be sent now. If there are none, the append is a heartbeat.
void AppendSender::take_entries(Message& append, Index last) {
  const Index match = core_.match(append.to).value_or(append.index);
  Sent& sent = sent_[append.to];
  const bool is_fresh =
      sent.last >= match && log_.term_of(sent.last) != 0 &&
      (has_waiting(append.to) || append.sent < sent.at + options_.election_timeout);
  const Index first = is_fresh ? sent.last + 1 : append.index + 1;
  const std::uint64_t under_way = log_.bytes_of(match + 1, first - 1);
  for (Index i = first; i <= last; ++i) {
    const std::uint64_t bytes = under_way + log_.bytes_of(first, i);
    if (bytes > options_.in_flight_bytes && (under_way > 0 || i > first)) break;
    append.entries.push_back(log_.at(i));
  }
  if (append.entries.empty()) return;
  if (first != append.index + 1) {
    append.index = first - 1;
    append.log_term = log_.term_of(append.index);
  }
  sent = {.last = append.index + append.entries.size(), .at = append.sent};
}

// --- Queues

AppendQueue& AppendSender::queue_of(NodeId follower) {
  const AppendQueue::Options options{.election_timeout = options_.election_timeout,
                                     .part_bytes = options_.part_bytes};
  return queues_.try_emplace(follower, options).first->second;
}

bool AppendSender::has_waiting(NodeId follower) const {
  const auto queue = queues_.find(follower);
  return queue != queues_.end() && queue->second.waits();
}

// Entries that are under way may be lost.
void AppendSender::drop_if_stuck(NodeId follower) {
  const auto queue = queues_.find(follower);
  if (queue == queues_.end() || !queue->second.is_stuck(host_.clock())) return;
  queue->second.drop();
  sent_[follower] = {};
}

void AppendSender::send_in_parts(Message append) {
  const NodeId to = append.to;
  AppendQueue& queue = queue_of(to);
  if (!append.entries.empty()) {
    queue.add(std::move(append));
    return send_queued(to);
  }
  if (queue.waits() && !TUBED_PLANTED(heartbeat_overtakes_entries)) {
    const Index match = core_.match(to).value_or(0);
    append.log_term = log_.term_of(match);
    append.index = append.log_term == 0 ? 0 : match;
    append.commit = std::min(append.commit, append.index);
  }
  append.sent = queue.stamp(append.sent);
  host_.send(to, encode(append));
}

void AppendSender::send_queued(NodeId follower) {
  AppendQueue& queue = queue_of(follower);
  while (auto frame = queue.next(host_.clock())) {
    host_.send(follower, std::move(*frame));
    sent_[follower].at = host_.clock();
  }
}

void AppendSender::acknowledged(NodeId follower, Time stamp) {
  const auto queue = queues_.find(follower);
  if (queue == queues_.end()) return;
  queue->second.acknowledge(stamp, host_.clock());
  send_queued(follower);
  const AppendQueue::Slow slow = queue->second.take_slow();
  if (slow.count > 0) host_.appends_were_slow(follower, slow.count, slow.longest);
}

// A rejection of an entry that the follower has acknowledged since is late.
void AppendSender::rejected(const Message& rejection) {
  const auto queue = queues_.find(rejection.from);
  if (queue != queues_.end() && queue->second.waits()) {
    const auto match = core_.match(rejection.from);
    const bool is_late = match && rejection.rejected <= *match;
    if (is_late || rejection.term != core_.term()) return;
    queue->second.drop();
  }
  Sent& sent = sent_[rejection.from];
  sent.last = std::min(sent.last, rejection.index);
}

// --- Rates

double AppendSender::rate(NodeId follower) const {
  const auto queue = queues_.find(follower);
  return queue == queues_.end() ? 0 : queue->second.rate();
}

double AppendSender::lowest_rate() const {
  double lowest = 0;
  for (const auto& [follower, queue] : queues_) {
    if (queue.rate() > 0) lowest = lowest == 0 ? queue.rate() : std::min(lowest, queue.rate());
  }
  return lowest;
}

bool AppendSender::is_congested(const std::vector<NodeId>& voters, NodeId self, Index committed,
                                std::uint64_t waiting) const {
  const Index last = log_.last();
  // A few bytes never wait: a part may always be under way.
  if (queues_.empty() || log_.bytes_of(committed + 1, last) + waiting <= options_.part_bytes)
    return false;
  std::array<double, CORE_MOST_MEMBERS> seconds{};  // each of the other voters needs
  std::size_t others = 0;
  for (const NodeId voter : voters) {
    if (voter == self || others == seconds.size()) continue;
    const auto lacks = static_cast<double>(log_.bytes_of(core_.match(voter).value_or(0) + 1, last));
    // Without an answer, the rate of the link is not known yet.
    seconds[others++] = (lacks + static_cast<double>(waiting)) / std::max(rate(voter), 1e-9);
  }
  const std::size_t needed = voters.size() / 2;  // beside this node
  if (needed == 0 || needed > others) return false;
  const auto slowest = seconds.begin() + static_cast<std::ptrdiff_t>(needed - 1);
  std::nth_element(seconds.begin(), slowest, seconds.begin() + static_cast<std::ptrdiff_t>(others));
  return *slowest > std::chrono::duration<double>(options_.election_timeout / 2).count();
}

}  // namespace tubed::cluster
