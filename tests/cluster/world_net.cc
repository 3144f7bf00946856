// The net between the machines and to the clients. It keeps the order of what one sends to another.
// If Nature::uplink is set, a frame leaves a machine when all its earlier frames have left, to
// whichever machine they go.
#include <algorithm>
#include <string>
#include <utility>

#include "tests/cluster/text.h"
#include "tests/cluster/world.h"

namespace tubed::cluster_test {

using namespace std::chrono_literals;

std::string brief_text(const std::string& bytes) {
  std::string brief;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.find("\r\n", begin), bytes.size());
    const std::string line = bytes.substr(begin, end - begin);
    brief += (line.starts_with("c") ? line.substr(0, line.find('x')) : line) + "; ";
    begin = end + 2;
  }
  return brief;
}

// Returns when the last byte of a frame leaves. All frames of a machine share its uplink, in order.
Time World::departure(NodeId from, std::size_t bytes) {
  counts_.sent_bytes += bytes;
  if (nature_.uplink == 0) return now_;
  Time& free = node_of(from).uplink_free;
  const double seconds = static_cast<double>(bytes) / static_cast<double>(nature_.uplink);
  free = std::max(free, now_) + Duration(static_cast<std::int64_t>(seconds * 1e9));
  return free;
}

// Looks at answers and at appends without entries, which are short.
void World::check_frame(NodeId from, NodeId to, const std::string& frame) {
  constexpr std::size_t kTypeOffset = cluster::kFrameHeaderBytes + 1;
  constexpr std::size_t kShort = 110;
  const auto type = static_cast<cluster::MessageType>(frame[kTypeOffset]);
  const Machine& machine = *node_of(from).machine;
  if (frame.size() > kShort || !machine.running()) return;
  if (type == cluster::MessageType::append_result) {
    check_answer(from, *cluster::decode(frame));
  } else if (type == cluster::MessageType::append && machine.node().appends().has_waiting(to)) {
    if (cluster::decode(frame)->index > machine.node().match(to))
      problem("node " + text(from) + " lets a heartbeat to node " + text(to) + " overtake entries");
  }
}

// The lease of the leader relies on the time in an answer. Clocks have different rates, and the
// core counts milliseconds.
void World::check_answer(NodeId from, const cluster::Message& answer) {
  if (answer.echo == Time()) return;
  const Machine& machine = *node_of(from).machine;
  const Duration timeout = nature_.machine.election_timeout;
  const Duration skew = timeout * nature_.rate_skew / 1'000'000 + 2ms;
  const Time heard = node_of(answer.to).machine->true_time_of(answer.echo);
  const Time until = machine.true_time_of(machine.node().core().deadline());
  if (until < heard + timeout - skew)
    problem("node " + text(from) + " answers a leader, and its election begins early");
}

void World::send(NodeId from, NodeId to, std::string frame) {
  check_frame(from, to, frame);
  Link& link = links_[{from - 1, to - 1}];
  if (link.cut_until > now_) return;
  Duration delay = below(100) == 0 ? some_time(1ms, 30ms) : some_time(50us, 500us);
  link.last_arrival = std::max(link.last_arrival, departure(from, frame.size()) + delay);
  at(link.last_arrival, [this, to, from, resets = link.resets, life = node_of(to).machine->life(),
                         frame = std::make_shared<const std::string>(std::move(frame))] {
    const Link& arrived = links_[{from - 1, to - 1}];
    if (arrived.resets != resets || arrived.cut_until > now_) return;
    if (node_of(to).machine->life() != life) return;
    on_node(to - 1, [this, to, from, frame] {
      const std::string_view fault = node_of(to).machine->receive(from, *frame);
      if (!fault.empty())
        problem("node " + text(to) + " refuses a frame of node " + text(from) + ": " +
                std::string(fault));
    });
  });
}

// Returns a node that has led in a later term than this node's; 0: none.
NodeId World::later_leader(NodeId id) {
  if (leaders_.empty() || leaders_.rbegin()->first <= node_of(id).machine->node().term()) return 0;
  return leaders_.rbegin()->second;
}

void World::reply(NodeId from, ClientId client, std::string bytes) {
  if (const NodeId other = later_leader(from); other != 0)
    problem("node " + text(from) + " replies while node " + text(other) + " leads");
  Client& to = clients_[client];
  if (!to.connected || to.node != from - 1) return;
  to.last_reply = std::max(to.last_reply, now_ + some_time(50us, 300us));
  at(to.last_reply, [this, client, connection = to.connection, released = now_,
                     ahead = node_of(from).machine->ahead(), bytes = std::move(bytes)] {
    Client& arrived = clients_[client];
    if (!arrived.connected || arrived.connection != connection) return;
    if (nature_.trace) remember("client " + text(client) + " <- " + brief_text(bytes));
    arrived.self.receive(bytes, {.released = released, .arrived = now_, .ahead = ahead});
  });
}

void World::disconnected(NodeId from, ClientId client) {
  Client& lost = clients_[client];
  if (!lost.connected || lost.node != from - 1) return;
  lost.connected = false;
  lost.self.disconnected(false);
}

}  // namespace tubed::cluster_test
