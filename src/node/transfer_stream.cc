#include "node/transfer_stream.h"

#include <span>
#include <utility>

#include "cluster/message.h"

namespace tubed::node {

Result<std::string_view> TransferStream::receive_bytes() {
  frame_.resize(cluster::kFrameHeaderBytes);
  TRY(stream_.read(frame_));
  const auto bytes = cluster::frame_bytes(frame_);
  if (!bytes || *bytes < cluster::kFrameHeaderBytes) return Error{"a frame is damaged"};
  frame_.resize(*bytes);
  TRY(stream_.read(std::span(frame_).subspan(cluster::kFrameHeaderBytes)));
  return std::string_view(frame_);
}

Result<cluster::TransferFrame> TransferStream::receive() {
  const std::string_view bytes = TRY(receive_bytes());
  auto frame = cluster::decode_transfer(bytes);
  if (!frame) return Error{"a frame is damaged"};
  if (const auto* failure = std::get_if<cluster::TransferFailure>(&*frame)) {
    return Error{"the other node: " + failure->reason};
  }
  return std::move(*frame);
}

}  // namespace tubed::node
