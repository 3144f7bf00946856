#include "http/event_streams.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "api/block_json.h"
#include "http/api_answers.h"
#include "os/clock.h"

namespace tubed::http {

namespace {

constexpr Duration kInterval = std::chrono::seconds(1);
// A walk pauses while a stream has this much to read, for kPause at a time and kPauses times at
// most. Then the stream is left out, until it has read everything.
constexpr std::size_t kMuchToRead = 512 * 1024;
constexpr Duration kPause = std::chrono::milliseconds(10);
constexpr int kPauses = 100;

}  // namespace

class EventStreams::Stream final : public loop::HttpExchange {
 public:
  Stream(EventStreams& owner, FindRights find_rights)
      : owner_(owner), rights(std::move(find_rights)) {}
  ~Stream() override { owner_.streams_.remove(this); }

  std::optional<loop::HttpHead> head() override {
    return loop::HttpHead{.content_type = "text/event-stream", .headers = api_headers()};
  }
  Next next_part(std::size_t bytes, std::string& text) override {
    if (passed_ == pending_.size()) return ended ? Next::end : Next::wait;
    const std::size_t part = std::min(bytes, pending_.size() - passed_);
    text.append(pending_, passed_, part);
    passed_ += part;
    if (passed_ == pending_.size()) {
      pending_.clear();
      passed_ = 0;
    }
    return Next::part;
  }
  bool is_stream() const override { return true; }

  std::size_t unread() const { return pending_.size() - passed_; }
  void append(std::string_view event, std::string_view data) {
    fmt::format_to(std::back_inserter(pending_), "event: {}\ndata: {}\n\n", event, data);
    resume();
  }
  void end() {
    ended = true;
    resume();
  }

 private:
  EventStreams& owner_;

 public:
  FindRights rights;
  Rights now;            // in this second
  bool resets = true;    // its next walk sends all tubes
  bool in_walk = false;  // it takes part in this walk
  bool ended = false;

 private:
  std::string pending_;
  std::size_t passed_ = 0;  // bytes of pending_
};

EventStreams::EventStreams(loop::Loop& loop, commands::Service& service,
                           std::function<void()> begin_tick)
    : service_(service),
      begin_tick_(std::move(begin_tick)),
      second_(loop, [this] { begin_second(); }),
      slice_(loop, [this] { continue_walk(); }),
      pause_(loop, [this] { continue_walk(); }) {}

std::unique_ptr<loop::HttpExchange> EventStreams::open(FindRights rights) {
  auto stream = std::make_unique<Stream>(*this, std::move(rights));
  streams_.push_back(stream.get());
  if (streams_.size() == 1) second_.arm({});
  return stream;
}

void EventStreams::begin_second() {
  if (streams_.empty()) {
    slice_.disarm();
    pause_.disarm();
    walking_ = false;
    oldest_.clear();
    return feed_.clear();
  }
  second_.arm(kInterval);
  begin_tick_();
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(os::wall_time());
  std::string server;  // the end of the object is missing: append_server_event()
  api::JsonBlock json(server);
  json.member("time", static_cast<std::uint64_t>(now.count()));
  service_.stats_block().write(json);
  for (Stream* stream : streams_) {
    stream->now = stream->rights();
    if (!stream->now.may_inspect) stream->end();
    if (!stream->ended && stream->unread() < kMuchToRead) append_server_event(*stream, server);
  }
  if (!walking_) begin_walk();
}

void EventStreams::begin_walk() {
  for (Stream* stream : streams_) {
    // A slow reader gets no more before it has read the rest.
    stream->in_walk = !stream->ended && stream->unread() < kMuchToRead;
    if (!stream->in_walk) stream->resets = true;
  }
  walking_ = true;
  first_slice_ = true;
  pauses_ = 0;
  feed_.begin();
  continue_walk();
}

void EventStreams::append_server_event(Stream& stream, const std::string& server) const {
  const bool sees_all = !stream.now.role || stream.now.role->tubes.empty();
  stream.append("server", server + (sees_all ? oldest_ : std::string()) + '}');
}

bool EventStreams::must_wait() const {
  return std::ranges::any_of(streams_, [](const Stream* stream) {
    return stream->in_walk && stream->unread() >= kMuchToRead;
  });
}

void EventStreams::continue_walk() {
  if (must_wait()) {
    if (++pauses_ <= kPauses) return pause_.arm(kPause);
    for (Stream* stream : streams_) {
      if (!stream->in_walk || stream->unread() < kMuchToRead) continue;
      stream->in_walk = false;
      stream->resets = true;
    }
  }
  begin_tick_();
  const bool last = feed_.slice(service_.engine(), service_.now());
  SliceTexts texts;
  for (Stream* stream : streams_) {
    if (stream->in_walk) append_tubes_event(*stream, texts, last);
  }
  first_slice_ = false;
  if (!last) return slice_.arm();
  end_walk();
}

void EventStreams::append_rows(const Stream& stream, SliceTexts& texts, std::string& data) const {
  if (stream.now.role) return feed_.append_rows(stream.resets, &*stream.now.role, data);
  std::optional<std::string>& text = stream.resets ? texts.all : texts.changed;
  if (!text) feed_.append_rows(stream.resets, nullptr, text.emplace());
  data.append(*text);
}

void EventStreams::append_tubes_event(Stream& stream, SliceTexts& texts, bool last) const {
  const bool begins_again = stream.resets && first_slice_;
  std::string data = begins_again ? fmt::format("{{\"reset\":true,\"columns\":{},\"tubes\":[",
                                                api::TubeFeed::columns())
                                  : std::string("{\"tubes\":[");
  const std::size_t empty = data.size();
  const Role* role = stream.now.role ? &*stream.now.role : nullptr;
  append_rows(stream, texts, data);
  bool has_rows = data.size() > empty;
  data += "],\"gone\":[";
  const std::size_t no_gone = data.size();
  if (last && !stream.resets) feed_.append_gone(role, data);
  has_rows = has_rows || data.size() > no_gone;
  data += "]}";
  if (has_rows || begins_again) stream.append("tubes", data);
}

void EventStreams::end_walk() {
  walking_ = false;
  for (Stream* stream : streams_) {
    if (stream->in_walk) stream->resets = false;
    stream->in_walk = false;
  }
  const api::TubeFeed::Oldest& oldest = feed_.oldest();
  oldest_ = oldest.tube.empty() ? std::string()
                                : fmt::format(",\"oldest-ready\":{{\"tube\":\"{}\",\"age\":{}}}",
                                              oldest.tube, whole_seconds(oldest.age));
}

}  // namespace tubed::http
