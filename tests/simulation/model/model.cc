#include "tests/simulation/model/model.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "commands/conversation.h"
#include "tests/simulation/model/model_client.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

namespace {

// An answer waits for several commits.
constexpr Duration kOverdue = 250ms;
// By then the server has released everything that a client held when it left.
constexpr Duration kLeft = 10ms;
// The replies of one tick are written within this time.
constexpr Duration kOneTick = 20us;

using ReplyOrder = std::vector<std::size_t>;

// Replies to waiting reserves keep their order, unless they belong to one tick.
bool is_possible(const std::vector<ModelReply>& replies, const ReplyOrder& order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (std::size_t j = i + 1; j < order.size(); ++j) {
      const ModelReply& first = replies[order[i]];
      const ModelReply& second = replies[order[j]];
      const bool both_wait = first.command.waits() && second.command.waits();
      if (both_wait && second.ran.latest + kOneTick < first.ran.latest) return false;
    }
  }
  return true;
}

// Judges the replies as if their commands had run in this order.
std::string problem_in(ExpectedQueue& queue, std::vector<ModelReply> replies,
                       const ReplyOrder& order) {
  for (std::size_t i = 1; i < order.size(); ++i) {
    Time& earliest = replies[order[i]].ran.earliest;
    earliest = std::max(earliest, replies[order[i - 1]].ran.earliest);
  }
  for (std::size_t i = order.size() - 1; i > 0; --i) {
    Time& latest = replies[order[i - 1]].ran.latest;
    latest = std::min(latest, replies[order[i]].ran.latest);
  }
  for (const std::size_t place : order) {
    const ModelReply& reply = replies[place];
    if (reply.ran.latest < reply.ran.earliest) return "an order that is not possible";
    std::string problem = queue.judge(reply);
    if (!problem.empty()) return problem;
  }
  return {};
}

// A model client ignores the default tube, and so watches no tube of other clients.
bool is_of_model(const engine::Engine& engine, SessionId session) {
  return std::ranges::find(kModelTubes, engine.queries().watched_tube(session, 0)) !=
         kModelTubes.end();
}

}  // namespace

std::unique_ptr<Script> Model::add_client(const std::string& name) {
  auto client = std::make_unique<ModelClient>(*this, world_.seed(), name);
  clients_.push_back(client.get());
  return client;
}

void Model::take(const std::string& problem) {
  if (!problem.empty()) world_.fail(problem);
}

// --- What is sent

const ModelClient* Model::busy_client() const {
  const auto found = std::ranges::find_if(
      clients_, [](const ModelClient* client) { return client->sent() && !client->waits(); });
  return found == clients_.end() ? nullptr : *found;
}

bool Model::is_waiting() const {
  return std::ranges::any_of(clients_, [](const ModelClient* client) { return client->waits(); });
}

// True if a job may go to a waiting client.
bool Model::is_offered() const {
  if (known_.conditions.gives_since == kNever) return false;
  return std::ranges::any_of(clients_, [this](const ModelClient* client) {
    return client->waits() && std::ranges::any_of(queue_.jobs(), [&](const auto& entry) {
             return queue_.may_be_given(entry.second, client->consumer(), world_.now());
           });
  });
}

// No command under way has run before this time.
Time Model::settled_time() const {
  const ModelClient* busy = busy_client();
  return busy == nullptr ? world_.now() : busy->sent()->sent;
}

bool Model::may_send() {
  queue_.settle(settled_time());
  if (queue_.has_doubts()) resolve_soon();
  return service_ != nullptr && busy_client() == nullptr && !queue_.has_doubts() && !is_offered();
}

void Model::check() {
  queue_.settle(settled_time());
  if (queue_.has_doubts()) resolve_soon();
  if (known_.conditions.is_stopping) return;
  const Time now = world_.now();
  const Time stalled_until = known_.conditions.stalled_until();
  for (const ModelClient* client : clients_) {
    if (!client->sent()) continue;
    const ModelCommand& command = *client->sent();
    const Consumer& consumer = client->consumer();
    const bool is_reserve = command.verb == ModelVerb::reserve;
    const Duration limit = is_reserve ? command.time : Duration();
    if (now - std::max(command.sent + limit, stalled_until) > kOverdue)
      return world_.fail(fmt::format("{}: no answer", consumer.name));
    if (!command.waits()) continue;
    for (const auto& [id, job] : queue_.jobs()) {
      const Time since = queue_.offered_since(job, consumer, now);
      if (since != kNever && now - std::max({since, command.sent, stalled_until}) > kOverdue)
        return world_.fail(fmt::format("job {} is ready, and {} waits", id, consumer.name));
    }
  }
}

