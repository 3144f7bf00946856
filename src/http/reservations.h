// Reservations: the clients of HTTP that hold a job between two requests, each by its token.
//
// A reservation ends when its job is deleted, released or buried by a request that names the token,
// when the TTR of the job passes, or when the server closes the client. Its client then is closed.
// While a request uses the client, the reservation is busy.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "commands/service.h"
#include "http/api_exchange.h"
#include "loop/memory_channel.h"
#include "loop/timer.h"

namespace tubed::http {

class Reservations {
 public:
  static constexpr std::size_t kMost = 1000;

  // `begin_tick` is called before the queue is looked at. Everything outlives the object.
  Reservations(loop::Loop& loop, commands::Service& service, std::function<void()> begin_tick);

  bool is_full() const { return by_token_.size() >= kMost; }
  // 128 random bits.
  static std::string make_token();

  // Keeps the client for the token while it holds a job; closes it if it holds no job.
  void keep(const std::string& token, const ApiClient& client);

  // none: the token does not exist, or its TTR has passed.
  enum class Found : std::uint8_t { free, busy, none };
  struct Taken {
    Found found = Found::none;
    ApiClient client = {};
    JobId job = 0;
  };
  // Takes the client of the token for a request, which gives it back by keep(). O(log n).
  Taken take(std::string_view token);
  // Makes the jobs of the client ready, as if it had never reserved them.
  void take_back(const ApiClient& client);
  // The same for the client of the reservation, which ends, unless it has ended or a request uses
  // it. O(log n).
  void undo(const std::string& token);
  // Its client was closed while a request used it.
  void forget(const std::string& token);
  // True if the reservation exists and belongs to this role; null: no role. O(log n).
  bool is_of(std::string_view token, const commands::ActiveRole* role) const;

 private:
  // The peer of the channel while no request uses it.
  struct Reservation final : loop::MemoryPeer {
    Reservation(Reservations& its_owner, const ApiClient& its_client, JobId its_job)
        : owner(its_owner), client(its_client), job(its_job) {}
    void on_channel() override { client.channel->output().clear(); }
    void on_channel_closed() override { owner.closed(*this); }

    Reservations& owner;
    ApiClient client;
    JobId job;
    bool busy = false;
  };

  void closed(const Reservation& reservation);
  void close_ended();

  commands::Service& service_;
  std::function<void()> begin_tick_;
  std::map<std::string, std::unique_ptr<Reservation>, std::less<>> by_token_;
  loop::Timer sweep_;
};

}  // namespace tubed::http
