// Problem: why a request was refused, as an answer of HTTP. [RFC 9457]
#pragma once

#include <string>
#include <string_view>

#include "facts/types.h"

namespace tubed::api {

// The texts of `kind`, `title` and `reply` live as long as the program.
struct Problem {
  unsigned status = 400;
  std::string_view kind;   // "not-found", the end of its type
  std::string_view title;  // "Not found"
  std::string detail = {};
  std::string_view reply = {};  // the protocol's word, if it was a command's answer
  bool may_have_run = false;    // to send the request again may run its command twice
  std::string parameter = {};   // the name of the wrong parameter, if one is to blame
  std::string leader = {};      // the name of the node that serves clients, if another does
  std::string_view state = {};  // of the job, if it is the reason
};

// One JSON object: type, title, status, detail; then reply, parameter, leader and state, if not
// empty.
std::string to_json(const Problem& problem);

// The problem that a reply of a command means. The reply to `drain` is not a problem, although a
// put may be refused with the same word.
struct ReplyProblem {
  std::string_view word;
  unsigned status;
  std::string_view kind;
  std::string_view title;
  std::string_view detail;
};
// Null: the reply is not a refusal.
const ReplyProblem* find_problem(std::string_view word);
// Precondition: the word is a refusal. O(replies).
Problem problem_of(std::string_view word);

// The problems of requests themselves.
Problem bad_request(std::string detail);
// `mistake` continues "the parameter NAME": "is missing". A name of more than 64 bytes is cut.
Problem bad_parameter(std::string_view name, std::string_view mistake);
// `most`: how many KiB it may have.
Problem body_too_long(std::size_t most);
Problem not_found(std::string detail);
Problem forbidden(std::string detail);
Problem no_cluster();
// A command answered NOT_FOUND, and its job exists. `reservation_ended`: the request named the job
// by a reservation.
Problem wrong_state(JobState state, bool reservation_ended);
// A reload was refused for this reason, and has changed nothing.
Problem not_reloaded(std::string reason);
// Clients are to use another node of the cluster: `leader`, if it is known.
Problem not_the_leader(std::string detail, std::string leader);
// The server has begun to stop.
Problem stopping();
// The client of the queue that ran the request was closed before its answer.
Problem closed();

}  // namespace tubed::api
