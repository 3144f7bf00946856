// Loop: libuv's event loop. Handle: the owner of one libuv handle; no other code closes one.
//
// A loop and everything that runs in it belong to one thread, except for the work of FileStorage in
// libuv's thread pool.
#pragma once

#include <memory>

#include <uv.h>

namespace tubed::loop {

class Loop {
 public:
  Loop();
  // Precondition: every Handle is destroyed. Runs the loop until all close callbacks were called.
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs until stop() is called or no event can occur.
  void run();
  void stop();
  // Runs one iteration, without waiting for events. For tests and measurements.
  void run_once();

  uv_loop_t* uv() { return &loop_; }

 private:
  uv_loop_t loop_;
};

// Owns a libuv handle of type H. libuv may use a handle until its close callback, which frees the
// memory: the handle outlives this object by up to one iteration of the loop.
template <class H>
class Handle {
 public:
  // owner_of() returns `owner` in the callbacks of the handle.
  explicit Handle(void* owner) : handle_(new H()) { handle_->data = owner; }

  H* get() const { return handle_.get(); }
  // Frees a handle that libuv failed to initialise and therefore will not close. get() then returns
  // null.
  void forget() { delete handle_.release(); }
  // Closes the handle before this object is destroyed. get() then returns null.
  void close() { handle_.reset(); }

 private:
  struct CloseHandle {
    void operator()(H* handle) const {
      uv_close(reinterpret_cast<uv_handle_t*>(handle),
               [](uv_handle_t* closed) { delete reinterpret_cast<H*>(closed); });
    }
  };
  std::unique_ptr<H, CloseHandle> handle_;
};

// Returns the owner that was given to a Handle. `Owner` must be its exact type.
template <class Owner, class H>
Owner& owner_of(H* handle) {
  return *static_cast<Owner*>(handle->data);
}

}  // namespace tubed::loop
