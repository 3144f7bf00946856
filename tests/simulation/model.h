// Model: judges the replies to the clients that use the tubes of the model (expected_queue.h).
//
// 1. The clients of a model send one command at a time between them, in addition to reserves that
//    wait. While a job may go to such a reserve, or a job is doubtful, they send nothing.
// 2. A command runs at some moment between its sending and its reply. The links to these clients
//    take no time, so replies arrive in the order in which the server writes them, tick by tick.
//    Within a tick that is not the order in which the commands have run. Replies to reserves that
//    arrive before that of the command under way are kept until then, and the model looks for an
//    order in which all of them are right. Jobs that differ between such orders are doubtful.
// 3. A client that leaves, or the end of the process, leaves commands without a reply. The model
//    allows both outcomes, and reads from the engine which of them it was, once the server has
//    closed the connection. Acknowledged changes have to hold.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands/service.h"
#include "tests/simulation/client.h"
#include "tests/simulation/expected_queue.h"
#include "tests/simulation/history.h"

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

  // A process has recovered its queue: it has the acknowledged jobs, or those of an earlier moment.
  // `has_losses`: a later start may have losses.
  void begin_process(const commands::Service& service, const Losses& losses, bool has_losses);
  // The same without a journal: it has no jobs.
  void begin_process(const commands::Service& service);
  void end_process() { service_ = nullptr; }
  // Called in every millisecond of a process: no answer is overdue.
  void check();

 private:
  friend ModelClient;

  // --- Called by the clients
  bool may_send();
  bool is_waiting() const;
  void answered(ModelReply reply);
  // The command, if any, has no reply.
  void lost(const Consumer& consumer, const std::optional<ModelCommand>& command);

  // --- Replies
  const ModelClient* busy_client() const;  // null: none has a command that does not wait
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
  History<ExpectedQueue> past_;      // with losses
  std::vector<ModelReply> replies_;  // not judged yet, in the order of their arrival
  Time left_;                        // when a client has left
  Time begun_;                       // the process
  bool resolves_ = false;            // an event is to come that resolves
};

}  // namespace tubed::simulation
