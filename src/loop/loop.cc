#include "loop/loop.h"

#include "base/assert.h"

namespace tubed::loop {

Loop::Loop() {
  TUBED_ASSERT(uv_loop_init(&loop_) == 0);
}

Loop::~Loop() {
  uv_run(&loop_, UV_RUN_DEFAULT);
  TUBED_ASSERT(uv_loop_close(&loop_) == 0);
}

void Loop::run() {
  uv_run(&loop_, UV_RUN_DEFAULT);
}

void Loop::run_once() {
  uv_run(&loop_, UV_RUN_NOWAIT);
}

void Loop::stop() {
  uv_stop(&loop_);
}

}  // namespace tubed::loop
