// ServeQueue: the tubes that may have both a ready job and a waiting session.
//
// How a session gets a job:
//
// 1. Engine::reserve() looks for the best ready job in the tubes that the session watches and that
//    give jobs (those that are not paused). If one exists, reserve() reserves it and returns the
//    answer.
// 2. Otherwise the session waits. Each of its watches is appended to the waiting list of its tube,
//    and the session gets the next arrival number.
// 3. A change that makes a job ready, or ends a pause, pushes the tube into this queue if a session
//    waits for it (ServeQueue::push).
// 4. At the end of the same call Dispatcher::serve_waiting() empties the queue. It takes the tube
//    whose first waiting session arrived first. That session gets the best ready job of all tubes
//    that it watches, which may be in another tube. It leaves all waiting lists, and a notice
//    carries its answer.
// 5. The tube is pushed again while it has both. A tube whose first waiting session was served
//    through another tube is pushed with its next waiting session.
//
// So jobs go to sessions in the order in which the sessions began to wait, and between two calls of
// the engine this queue is empty. A tube is in the queue once at most (Tube::serving).
#pragma once

#include <algorithm>
#include <vector>

#include "tables/job.h"

namespace tubed::engine {

class ServeQueue {
 public:
  struct Entry {
    std::uint64_t arrival;  // of the session that was first in the tube's list at the push
    Tube* tube;
  };

  bool empty() const { return entries_.empty(); }

  // Does nothing if the tube is in the queue, or lacks a ready job or a waiting session. O(log n).
  void push(Tube* tube) {
    if (tube->serving || !tube->can_serve()) return;
    tube->serving = true;
    entries_.push_back({tube->waiting.first()->session->arrival, tube});
    std::push_heap(entries_.begin(), entries_.end(), kLater);
  }

  // The entry with the earliest arrival; among the tubes of one session, the tube that was created
  // first. Precondition: !empty(). O(log n).
  Entry pop() {
    std::pop_heap(entries_.begin(), entries_.end(), kLater);
    const Entry first = entries_.back();
    entries_.pop_back();
    first.tube->serving = false;
    return first;
  }

 private:
  static constexpr auto kLater = [](const Entry& a, const Entry& b) {
    return a.arrival != b.arrival ? a.arrival > b.arrival : a.tube->number > b.tube->number;
  };

  std::vector<Entry> entries_;  // a heap, the earliest arrival first
};

}  // namespace tubed::engine