// --- Replies

void Model::answered(ModelReply reply) {
  if (service_ == nullptr) return;  // the process has ended
  replies_.push_back(std::move(reply));
  if (busy_client() != nullptr) return;
  judge_replies();
  keep_state();
}

void Model::keep_state() {
  if (has_losses_) past_.add(world_.now(), queue_);
}

void Model::judge_one(const ModelReply& reply) {
  if (!world_.failed()) take(queue_.judge(reply));
}

void Model::judge_replies() {
  std::vector<ModelReply> replies = std::exchange(replies_, {});
  if (replies.size() == 1) return judge_one(replies.front());
  // The last reply answers the command under way, which most likely caused the others.
  std::rotate(replies.begin(), replies.end() - 1, replies.end());
  ReplyOrder order(replies.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::optional<ExpectedQueue> found;
  std::string problem;
  do {
    if (!is_possible(replies, order)) continue;
    ExpectedQueue queue = queue_;
    const std::string problem_here = problem_in(queue, replies, order);
    if (!problem_here.empty()) {
      if (problem.empty()) problem = problem_here;
    } else if (found) {
      found->doubt_differences(queue);
    } else {
      found = std::move(queue);
    }
  } while (std::ranges::next_permutation(order).found);
  if (!found) return world_.fail(fmt::format("in no order: {}", problem));
  queue_ = std::move(*found);
}

// --- Doubts

void Model::lost(const Consumer& consumer, const std::optional<ModelCommand>& command) {
  const Time now = world_.now();
  if (service_ == nullptr) {  // the process has ended
    if (command) queue_.doubt_durable_effects(*command);
  } else if (command) {
    queue_.doubt_effects(consumer, *command, now);
  }
  const ModelClient* busy = busy_client();
  if (busy != nullptr && !replies_.empty())
    queue_.doubt_effects(busy->consumer(), *busy->sent(), now);
  for (const ModelReply& reply : std::exchange(replies_, {})) judge_one(reply);
  if (service_ != nullptr) queue_.lose(consumer);
  left_ = now;
  keep_state();
}

// The engine shows what was acknowledged: all replies have arrived, all facts are durable, and the
// engine has closed the clients that have left.
bool Model::can_resolve() const {
  if (service_ == nullptr || busy_client() != nullptr) return false;
  const Time left = std::max(left_, known_.conditions.stalled_until());
  if (queue_.someone_left() && (!net_.is_settled() || world_.now() - left < kLeft)) return false;
  if (service_->log().durable() < service_->log().appended()) return false;
  return std::ranges::none_of(
      service_->conversations().all(), [this](const commands::Conversation* conversation) {
        return conversation != nullptr && !conversation->replies().empty() &&
               is_of_model(service_->engine(), conversation->session());
      });
}

// Runs after the events of this moment, such as the arrival of replies.
void Model::resolve_soon() {
  if (resolves_ || !can_resolve()) return;
  resolves_ = true;
  world_.at(world_.now(), [this] {
    resolves_ = false;
    if (!can_resolve()) return;
    take(queue_.resolve(service_->engine(), world_.now()));
    keep_state();
  });
}

// --- Processes

void Model::begin(const commands::Service& service) {
  // The end of the connection may still be under way to the client.
  for (ModelClient* client : clients_) client->forget();
  service_ = &service;
}

void Model::begin_process(const commands::Service& service) {
  begin(service);
  queue_ = ExpectedQueue(known_.conditions);
}

void Model::begin_process(const commands::Service& service, const Losses& losses, bool has_losses) {
  begin(service);
  const Time now = world_.now();
  const Time begun = std::exchange(begun_, now);
  ExpectedQueue restored = queue_;
  std::string problem = restored.restart(service.engine(), now, begun);
  if (!problem.empty() && losses.may_be) {
    past_.forget_until(losses.safe_until);
    const auto fits = [&](const ExpectedQueue& state) {
      restored = state;
      return restored.restart(service.engine(), now, begun).empty();
    };
    if (past_.newest(fits) != nullptr) problem.clear();
  }
  take(problem);
  queue_ = std::move(restored);
  has_losses_ = has_losses;
  past_.begin(now, queue_);
}

}  // namespace tubed::simulation
