// Each direction has its own uv_poll. If read() gets more bytes than fit into the caller's buffer,
// a timer reports readiness for the rest, since the kernel does not. Output is written only when
// poll(2) has reported it writable: then a pipe takes PIPE_BUF bytes at once.
#include "loop/pipe_channel.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "loop/timer.h"

namespace tubed::loop {

namespace {

constexpr std::size_t kReadBytes = 16 * 1024;
constexpr std::size_t kWriteBytes = 512;  // filtered, at most PIPE_BUF

// Saves the flags of a descriptor and restores them.
class KeptFlags {
 public:
  explicit KeptFlags(int descriptor)
      : descriptor_(descriptor), flags_(::fcntl(descriptor, F_GETFL)) {}
  ~KeptFlags() { ::fcntl(descriptor_, F_SETFL, flags_); }
  KeptFlags(const KeptFlags&) = delete;
  KeptFlags& operator=(const KeptFlags&) = delete;

 private:
  int descriptor_;
  int flags_;
};

bool is_writable(int descriptor) {
  pollfd one{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return ::poll(&one, 1, 0) == 1;
}

// Waits for a partial write, which does not happen on a pipe.
bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd one{.fd = descriptor, .events = POLLOUT, .revents = 0};
      ::poll(&one, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

class PipeChannel final : public Channel {
 public:
  PipeChannel(Loop& loop, int input, int output, PipeFilters filters, std::function<void()> closed)
      : input_(input),
        output_(output),
        input_flags_(input),
        output_flags_(output),
        filters_(std::move(filters)),
        closed_(std::move(closed)),
        readable_(this),
        writable_(this),
        left_over_timer_(loop, [this] { report({.readable = true}); }) {
    if (uv_poll_init(loop.uv(), readable_.get(), input) != 0) readable_.forget();
    // A regular file is always writable.
    if (uv_poll_init(loop.uv(), writable_.get(), output) != 0) writable_.forget();
  }
  ~PipeChannel() override {
    if (is_watched()) uv_poll_stop(readable_.get());
    if (writable_.get() != nullptr) uv_poll_stop(writable_.get());
    if (is_watched()) closed_();
  }

  bool is_watched() const { return readable_.get() != nullptr; }

  os::Transfer read(std::span<char> buffer) override {
    return read(std::array{buffer, std::span<char>()});
  }
  os::Transfer read(std::span<const std::span<char>> buffers) override;
  os::Transfer write(std::string_view piece) override {
    return write(std::span<const std::string_view>(&piece, 1));
  }
  os::Transfer write(std::span<const std::string_view> pieces) override;
  bool has_unread() const override {
    int bytes = 0;
    return !left_over_.empty() || (::ioctl(input_, FIONREAD, &bytes) == 0 && bytes > 0);
  }
  std::string peer() const override { return "standard input"; }
  // The reader sees the end when the process ends.
  void end_output() override {}

  void want(bool readable, bool writable) override {
    const int events = (readable ? UV_READABLE : 0) | (half_closed_ ? 0 : UV_DISCONNECT);
    watch(readable_.get(), events);
    if (writable_.get() != nullptr) watch(writable_.get(), writable ? UV_WRITABLE : 0);
    if (readable && !left_over_.empty()) {
      left_over_timer_.arm({});
    } else {
      left_over_timer_.disarm();
    }
  }
  void pause() override {
    watch(readable_.get(), 0);
    if (writable_.get() != nullptr) watch(writable_.get(), 0);
    left_over_timer_.disarm();
  }

 private:
  static void watch(uv_poll_t* handle, int events) {
    if (events == 0) {
      uv_poll_stop(handle);
    } else {
      uv_poll_start(handle, events, &PipeChannel::on_poll);
    }
  }

  static void on_poll(uv_poll_t* handle, int status, int events) {
    auto& channel = owner_of<PipeChannel>(handle);
    const Readiness ready{.readable = (events & UV_READABLE) != 0,
                          .writable = (events & UV_WRITABLE) != 0,
                          .half_closed = (events & UV_DISCONNECT) != 0,
                          .broken = status < 0};
    if (ready.half_closed) {
      // epoll would report it again in each tick. The next want() watches the other events.
      channel.half_closed_ = true;
      watch(handle, 0);
    }
    channel.report(ready);
  }

  os::Transfer take_left_over(std::span<const std::span<char>> buffers);

  int input_;
  int output_;
  KeptFlags input_flags_;
  KeptFlags output_flags_;
  PipeFilters filters_;
  std::function<void()> closed_;
  Handle<uv_poll_t> readable_;
  Handle<uv_poll_t> writable_;
  Timer left_over_timer_;
  std::string left_over_;  // filtered input
  bool half_closed_ = false;
};

os::Transfer PipeChannel::read(std::span<const std::span<char>> buffers) {
  if (!left_over_.empty()) return take_left_over(buffers);
  std::array<char, kReadBytes> bytes;
  const ssize_t got = ::read(input_, bytes.data(), bytes.size());
  if (got == 0) return {os::Transfer::Kind::end, 0};
  if (got < 0) {
    const bool again = errno == EAGAIN || errno == EINTR;
    return {again ? os::Transfer::Kind::would_block : os::Transfer::Kind::failed, 0};
  }
  filters_.input({bytes.data(), static_cast<std::size_t>(got)}, left_over_);
  if (left_over_.empty()) return {os::Transfer::Kind::would_block, 0};
  return take_left_over(buffers);
}

os::Transfer PipeChannel::take_left_over(std::span<const std::span<char>> buffers) {
  std::size_t taken = 0;
  for (const std::span<char> buffer : buffers) {
    const std::size_t count = std::min(buffer.size(), left_over_.size() - taken);
    std::copy_n(left_over_.data() + taken, count, buffer.data());
    taken += count;
  }
  left_over_.erase(0, taken);
  return {os::Transfer::Kind::done, taken};
}

os::Transfer PipeChannel::write(std::span<const std::string_view> pieces) {
  std::size_t total = 0;
  std::string out;
  for (std::string_view piece : pieces) {
    while (!piece.empty()) {
      if (!is_writable(output_)) {
        if (total > 0) return {os::Transfer::Kind::done, total};
        return {os::Transfer::Kind::would_block, 0};
      }
      const std::string_view part = piece.substr(0, kWriteBytes);
      out.clear();
      filters_.output(part, out);
      if (!write_all(output_, out)) return {os::Transfer::Kind::failed, 0};
      piece.remove_prefix(part.size());
      total += part.size();
    }
  }
  return {os::Transfer::Kind::done, total};
}

}  // namespace

std::unique_ptr<Channel> open_pipe_channel(Loop& loop, int input, int output, PipeFilters filters,
                                           std::function<void()> closed) {
  auto channel =
      std::make_unique<PipeChannel>(loop, input, output, std::move(filters), std::move(closed));
  if (!channel->is_watched()) return nullptr;
  return channel;
}

}  // namespace tubed::loop
