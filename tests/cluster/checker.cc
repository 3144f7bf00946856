#include "tests/cluster/checker.h"

#include <algorithm>

#include "tests/cluster/text.h"

namespace tubed::cluster_test {

namespace {

// Returns a body without its padding.
std::string name(std::string_view body) {
  return std::string(body.substr(0, body.find('x')));
}

}  // namespace

void Checker::problem(JobId id, const std::string& what) const {
  std::string problem = "job " + std::to_string(id) + " " + what;
  const auto job = jobs_.find(id);
  if (job != jobs_.end() && job->second.hold) {
    const Hold& hold = *job->second.hold;
    problem += "; client " + std::to_string(hold.client) + " has it from " + text(hold.from) +
               " until " + text(hold.until) + (hold.connected ? "" : ", held over") +
               (hold.leader ? " since " + text(*hold.leader) : "") + (hold.ended ? ", ended" : "");
  }
  problem_(problem);
}

// Returns a duration that has not passed on any clock yet.
Duration Checker::safe(Duration duration) const {
  return std::chrono::duration_cast<Duration>(duration * (1 - skew_));
}

void Checker::put_sent(const std::string& body, Duration ttr) {
  puts_[body] = {.ttr = ttr, .id = 0};
}

Checker::Job& Checker::known(JobId id, std::string_view body) {
  const auto put = puts_.find(body);
  if (put == puts_.end()) {
    problem(id, "has a body that was never put: " + name(body));
    return jobs_[id];
  }
  if (put->second.id == 0) put->second.id = id;
  if (put->second.id != id) {
    problem(id, "is doubled: its body was put once, and is job " + std::to_string(put->second.id));
  }
  Job& job = jobs_[id];
  if (job.body.empty()) job.body = body;
  if (job.body != body) problem(id, "is " + name(job.body) + " and " + name(body));
  return job;
}

void Checker::inserted(const std::string& body, JobId id) {
  ++inserted_;
  known(id, body).acknowledged = true;
}

// --- Holders

// No other client may get the job before this time, by a reply with that cluster time. After a
// failover the cluster time may regain what it had lost because the previous leader had not heard
// the last frames of its predecessor. The reservation then ends earlier by that amount. The World
// checks that the cluster time gains no more than that.
Time Checker::protected_until(const Hold& hold, const Reply& reply) const {
  if (hold.ended) return Time::min();
  const Time until = hold.until - std::max(reply.ahead - hold.ahead, Duration());
  return hold.leader ? std::min(until, *hold.leader + safe(grace_)) : until;
}

void Checker::reserved(ClientId client, JobId id, std::string_view body, Time asked,
                       const Reply& reply, bool ended) {
  ++reserved_;
  Job& job = known(id, body);
  if (job.is_deleted && job.deleted < asked) problem(id, "was deleted, and is reserved");
  if (ended) return;
  // The order of two replies in one tick is unknown here.
  const bool judged = job.hold && job.hold->released != reply.released;
  if (judged && reply.arrived < protected_until(*job.hold, reply)) {
    problem(id, "is held by client " + std::to_string(job.hold->client) + ", and given to client " +
                    std::to_string(client));
  }
  job.hold = {.client = client,
              .released = reply.released,
              .from = reply.arrived,
              .until = asked + safe(puts_.find(body)->second.ttr),
              .ahead = reply.ahead,
              .ended = false,
              .connected = true,
              .leader = {}};
}

bool Checker::holds(ClientId client, JobId id) const {
  const auto job = jobs_.find(id);
  return job != jobs_.end() && job->second.hold && job->second.hold->client == client &&
         !job->second.hold->ended;
}

bool Checker::is_held(JobId id) const {
  const auto job = jobs_.find(id);
  return job != jobs_.end() && job->second.hold && !job->second.hold->ended;
}

void Checker::end_sent(ClientId client, JobId id, bool is_delete) {
  if (is_delete) ++jobs_[id].deletes;
  ended(client, id);
}

void Checker::ended(ClientId client, JobId id) {
  Job& job = jobs_[id];
  if (job.hold && job.hold->client == client) job.hold->ended = true;
}

void Checker::deleted(JobId id, Time now) {
  ++deleted_;
  Job& job = jobs_[id];
  if (job.is_deleted) problem(id, "was deleted twice");
  job.is_deleted = true;
  job.deleted = now;
}

void Checker::not_found(ClientId client, JobId id, bool is_delete, bool had_right,
                        const Reply& reply) {
  Job& job = jobs_[id];
  if (is_delete) --job.deletes;
  if (!had_right || !job.hold || job.hold->client != client) return;
  // A delete that was sent before the job was reserved may run after the reservation.
  if (job.is_deleted || job.deletes > 0) return;
  Hold hold = *job.hold;
  hold.ended = false;  // by the command that was not done
  if (reply.arrived < protected_until(hold, reply)) problem(id, "is held, and was not found");
}

void Checker::touched(ClientId client, JobId id, Time asked, const Reply& reply) {
  Job& job = jobs_[id];
  if (!job.hold || job.hold->client != client) return;
  if (!job.hold->connected) ++held_over_;
  job.hold->connected = true;
  job.hold->leader.reset();
  const auto put = puts_.find(job.body);
  if (put == puts_.end()) return;
  job.hold->until = asked + safe(put->second.ttr);
  job.hold->ahead = reply.ahead;
}

void Checker::found(JobId id, std::string_view body, Time asked) {
  const Job& job = known(id, body);
  if (job.is_deleted && job.deleted < asked) problem(id, "was deleted, and is found");
}

void Checker::hung_up(ClientId client) {
  for (auto& [id, job] : jobs_) {
    // Even a held-over reservation: a touch without a reply may have taken it over.
    if (job.hold && job.hold->client == client) job.hold->ended = true;
  }
}

void Checker::connection_lost(ClientId client) {
  for (auto& [id, job] : jobs_) {
    if (job.hold && job.hold->client == client) job.hold->connected = false;
  }
}

void Checker::leader_serves(Time now) {
  for (auto& [id, job] : jobs_) {
    if (job.hold && !job.hold->leader) job.hold->leader = now;
  }
}

// --- Jobs

void Checker::check_jobs(const BodyOf& body_of) const {
  for (const auto& [id, job] : jobs_) {
    const auto body = body_of(id);
    if (body && job.is_deleted) problem(id, "was deleted, and is back");
    if (body && *body != job.body && !job.body.empty()) problem(id, "has the body " + name(*body));
    if (!body && job.acknowledged && job.deletes == 0) problem(id, "is lost");
  }
}

}  // namespace tubed::cluster_test
