// PoolTask: runs a function in a thread of libuv's pool, one at a time.
#pragma once

#include <functional>
#include <memory>

#include "base/result.h"
#include "loop/loop.h"

namespace tubed::loop {

class PoolTask {
 public:
  using Work = std::function<Result<void>()>;
  using Finished = std::function<void(const Result<void>&)>;

  // `loop` outlives it.
  explicit PoolTask(Loop& loop) : loop_(loop) {}
  // Work that is under way continues, and `finished` is not called. The destructor of the loop
  // waits for the work.
  ~PoolTask();
  PoolTask(const PoolTask&) = delete;
  PoolTask& operator=(const PoolTask&) = delete;

  bool busy() const { return request_ != nullptr; }
  // Calls `work` in a thread of the pool, then `finished` with its result on the loop's thread.
  // `work` uses only what it owns. Precondition: not busy().
  void run(Work work, Finished finished);

 private:
  struct Request;

  Loop& loop_;
  Request* request_ = nullptr;  // owned by its last callback
};

}  // namespace tubed::loop
