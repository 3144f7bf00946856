// Model: judges the replies to the clients that use the tubes of the model (expected_queue.h).
//
// 1. The clients of a model together send one command at a time, in addition to waiting reserves.
//    While a job may go to such a reserve, or a job is doubtful, they send nothing.
// 2. A command runs at some moment between its sending and its reply. The links to these clients
//    take no time, so replies arrive in the order in which the server writes them, tick by tick.
//    Within a tick the commands may have run in another order. Replies to reserves that arrive
//    before the reply to the command under way are kept until then, and the model looks for an
//    order in which all replies are correct. Jobs that differ between such orders are doubtful.
// 3. When a client leaves or the process ends, commands remain without a reply. The model allows
//    both outcomes, and reads the actual outcome from the engine once the server has closed the
//    connection. Acknowledged changes must be kept.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands/service.h"
#include "tests/simulation/client.h"
#include "tests/simulation/history.h"
#include "tests/simulation/model/expected_queue.h"

namespace tubed::simulation {

class ModelClient;

class Model {
 public:
  Model(World& world, Knowledge& known, const Net& net)
      : world_(world), known_(known), net_(net), queue_(known.conditions) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // The model outlives its clients.
  std::unique_ptr<Script> add_client(const std::string& name);

  // A process has recovered its queue, with the acknowledged jobs or the jobs of an earlier moment.
  // `has_losses`: a later start may have losses.
  void begin_process(const commands::Service& service, const Losses& losses, bool has_losses);
  // The same without a journal: the queue has no jobs.
  void begin_process(const commands::Service& service);
  void end_process() { service_ = nullptr; }
  // Called in every millisecond of a process. Checks that no answer is overdue.
  void check();

 private:
  friend ModelClient;

  // --- Called by the clients
  bool may_send();
  bool is_waiting() const;
  void answered(ModelReply reply);
  // The command, if any, will have no reply.
  void lost(const Consumer& consumer, const std::optional<ModelCommand>& command);

  // --- Replies
  const ModelClient* busy_client() const;  // null: no command is under way that does not wait
  bool is_offered() const;
  Time settled_time() const;
  void judge_replies();
  void judge_one(const ModelReply& reply);

  // --- Doubts
  bool can_resolve() const;
  void resolve_soon();

  void take(const std::string& problem);
  void begin(const commands::Service& service);
  void keep_state();

  World& world_;
  Knowledge& known_;
  const Net& net_;
  const commands::Service* service_ = nullptr;
  std::vector<ModelClient*> clients_;
  ExpectedQueue queue_;
  bool has_losses_ = false;
  History<ExpectedQueue> past_;      // if losses are possible
  std::vector<ModelReply> replies_;  // not judged yet, in order of arrival
  Time left_;                        // when a client last left
  Time begun_;                       // start of the process
  bool resolves_ = false;            // a resolving event is scheduled
};

}  // namespace tubed::simulation
