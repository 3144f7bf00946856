// TransferStream: the frames of a fetch (cluster/transfer.h) on a connection. Each side has one in
// its thread. Errors are one line, which is meaningless for an interrupted step.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/transfer.h"
#include "loop/blocking_stream.h"

namespace tubed::node {

class TransferStream {
 public:
  explicit TransferStream(loop::BlockingStream& stream) : stream_(stream) {}

  Result<void> send(const cluster::TransferFrame& frame) {
    return stream_.write(cluster::encode(frame));
  }
  // Sends a whole frame, or the next part of a frame.
  Result<void> send_encoded(std::string_view frame) { return stream_.write(frame); }

  // Receives the next whole frame. Valid until the next call of a receiving function.
  Result<std::string_view> receive_bytes();
  // Receives the next frame of a transfer. A TransferFailure is an error.
  Result<cluster::TransferFrame> receive();

 private:
  loop::BlockingStream& stream_;
  std::string frame_;
};

}  // namespace tubed::node
