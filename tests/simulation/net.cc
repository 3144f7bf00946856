#include "tests/simulation/net.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "tests/simulation/bridges.h"

namespace tubed::simulation {

// --- Endpoint

std::pair<std::shared_ptr<Endpoint>, std::shared_ptr<Endpoint>> Endpoint::connect(
    World& world, std::uint64_t number, const Link& to_first, const Link& to_second) {
  const auto make = [&](const char* end, const Link& incoming) {
    Chance chance(world.seed(), fmt::format("connection {} {}", number, end));
    return std::make_shared<Endpoint>(world, chance, incoming);
  };
  auto first = make("first", to_first);
  auto second = make("second", to_second);
  first->other_ = second;
  second->other_ = first;
  return {std::move(first), std::move(second)};
}

bool Endpoint::has_room() const {
  const auto other = other_.lock();
  if (other == nullptr) return true;  // and the bytes sent are lost
  return other->under_way_ + other->arrived_.size() < other->incoming_.window;
}

bool Endpoint::is_leaving() const {
  const auto other = other_.lock();
  return other == nullptr || other->closed_ || other->lost_ || other->output_ended_;
}

std::size_t Endpoint::send(std::string_view bytes) {
  const auto other = other_.lock();
  if (other == nullptr) return bytes.size();
  const std::size_t used = other->under_way_ + other->arrived_.size();
  const std::size_t window = other->incoming_.window;
  bytes = bytes.substr(0, window - std::min(window, used));
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const bool is_cut = rest.size() > 1 && chance_.percent(other->incoming_.cuts);
    const std::size_t piece = is_cut ? 1 + chance_.below(rest.size() - 1) : rest.size();
    other->under_way_ += piece;
    plan([text = std::string(rest.substr(0, piece))](Endpoint& end) { end.arrive(text); });
    rest.remove_prefix(piece);
  }
  return bytes.size();
}

void Endpoint::end_output() {
  if (std::exchange(output_ended_, true)) return;
  plan([](Endpoint& end) { end.arrive_end(); });
}

void Endpoint::close() {
  if (std::exchange(closed_, true)) return;
  if (!arrived_.empty()) return reset();
  end_output();
}

void Endpoint::reset() {
  lost_ = true;
  if (const auto other = other_.lock(); other != nullptr && !std::exchange(other->lost_, true))
    other->report();
}

// Keeps the order of the calls.
void Endpoint::plan(std::function<void(Endpoint&)> at_other_end) {
  const auto other = other_.lock();
  if (other == nullptr) return;
  const Link& link = other->incoming_;
  other->last_ = std::max(other->last_, world_.now() + link.latency + chance_.up_to(link.jitter));
  world_.at(other->last_, [end = std::weak_ptr(other), happen = std::move(at_other_end)] {
    if (const auto there = end.lock()) happen(*there);
  });
}

void Endpoint::arrive(std::string_view bytes) {
  under_way_ -= bytes.size();
  if (lost_) return;
  if (closed_) return reset();
  arrived_.append(bytes);
  report();
}

void Endpoint::arrive_end() {
  ended_ = true;
  report();
}

void Endpoint::report() {
  const auto keep = shared_from_this();
  if (event_) event_();
}

// --- Net

namespace {

Net* current_net = nullptr;

}  // namespace

Net::Net(World& world) : world_(world), bridges_(std::make_unique<Bridges>()) {
  TUBED_ASSERT(current_net == nullptr);
  current_net = this;
}

Net::~Net() {
  current_net = nullptr;
}

Net& Net::current() {
  TUBED_ASSERT(current_net != nullptr);
  return *current_net;
}

int Net::listen(std::uint16_t port) {
  listeners_.emplace(next_, Listener{.port = port, .waiting = {}});
  return next_++;
}

int Net::accept(int listening) {
  const auto found = listeners_.find(listening);
  if (found == listeners_.end()) return -1;  // of a process that has ended
  auto& waiting = found->second.waiting;
  if (waiting.empty()) return -1;
  const std::shared_ptr<Endpoint> accepted = std::move(waiting.front());
  waiting.pop_front();
  if (found->second.port == kHttpPort) return bridges_->add(accepted);
  endpoints_.emplace(next_, accepted);
  return next_++;
}

Endpoint* Net::find(int descriptor) {
  const auto found = endpoints_.find(descriptor);
  return found == endpoints_.end() ? nullptr : found->second.get();
}

bool Net::is_settled() const {
  return std::ranges::none_of(listeners_,
                              [](const auto& entry) { return !entry.second.waiting.empty(); }) &&
         std::ranges::none_of(endpoints_, [](const auto& entry) {
           return entry.second->ended() || entry.second->lost() || entry.second->is_leaving();
         });
}

void Net::close(int descriptor) {
  if (const auto found = listeners_.find(descriptor); found != listeners_.end()) {
    for (const auto& waiting : found->second.waiting) waiting->reset();
    listeners_.erase(found);
    return;
  }
  const auto found = endpoints_.find(descriptor);
  if (found == endpoints_.end()) return;  // of a process that has ended
  found->second->close();
  endpoints_.erase(found);
}

void Net::pump() {
  bridges_->pump();
}

void Net::end_process() {
  bridges_->reset_all();
  for (const auto& [descriptor, listener] : listeners_) {
    for (const auto& waiting : listener.waiting) waiting->reset();
  }
  for (const auto& [descriptor, endpoint] : endpoints_) endpoint->reset();
  listeners_.clear();
  endpoints_.clear();
}

std::shared_ptr<Endpoint> Net::connect(std::uint16_t port, const Link& to_server,
                                       const Link& to_client) {
  const auto listener = std::ranges::find_if(
      listeners_, [port](const auto& entry) { return entry.second.port == port; });
  if (listener == listeners_.end()) return nullptr;
  auto [server, client] = is_calm_
                              ? Endpoint::connect(world_, connections_++, {}, {})
                              : Endpoint::connect(world_, connections_++, to_server, to_client);
  listener->second.waiting.push_back(std::move(server));
  return client;
}

}  // namespace tubed::simulation
