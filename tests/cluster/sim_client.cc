#include "tests/cluster/sim_client.h"

#include <algorithm>

#include "text/numbers.h"

namespace tubed::cluster_test {

namespace {

constexpr std::size_t kSeen = 20;

// Returns the word at this place of a line.
std::string_view word_at(std::string_view line, int place) {
  for (; place > 0; --place) line.remove_prefix(std::min(line.find(' '), line.size() - 1) + 1);
  return line.substr(0, line.find(' '));
}

}  // namespace

std::string SimClient::tube() {
  return below(3) == 0 ? "t1" : "t0";
}

JobId SimClient::some_job() {
  if (seen_.empty()) return 1;
  return seen_[below(seen_.size())];
}

void SimClient::put(std::string& out, Time now) {
  std::string body = "c" + std::to_string(id_) + "-" + std::to_string(++serial_);
  body.append(habits_.put_bytes > 0 ? habits_.put_bytes - body.size() : below(habits_.body_bytes),
              'x');
  const std::uint64_t ttr = 1 + below(6);
  const std::uint64_t delay = below(6) == 0 ? 1 + below(2) : 0;
  checker_.put_sent(body, std::chrono::seconds(ttr));
  out += "put " + std::to_string(below(3)) + " " + std::to_string(delay) + " " +
         std::to_string(ttr) + " " + std::to_string(body.size()) + "\r\n" + body + "\r\n";
  sent_.push_back({.kind = Kind::put, .at = now, .body = std::move(body)});
}

std::string SimClient::put(Time now) {
  std::string out;
  put(out, now);
  return out;
}

void SimClient::end(std::string& out, Time now, Kind kind, JobId job) {
  const bool right = checker_.holds(id_, job);
  sent_.push_back({.kind = kind, .at = now, .job = job, .had_right = right});
  const std::string id = std::to_string(job);
  if (kind == Kind::touch) {
    out += "touch " + id + "\r\n";
    return;
  }
  checker_.end_sent(id_, job, kind == Kind::remove);
  forget(job);
  if (kind == Kind::remove) out += "delete " + id + "\r\n";
  if (kind == Kind::release)
    out +=
        "release " + id + " " + std::to_string(below(3)) + " " + std::to_string(below(2)) + "\r\n";
  if (kind == Kind::bury) out += "bury " + id + " 1\r\n";
}

void SimClient::command(std::string& out, Time now) {
  const auto simple = [&](Kind kind, const std::string& line, JobId job = 0) {
    sent_.push_back({.kind = kind, .at = now, .job = job});
    out += line + "\r\n";
  };
  // If another client has got a job since, its reservation may belong to no connection: any client
  // that knows its id could end that reservation.
  std::erase_if(held_, [this](JobId job) { return !checker_.holds(id_, job); });
  if (!held_.empty() && below(2) == 0) {
    const JobId job = held_[below(held_.size())];
    const std::uint64_t choice = below(10);
    if (choice < 5) return end(out, now, Kind::remove, job);
    if (choice < 7) return end(out, now, Kind::release, job);
    if (choice < 8) return end(out, now, Kind::bury, job);
    return end(out, now, Kind::touch, job);
  }
  switch (below(habits_.consumes ? 14 : 8)) {
    case 0:
    case 1:
    case 2:
      return put(out, now);
    case 3:
      return simple(Kind::kick, "kick " + std::to_string(1 + below(5)));
    case 4: {
      const JobId job = some_job();
      return simple(Kind::peek, "peek " + std::to_string(job), job);
    }
    case 5:
      if (const JobId job = some_job(); below(4) == 0 && !checker_.is_held(job)) {
        return end(out, now, Kind::remove, job);
      }
      return simple(Kind::other, "watch " + tube());
    case 6:
      if (below(8) == 0) return simple(Kind::other, "pause-tube t1 1");
      return simple(Kind::other, "use " + tube());
    case 7: {
      const JobId job = some_job();
      return simple(Kind::kick, "kick-job " + std::to_string(job), job);
    }
    default:
      if (held_.size() >= 6) return end(out, now, Kind::remove, held_.front());
      return simple(Kind::reserve, "reserve-with-timeout " + std::to_string(below(2)));
  }
}

std::string SimClient::commands(Time now) {
  if (habits_.put_bytes > 0) return put(now);
  std::string out;
  for (std::uint64_t count = 1 + below(habits_.pipelined); count > 0; --count) command(out, now);
  return out;
}

std::string SimClient::questions(Time now) {
  std::string out;
  while (!held_.empty()) end(out, now, Kind::remove, held_.front());
  const JobId job = some_job();
  sent_.push_back({.kind = Kind::peek, .at = now, .job = job});
  return out + "peek " + std::to_string(job) + "\r\n";
}

// --- Replies

void SimClient::receive(const std::string& bytes, const Checker::Reply& reply) {
  reply_ = reply;
  input_ += bytes;
  while (take_reply()) {
  }
}

bool SimClient::take_reply() {
  const std::size_t end = input_.find("\r\n");
  if (end == std::string::npos || sent_.empty()) return false;
  const std::string line = input_.substr(0, end);
  std::size_t used = end + 2;
  std::string body;
  if (line.starts_with("RESERVED ") || line.starts_with("FOUND ")) {
    const std::uint64_t bytes = leading_number<std::uint64_t>(word_at(line, 2));
    if (input_.size() < used + bytes + 2) return false;
    body = input_.substr(used, bytes);
    used += bytes + 2;
  }
  input_.erase(0, used);
  const Sent sent = std::move(sent_.front());
  sent_.pop_front();
  take(sent, line, body);
  return true;
}

void SimClient::take(const Sent& sent, std::string_view line, std::string_view body) {
  const JobId id = leading_number<std::uint64_t>(word_at(line, 1));
  switch (sent.kind) {
    case Kind::put:
      if (!line.starts_with("INSERTED")) return;
      ++puts_answered_;
      checker_.inserted(sent.body, id);
      seen_.push_back(id);
      if (seen_.size() > kSeen) seen_.pop_front();
      return;
    case Kind::reserve:
      if (!line.starts_with("RESERVED")) return;
      checker_.reserved(id_, id, body, sent.at, reply_, has_sent_end(id));
      held_.push_back(id);
      return;
    case Kind::peek:
      if (line.starts_with("FOUND")) checker_.found(id, body, sent.at);
      return;
    case Kind::remove:
      if (line == "DELETED") return checker_.deleted(sent.job, reply_.arrived);
      break;
    case Kind::touch:
      if (line == "TOUCHED") return checker_.touched(id_, sent.job, sent.at, reply_);
      forget(sent.job);
      break;
    case Kind::release:
    case Kind::bury:
    case Kind::kick:
    case Kind::other:
      break;
  }
  const bool ends = sent.kind == Kind::remove || sent.kind == Kind::release ||
                    sent.kind == Kind::bury || sent.kind == Kind::touch;
  if (ends && line == "NOT_FOUND")
    checker_.not_found(id_, sent.job, sent.kind == Kind::remove, sent.had_right, reply_);
}

// True if a command without a reply yet ends a reservation of the job.
bool SimClient::has_sent_end(JobId job) const {
  return std::ranges::any_of(sent_, [job](const Sent& sent) {
    return sent.job == job &&
           (sent.kind == Kind::remove || sent.kind == Kind::release || sent.kind == Kind::bury);
  });
}

void SimClient::forget(JobId job) {
  std::erase(held_, job);
}

void SimClient::disconnected(bool by_itself) {
  sent_.clear();
  input_.clear();
  if (by_itself) {
    checker_.hung_up(id_);
    held_.clear();
  } else {
    checker_.connection_lost(id_);
  }
}

}  // namespace tubed::cluster_test
