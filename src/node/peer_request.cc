#include "node/peer_request.h"

#include <utility>

#include <fmt/format.h>

#include "cluster/member.h"
#include "node/peer_link.h"

namespace tubed::node {

PeerRequest::PeerRequest(loop::Loop& loop, std::string_view address, CallerHandshake handshake,
                         const cluster::Request& request, const PeerLimits& limits, Done done)
    : loop_(loop),
      address_(address),
      handshake_(std::move(handshake)),
      request_(encode(request)),
      done_(std::move(done)),
      timer_(loop, [this] { finish(failure(refused_.empty() ? "no answer in time" : refused_)); }) {
  const auto parsed = cluster::parse_member_address(address);
  if (!parsed) refused_ = "not the address of a node";
  if (std::max(request.path.size(), request.body.size()) > cluster::kMostControlText)
    refused_ = "the request is too long";
  timer_.arm(refused_.empty() ? limits.request : Duration());
  if (!refused_.empty()) return;
  connector_ = std::make_unique<loop::Connector>(
      loop, parsed->host, parsed->port,
      loop::ConnectOptions{.limit = limits.request, .user_timeout = limits.user_timeout},
      [this](Result<std::unique_ptr<loop::Channel>> result) { on_connected(std::move(result)); });
}

void PeerRequest::on_connected(Result<std::unique_ptr<loop::Channel>> result) {
  connector_.reset();
  if (!result) return finish(std::move(result).error());
  channel_ = std::make_unique<FrameChannel>(loop_, std::move(*result), *this, kMostControlBytes);
  channel_->send(handshake_.hello());
}

void PeerRequest::on_frame(std::string_view frame) {
  if (welcomed_) {
    auto response = cluster::decode_response(frame);
    if (!response) return finish(failure("its answer cannot be read"));
    return finish(std::move(*response));
  }
  auto step = handshake_.take(frame);
  if (!step) return finish(failure(step.error().message));
  if (!step->reply.empty()) channel_->send(std::move(step->reply));
  if (!step->welcome) return;
  if (step->welcome->status != cluster::WelcomeStatus::ok)
    return finish(failure(to_string(step->welcome->status)));
  welcomed_ = true;
  channel_->send(request_);
}

void PeerRequest::on_closed(std::string_view reason) {
  finish(failure(welcomed_ ? reason : handshake_.explain(reason)));
}

void PeerRequest::finish(Result<cluster::Response> result) {
  timer_.disarm();
  connector_.reset();
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
