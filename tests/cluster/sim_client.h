// SimClient: a client of the simulated cluster: it sends random commands, some of them pipelined,
// reads the replies, and reports both to the Checker.
//
// It sends no command twice and disturbs no reservation of another client. Like a worker, it
// remembers the jobs that it holds when its connection is lost, and ends them on a connection to
// the next leader.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "tests/cluster/checker.h"
#include "tests/journal/test_file.h"

namespace tubed::cluster_test {

class SimClient {
 public:
  struct Habits {
    std::uint32_t body_bytes = 400;  // most bodies are smaller
    std::uint32_t pipelined = 4;     // at most this many commands at a time
    bool consumes = true;            // reserves more than it puts
    std::uint32_t put_bytes = 0;     // only puts, one at a time, with bodies of this size; 0: all
  };

  SimClient(ClientId id, std::uint64_t seed, const Habits& habits, Checker& checker)
      : id_(id), random_(seed), habits_(habits), checker_(checker) {}

  ClientId id() const { return id_; }
  // Returns the number of commands without a reply.
  std::size_t unanswered() const { return sent_.size(); }

  // Returns some commands. `now` is the true time.
  std::string commands(Time now);
  // Ends its reservations, and then only asks: after a while nothing changes.
  std::string questions(Time now);
  // Returns a single put.
  std::string put(Time now);
  // Bytes arrive.
  void receive(const std::string& bytes, const Checker::Reply& reply);
  // Its connection has ended. `by_itself`: the client has ended it.
  void disconnected(bool by_itself);

  std::uint64_t puts_answered() const { return puts_answered_; }

 private:
  enum class Kind : std::uint8_t { put, reserve, remove, release, bury, touch, kick, peek, other };
  struct Sent {
    Kind kind = Kind::other;
    Time at;
    JobId job = 0;
    bool had_right = false;
    std::string body = {};
  };

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  std::string tube();
  JobId some_job();
  void command(std::string& out, Time now);
  void put(std::string& out, Time now);
  void end(std::string& out, Time now, Kind kind, JobId job);
  bool take_reply();
  void take(const Sent& sent, std::string_view line, std::string_view body);
  bool has_sent_end(JobId job) const;
  void forget(JobId job);

  ClientId id_;
  journal::Random random_;
  Habits habits_;
  Checker& checker_;
  std::uint64_t serial_ = 0;
  std::deque<Sent> sent_;
  std::string input_;
  Checker::Reply reply_;  // of the bytes received last
  std::vector<JobId> held_;
  std::deque<JobId> seen_;
  std::uint64_t puts_answered_ = 0;
};

}  // namespace tubed::cluster_test
