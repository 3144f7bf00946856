// Reservations: the clients of HTTP that hold jobs between two requests, each by its token.
//
// The reservation of a job ends when a request that names the token deletes, releases or buries the
// job, when its TTR passes, or when the server closes the client. The client is closed when it
// holds no job. While a request uses the client, the reservation is busy and further requests await
// it.
//
// Each job of a batch has a token of its own, that of the batch with a point and its id: "cafe.7".
// The last reservations that have ended are remembered, so that a request for one learns that its
// job still exists.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

  // none: no such token, or one of another role. ended: the job `job` is not reserved by it.
  enum class Found : std::uint8_t { free, busy, ended, none };
  struct Taken {
    Found found = Found::none;
    ApiClient client = {};
    std::string token = {};  // of the client, for keep()
    JobId job = 0;           // 0: the token is that of several jobs
  };
  // Takes the client of the token for a request of this role (empty: no role), which gives it back
  // by keep(). O(log n + jobs of the reservation).
  Taken take(std::string_view token, std::string_view role);
  // Calls reservation_is_free() once the request that uses the client of `token`, a Taken::token,
  // has given it back or has closed it.
  void await(const std::string& token, ApiExchange& exchange);
  void stop_awaiting(ApiExchange& exchange);
  // Makes the jobs of the client ready, as if it had never reserved them.
  void take_back(const ApiClient& client);
  // The same for the client of the reservation, which ends, unless it has ended or a request uses
  // it. O(log n).
  void undo(const std::string& token);
  // Its client was closed while a request used it.
  void forget(const std::string& token);

 private:
  static constexpr std::size_t kMostEndedJobs = 10'000;

  // The part of a reservation that outlives its client.
  struct Holding {
    std::string role;         // its name; empty: no role
    std::vector<JobId> jobs;  // that it has held, of an ended one those that exist
    bool several = false;     // it has held more than one
  };
  // The peer of the channel while no request uses it.
  struct Reservation final : loop::MemoryPeer {
    Reservation(Reservations& its_owner, const ApiClient& its_client, Holding its_holding)
        : owner(its_owner), client(its_client), holding(std::move(its_holding)) {}
    void on_channel() override { client.channel->output().clear(); }
    void on_channel_closed() override { owner.closed(*this); }

    Reservations& owner;
    ApiClient client;
    Holding holding;
    bool busy = false;
  };
  using ByToken = std::map<std::string, std::unique_ptr<Reservation>, std::less<>>;

  void closed(const Reservation& reservation);
  void wake(const std::string& token);
  ByToken::iterator end(ByToken::iterator reservation);
  void close_ended();

  commands::Service& service_;
  std::function<void()> begin_tick_;
  ByToken by_token_;
  // Exchanges that await a busy reservation, in the order in which they came.
  std::multimap<std::string, ApiExchange*> awaiting_;
  std::map<std::string, Holding, std::less<>> ended_;
  std::deque<std::string> ended_tokens_;  // of ended_, the oldest first
  std::size_t ended_jobs_ = 0;
  loop::Timer sweep_;
};

}  // namespace tubed::http
