// Loop: libuv's event loop, and the one wrapper through which its handles are owned.
#pragma once

#include <memory>

#include <uv.h>

namespace tubed::loop {

class Loop {
 public:
  Loop();
  // Precondition: every handle on it is closed or being closed; waits for their close callbacks.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs until stop().
  void run();
  void stop();
  // One turn, without waiting for events; for tests and measurements.
  void run_once();

  uv_loop_t* uv() { return &loop_; }

 private:
  uv_loop_t loop_;
};

// Owns one uv handle of type H. It is freed in its close callback and nowhere else, so that libuv
// never sees a dead one.
template <class H>
class Handle {
 public:
  // `owner` is what the handle's callbacks find with owner_of().
  explicit Handle(void* owner) : handle_(new H()) { handle_->data = owner; }

  H* get() const { return handle_.get(); }
  // Frees a handle that libuv refused to initialise, and so does not know; get() is null then.
  void forget() { delete handle_.release(); }

 private:
  struct Close {
    void operator()(H* handle) const {
      uv_close(reinterpret_cast<uv_handle_t*>(handle),
               [](uv_handle_t* closed) { delete reinterpret_cast<H*>(closed); });
    }
  };
  std::unique_ptr<H, Close> handle_;
};

template <class Owner, class H>
Owner& owner_of(H* handle) {
  return *static_cast<Owner*>(handle->data);
}

}  // namespace tubed::loop
