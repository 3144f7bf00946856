#include "node/peer_request.h"

#include <utility>

#include <fmt/format.h>

#include "cluster/member.h"

namespace tubed::node {

PeerRequest::PeerRequest(loop::Loop& loop, std::string_view address, CallerHandshake handshake,
                         const cluster::Request& request, const PeerLimits& limits, Done done)
    : address_(address),
      request_(encode(request)),
      done_(std::move(done)),
      timer_(loop, [this] { finish(failure(refused_.empty() ? "no answer in time" : refused_)); }) {
  const auto parsed = cluster::parse_member_address(address);
  if (!parsed) refused_ = "not the address of a node";
  if (std::max(request.path.size(), request.body.size()) > cluster::kMostControlText)
    refused_ = "the request is too long";
  timer_.arm(refused_.empty() ? limits.request : Duration());
  if (!refused_.empty()) return;
  dial_ = std::make_unique<PeerDial>(
      loop, *parsed, std::move(handshake),
      loop::ConnectOptions{.limit = limits.request, .user_timeout = limits.user_timeout},
      [this](Result<PeerDial::Answer> result) { dialled(std::move(result)); });
}

void PeerRequest::dialled(Result<PeerDial::Answer> result) {
  dial_.reset();
  if (!result) return finish(failure(result.error().message));
  if (result->welcome.status != cluster::WelcomeStatus::ok)
    return finish(failure(to_string(result->welcome.status)));
  channel_ = std::move(result->channel);
  channel_->set_owner(*this);
  channel_->send(request_);
}

void PeerRequest::on_frame(std::string_view frame) {
  auto response = cluster::decode_response(frame);
  if (!response) return finish(failure("its answer cannot be read"));
  finish(std::move(*response));
}

void PeerRequest::on_closed(std::string_view reason) {
  finish(failure(reason));
}

void PeerRequest::finish(Result<cluster::Response> result) {
  timer_.disarm();
  dial_.reset();
  channel_.reset();
  const Done done = std::move(done_);  // may destroy the object
  done(std::move(result));
}

Error PeerRequest::failure(std::string_view reason) const {
  return {fmt::format("request to {}: {}", address_, reason)};
}

IncomingRequest::IncomingRequest(loop::Loop& loop, std::unique_ptr<FrameChannel> channel,
                                 Duration limit, IncomingRequestOwner& owner)
    : owner_(owner),
      channel_(std::move(channel)),
      timer_(loop, [this] { owner_.on_request_ended(*this); }) {
  channel_->set_owner(*this);
  channel_->set_most_frame_bytes(kMostControlBytes);
  timer_.arm(limit);
}

void IncomingRequest::reply(const cluster::Response& response) {
  if (response.body.size() <= cluster::kMostControlText) return channel_->send(encode(response));
  channel_->send(
      encode(cluster::Response{.status = 500, .body = R"({"error":"the response is too long"})"}));
}

void IncomingRequest::on_frame(std::string_view frame) {
  const auto request = cluster::decode_request(frame);
  if (!request || std::exchange(requested_, true)) return owner_.on_request_ended(*this);
  owner_.on_request(*this, *request);
}

void IncomingRequest::on_closed(std::string_view) {
  owner_.on_request_ended(*this);
}

}  // namespace tubed::node
