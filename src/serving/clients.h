// Clients: the connected clients by session id, and what they share: the read buffer, the bound of
// their unread replies, and their time limits.
//
// Invariant: a client is closed only at the end of a tick or by a timer, never while it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "commands/service.h"
#include "config/settings.h"
#include "os/log.h"
#include "serving/client.h"
#include "serving/client_timeouts.h"

namespace tubed::serving {

class Clients {
 public:
  // `log` and `service` outlive it.
  Clients(os::Log& log, commands::Service& service) : log_(log), service_(service) {}

  // limits.output_memory, limits.handshakes and the timeouts.
  void set_limits(const Settings& settings);

  // Adds a client for this connection, in a session of its own. `host` outlives it. If it has to
  // authenticate and more than limits.handshakes others have to, the oldest of these is closed.
  Client& add(std::unique_ptr<loop::Channel> channel, ClientHost& host,
              commands::Admission admission = {}, Arrival arrival = Arrival::connection);
  // Closes the connection; the jobs that the client has reserved become ready again. `reason` is
  // logged.
  void close(Client& client, std::string_view reason);
  // Closes a client that is done(). The connection of a client that was refused is passed to the
  // function of on_refused().
  void close_done(Client& client);
  void on_refused(std::function<void(std::unique_ptr<loop::Channel>)> refused) {
    on_refused_ = std::move(refused);
  }
  void close_all(std::string_view reason);
  // Closes the clients of other nodes. O(sessions).
  void close_forwarded(std::string_view reason);

  std::size_t count() const { return count_; }
  // The clients that came with a connection of their own.
  std::size_t connections() const { return count_ - requests_; }
  // For list-clients.
  commands::ClientDetails describe(SessionId session) const;
  // Returns the client of the session, or null if it is closed. Ids are reused, so this may be a
  // later client.
  Client* find(SessionId session) const {
    return session < clients_.size() ? clients_[session].get() : nullptr;
  }
  // For the queues of clients.
  Client* operator()(SessionId session) const { return find(session); }
  // Calls visit(client) for each client; `visit` closes no client. O(sessions).
  template <class Visit>
  void for_each(const Visit& visit) {
    for (const auto& client : clients_) {
      if (client != nullptr) visit(*client);
    }
  }

  // Calls Client::stop() for each client. No client is added afterwards. O(sessions).
  void stop_all();
  // True after stop_all().
  bool stopping() const { return stopping_; }
  // When the only clients left waited in a reserve when stop_all() was called, finishes them. A
  // worker whose wait ends reconnects at once, so these waits end last. True if it finished a
  // client. O(sessions) then, else O(1).
  bool finish_last();

  ClientTimeouts& timeouts() { return timeouts_; }
  // Closes the clients that have reached a time limit. If `paused`, no client is read from at the
  // moment: input may wait in the kernel, and no client counts as idle. O(due).
  void close_overdue(bool paused);

  // A client has `bytes` of unread replies now.
  void count_output(Client& client, std::size_t bytes) {
    output_bytes_ += bytes - std::exchange(client.counted_output, bytes);
  }
  // Unread replies of all clients, without lists of tubes.
  std::uint64_t output_bytes() const { return output_bytes_; }
  std::uint64_t output_memory() const { return output_memory_; }
  // Closes the slowest reader while the unread replies of all clients exceed limits.output_memory:
  // they keep memory, also of bodies of deleted jobs. True if it closed a client. O(1) within the
  // limit.
  bool shed_output() { return buffered_output() > output_memory_ && close_slowest(); }

 private:
  static constexpr std::size_t kReadBufferBytes = 256 * 1024;

  // The bytes of replies and lists that clients have not read. A body or a part of a list counts in
  // each reply that refers to it.
  std::uint64_t buffered_output() const {
    return output_bytes_ + service_.tube_list_cache().pinned_bytes();
  }
  bool close_slowest();
  void close_for_limit(Client& client, const char* setting, std::string_view reason);

  os::Log& log_;
  commands::Service& service_;
  std::vector<std::unique_ptr<Client>> clients_;  // by session
  std::size_t count_ = 0;
  std::size_t requests_ = 0;    // clients that came with a request
  std::size_t last_count_ = 0;  // clients that are closed last
  bool stopping_ = false;
  std::uint64_t output_memory_ = 0;
  std::size_t handshakes_ = 0;
  std::uint64_t output_bytes_ = 0;
  ClientTimeouts timeouts_;
  std::function<void(std::unique_ptr<loop::Channel>)> on_refused_;
  // Not filled with zeros: pages that are never read into take no memory.
  std::unique_ptr<char[]> read_buffer_ = std::make_unique_for_overwrite<char[]>(kReadBufferBytes);
};

}  // namespace tubed::serving
