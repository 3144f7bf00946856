#include "loop/pool_task.h"

#include <utility>

#include "base/assert.h"

namespace tubed::loop {

struct PoolTask::Request {
  PoolTask* owner;  // null: destroyed
  Work work;
  Finished finished;
  Result<void> result = {};
  uv_work_t uv{};
};

PoolTask::~PoolTask() {
  if (request_ != nullptr) request_->owner = nullptr;
}

void PoolTask::run(Work work, Finished finished) {
  TUBED_ASSERT(!busy());
  request_ = new Request{.owner = this, .work = std::move(work), .finished = std::move(finished)};
  request_->uv.data = request_;
  const int queued = uv_queue_work(
      loop_.uv(), &request_->uv,
      [](uv_work_t* uv) {
        auto& own = *static_cast<Request*>(uv->data);
        own.result = own.work();
      },
      [](uv_work_t* uv, int status) {
        const std::unique_ptr<Request> own(static_cast<Request*>(uv->data));
        if (own->owner == nullptr) return;
        own->owner->request_ = nullptr;
        if (status == 0) own->finished(own->result);
      });
  TUBED_ASSERT(queued == 0);
}

}  // namespace tubed::loop
