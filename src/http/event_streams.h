// EventStreams: sends the counters of the server and of its tubes once a second to each client of
// HTTP that subscribes, as server-sent events. [HTML: Server-sent events]
//
// One walk over the tubes serves all streams. It visits a slice of them in each iteration of the
// loop, and pauses while a stream has much to read. A stream begins with all tubes (`reset`), and
// again after it has not read in time. Without streams nothing is sampled.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "api/tube_feed.h"
#include "commands/service.h"
#include "loop/http_exchange.h"
#include "loop/idle_call.h"
#include "loop/timer.h"

namespace tubed::http {

class EventStreams {
 public:
  // The role of a stream at this moment.
  struct Rights {
    bool may_inspect = false;
    std::optional<Role> role = std::nullopt;  // no value: it may see everything
  };
  using FindRights = std::function<Rights()>;

  // `begin_tick` is called before the queue is looked at. Everything outlives the object.
  EventStreams(loop::Loop& loop, commands::Service& service, std::function<void()> begin_tick);

  // Opens a stream, which ends when `rights` no longer allows it to inspect. The streams outlive
  // the object.
  std::unique_ptr<loop::HttpExchange> open(FindRights rights);

 private:
  class Stream;

  void begin_second();
  void begin_walk();
  void continue_walk();
  void end_walk();
  void append_server_event(Stream& stream, const std::string& server) const;
  // The text of the tubes of a slice, made once for the streams without limits on tubes.
  struct SliceTexts {
    std::optional<std::string> all;
    std::optional<std::string> changed;
  };
  void append_tubes_event(Stream& stream, SliceTexts& texts, bool last) const;
  void append_rows(const Stream& stream, SliceTexts& texts, std::string& data) const;
  bool must_wait() const;

  commands::Service& service_;
  std::function<void()> begin_tick_;
  std::list<Stream*> streams_;
  api::TubeFeed feed_;
  bool walking_ = false;
  bool first_slice_ = false;  // of the walk
  int pauses_ = 0;            // of the walk
  std::string oldest_;        // members for the event of the server, of the last walk
  loop::Timer second_;
  loop::IdleCall slice_;
  loop::Timer pause_;  // until the next slice
};

}  // namespace tubed::http
