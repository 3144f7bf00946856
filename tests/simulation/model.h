// Model: what the queue must have in the tubes that only the clients of the model use, and how it
// must answer them.
//
// 1. The clients of a model send one command at a time between them, in addition to reserves that
//    wait. While a job may go to such a reserve, they send nothing.
// 2. A command runs at some moment between its sending and its reply. The model keeps a window for
//    each time that follows from that moment: it refuses a change before the window begins, and its
//    absence after the window has ended.
// 3. A client that leaves, or the end of the process, leaves commands without a reply. The model
//    allows both outcomes, and reads from the engine which of them it was, once the server has
//    closed the connection. Acknowledged changes have to hold.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "commands/service.h"
#include "engine/types.h"
#include "tests/simulation/client.h"

namespace tubed::simulation {

class Model {
 public:
  Model(World& world, Knowledge& known, const Net& net) : world_(world), known_(known), net_(net) {}
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // The model outlives its clients.
  std::unique_ptr<Script> add_client(const std::string& name);

  // A process has recovered its queue: it has the acknowledged jobs, or none without a journal.
  void begin_process(const commands::Service& service, bool has_journal);
  void end_process() { service_ = nullptr; }
  // Called in every millisecond of a process: no answer is overdue.
  void check();

 private:
  class ModelClient;

  // When something happens: not before `earliest`, and a short time after `latest` it has happened.
  struct Window {
    Time earliest;
    Time latest;
  };
  struct Pause {
    Time begun;  // it has begun by then
    Window end;
  };
  // Where a job is when no client holds it.
  struct Rest {
    JobState state = JobState::ready;  // not reserved
    Window due = {};                   // of a delayed job
  };
  struct Job {
    JobId id = 0;
    std::string tube;
    std::string body;
    Priority priority = 0;
    Duration ttr{};
    JobState state = JobState::ready;
    // When a delayed or reserved job becomes ready, or when a ready job did.
    Window due = {};
    Time ready_since;                 // of a ready job: it is ready from then on
    std::uint64_t bury_order = 0;     // of a buried job; 0: not known
    ModelClient* holder = nullptr;    // of a reserved job; null: the client has left
    Time taken;                       // when the last reply arrived that gave it to a client
    bool has_unknown_holder = false;  // one of two clients
    Rest rest;                        // as acknowledged: a restart restores it
    bool may_rest_ready = false;      // or as a ready job, because its reservation has ended
    std::optional<JobCounters> counters = JobCounters();  // none: not known
    bool is_doubtful = false;  // a command without a reply may have changed it
    bool may_be_gone = false;  // or have deleted it
  };
  enum class Kind : std::uint8_t {
    put,
    reserve,
    reserve_job,
    remove,
    release,
    bury,
    touch,
    kick,
    kick_tube,
    move,
    pause,
    show,
    peek,
  };
  // A command without a reply so far.
  struct Issued {
    Kind kind = Kind::put;
    Time sent;
    JobId id = 0;
    std::string tube = {};
    std::string to = {};
    JobState state = JobState::buried;  // of the jobs to kick or to move
    std::uint64_t count = 0;
    Priority priority = 0;
    Duration time{};  // a delay, a pause, or the limit of a reserve
    Duration ttr{};
    std::string body = {};
    std::uint64_t kicked = 0;  // jobs that a kick-tube has made ready before its reply
    std::uint64_t perhaps_kicked = 0;
    bool may_have_run = false;  // its job was given to a client before its reply
    bool has_run = false;       // its effect was seen before its reply
    std::uint64_t changes = 0;  // that the model had seen when it was sent
    bool waits() const { return kind == Kind::reserve && time > Duration::zero(); }
  };

  static bool is_before(const Job& one, const Job& other) {
    return std::pair(one.priority, one.id) < std::pair(other.priority, other.id);
  }

  // --- Time
  // Makes the jobs ready whose delay or TTR has certainly ended, before a command runs that has no
  // reply yet.
  void settle();
  bool has_passed(const Window& window, Time time) const;
  static void make_ready(Job& job, Time since);
  void end_reservation(Job& job);
  Window from_now(const Issued& issued, Duration duration) const {
    return {issued.sent + duration, world_.now() + duration};
  }
  bool is_paused(const std::string& tube) const;  // certainly
  bool may_be_paused(const std::string& tube, Time time) const;

  // --- What may be
  bool may_be_ready(const Job& job) const;
  bool may_be_given(const Job& job, const ModelClient& to) const;
  bool may_have_been_given(const Job& job, const ModelClient& to, const Issued& reserve) const;
  bool may_be_taken(const Job& job, const ModelClient& by) const;
  bool may_send();
  bool is_waiting(const ModelClient* except = nullptr) const;
  bool pauses_now(const std::string& tube) const;
  void run_early(Job& job);
  bool is_owed() const;

  // --- Replies
  void answered(ModelClient& client, const Issued& issued, std::string_view line,
                std::string_view content);
  void answered_put(const Issued& issued, std::string_view line);
  void answered_reserve(ModelClient& client, const Issued& issued, std::string_view line,
                        std::string_view content);
  void timed_out(const ModelClient& client, const Issued& issued);
  void answered_many(const Issued& issued, std::string_view line);
  void answered_about(ModelClient& client, const Issued& issued, Job& job, std::string_view line,
                      std::string_view content);
  void shown(const Job& job, const ModelClient& client, std::string_view content);
  void take(ModelClient& client, Job& job, const Issued& issued);
  Job* find(JobId id);
  Job& add(const Issued& put, JobId id);
  void rest(Job& job, JobState state, const Window& due);
  bool take_first(const Issued& issued, std::uint64_t count);

  // --- Doubts
  void doubt(Job& job);
  void begin_doubts();
  bool is_soon(const Job& job) const;
  void lost(ModelClient& client, const std::optional<Issued>& issued);
  void resolve();
  bool resolve(Job& job);
  void expect_at_rest(const Job& job, const engine::JobInfo& info) const;
  void adopt(Job& job, const engine::JobInfo& info);
  void find_lost_puts();

  void fail(const Job& job, std::string_view what) const;

  World& world_;
  Knowledge& known_;
  const Net& net_;
  const commands::Service* service_ = nullptr;
  std::vector<ModelClient*> clients_;
  std::map<JobId, Job> jobs_;
  std::map<std::string, Pause, std::less<>> pauses_;
  std::map<std::string, Issued> lost_puts_;  // by their bodies
  std::set<std::string> doubtful_pauses_;
  bool has_doubts_ = false;
  Time doubtful_since_;
  std::optional<Lsn> shown_up_to_;  // the engine has shown the result of all doubts by then
  JobId last_id_ = 0;
  std::uint64_t last_bury_ = 0;
  std::uint64_t changes_ = 0;
};

}  // namespace tubed::simulation
