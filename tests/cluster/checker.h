// Checker: checks what clients may rely on, from what they have sent and received.
//
// It knows the true time of each event. Jobs are independent, so each rule is about one job: an
// acknowledged job is never lost, a deleted job never reappears, a job has one holder at a time,
// the holder has its rights, a job is whole, and ids increase.
//
// A command without a reply may or may not have run. The load sends no command twice, and no client
// disturbs the reservations of another, so everything else is exact.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "facts/types.h"

namespace tubed::cluster_test {

using ClientId = std::uint32_t;

class Checker {
 public:
  using Problem = std::function<void(const std::string&)>;

  // `grace`: how long a job is held over after a failover. `skew`: the relative skew of the clocks'
  // rates.
  Checker(Problem problem, Duration grace, double skew)
      : problem_(std::move(problem)), grace_(grace), skew_(skew) {}

  // A client sends a put with this body.
  void put_sent(const std::string& body, Duration ttr);
  void inserted(const std::string& body, JobId id);

  // When the server sent a reply, when it arrived, and how far the cluster time was ahead of the
  // true time when it was sent.
  struct Reply {
    Time released;
    Time arrived;
    Duration ahead{};
  };
  // A client has received a job. `asked`: when its command was sent. `ended`: the client has ended
  // the reservation since, so it may be older than a reservation reported before.
  void reserved(ClientId client, JobId id, std::string_view body, Time asked, const Reply& reply,
                bool ended);
  void found(JobId id, std::string_view body, Time asked);
  // True if the client may end or touch the reservation of the job.
  bool holds(ClientId client, JobId id) const;
  // True if some client may.
  bool is_held(JobId id) const;
  // A client sends `delete`, `release` or `bury` for a job.
  void end_sent(ClientId client, JobId id, bool is_delete);
  // A client has ended, or may have ended, its reservation of the job.
  void ended(ClientId client, JobId id);
  void deleted(JobId id, Time now);
  // A command was answered NOT_FOUND. `had_right`: the result of holds() when it was sent.
  void not_found(ClientId client, JobId id, bool is_delete, bool had_right, const Reply& reply);
  void touched(ClientId client, JobId id, Time asked, const Reply& reply);
  // The client has closed its connection: its jobs will soon be ready.
  void hung_up(ClientId client);
  // The connection was lost with the node: the client's jobs are held over.
  void connection_lost(ClientId client);
  // A node has begun to serve.
  void leader_serves(Time now);

  // Checks that the serving node has exactly these jobs. `body_of` returns nothing for a missing
  // job.
  using BodyOf = std::function<std::optional<std::string>(JobId)>;
  void check_jobs(const BodyOf& body_of) const;

  std::uint64_t inserted_count() const { return inserted_; }
  std::uint64_t deleted_count() const { return deleted_; }
  std::uint64_t reserved_count() const { return reserved_; }
  std::uint64_t held_over_count() const { return held_over_; }

 private:
  struct Put {
    Duration ttr{};
    JobId id = 0;  // 0: unknown
  };
  struct Hold {
    ClientId client = 0;
    Time released;           // when the reply was sent
    Time from;               // start of the reservation
    Time until;              // earliest end on the server, if time continues as before
    Duration ahead{};        // of the cluster time, as in the reply
    bool ended = false;      // the client has ended it, or may have
    bool connected = false;  // by the connection that reserved it
    // When the first other node began to serve after the reservation.
    std::optional<Time> leader;
  };
  struct Job {
    std::string body;
    bool acknowledged = false;
    std::uint32_t deletes = 0;  // sent and not answered NOT_FOUND
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
