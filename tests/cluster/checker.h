// Checker: what clients may rely on, checked from what they have sent and received.
//
// It knows the true time of each event. Jobs are independent of each other, so each rule is about
// one job: an acknowledged job is never lost, a deleted one never comes back, a job has one holder
// at a time, the holder has its rights, a job is whole, and ids rise.
//
// A command without a reply was done or was not. The load sends no command twice, and no client
// disturbs the reservations of another, so that everything else is exact.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "engine/types.h"

namespace tubed::cluster_test {

using ClientId = std::uint32_t;

class Checker {
 public:
  using Problem = std::function<void(const std::string&)>;

  // `grace`: how long a job is held over after a failover. `skew`: of the rates of clocks, as a
  // part of one.
  Checker(Problem problem, Duration grace, double skew)
      : problem_(std::move(problem)), grace_(grace), skew_(skew) {}

  // A client sends a put with this body.
  void put_sent(const std::string& body, Duration ttr);
  void inserted(const std::string& body, JobId id);

  // When the server has sent a reply, when it has arrived, and how far the time of the cluster was
  // ahead of the true time when it was sent.
  struct Reply {
    Time released;
    Time arrived;
    Duration ahead{};
  };
  // A reply with a job. `asked`: when its command was sent. `ended`: the client has ended the
  // reservation since, so that it may be older than one that was reported before.
  void reserved(ClientId client, JobId id, std::string_view body, Time asked, const Reply& reply,
                bool ended);
  void found(JobId id, std::string_view body, Time asked);
  // Whether the client has the right to end or touch the reservation of the job.
  bool holds(ClientId client, JobId id) const;
  // Some client does.
  bool is_held(JobId id) const;
  // A client sends `delete`, `release` or `bury` of a job.
  void end_sent(ClientId client, JobId id, bool is_delete);
  // A client has ended, or may have ended, its reservation of the job.
  void ended(ClientId client, JobId id);
  void deleted(JobId id, Time now);
  // A command was answered NOT_FOUND. `had_right`: holds(), when it was sent.
  void not_found(ClientId client, JobId id, bool is_delete, bool had_right, const Reply& reply);
  void touched(ClientId client, JobId id, Time asked, const Reply& reply);
  // The client has ended its connection: its jobs are ready soon.
  void hung_up(ClientId client);
  // Its connection was lost with the node: its jobs are held over.
  void connection_lost(ClientId client);
  // A node has begun to serve.
  void leader_serves(Time now);

  // The node that serves has exactly these jobs. `body_of`: nothing: it has no such job.
  using BodyOf = std::function<std::optional<std::string>(JobId)>;
  void check_jobs(const BodyOf& body_of) const;

  std::uint64_t inserted_count() const { return inserted_; }
  std::uint64_t deleted_count() const { return deleted_; }
  std::uint64_t reserved_count() const { return reserved_; }
  std::uint64_t held_over_count() const { return held_over_; }

 private:
  struct Put {
    Duration ttr{};
    JobId id = 0;  // 0: not known
  };
  struct Hold {
    ClientId client = 0;
    Time released;           // the reply
    Time from;               // the client has it since
    Time until;              // the server keeps it until then, at least, if time goes on as it did
    Duration ahead{};        // the time of the cluster, as in the reply
    bool ended = false;      // the client has ended it, or may have
    bool connected = false;  // by the connection that reserved it
    // The first node that serves after the node that has reserved it.
    std::optional<Time> leader;
  };
  struct Job {
    std::string body;
    bool acknowledged = false;
    std::uint32_t deletes = 0;  // that were sent and not answered with NOT_FOUND
    bool is_deleted = false;
    Time deleted;
    std::optional<Hold> hold;
  };

  Job& known(JobId id, std::string_view body);
  Duration safe(Duration duration) const;
  Time protected_until(const Hold& hold, const Reply& reply) const;
  void problem(JobId id, const std::string& what) const;

  Problem problem_;
  Duration grace_;
  double skew_;
  std::map<std::string, Put, std::less<>> puts_;
  std::map<JobId, Job> jobs_;
  std::uint64_t inserted_ = 0;
  std::uint64_t deleted_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t held_over_ = 0;
};

}  // namespace tubed::cluster_test
