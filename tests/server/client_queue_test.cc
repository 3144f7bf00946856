// ClientQueue, with clients that are closed while they are queued.
#include "serving/client_queue.h"

#include <map>

#include "tests/server/test_client.h"

namespace tubed::server_test {

namespace {

using serving::Client;
using serving::ClientQueue;
using serving::QueuedIn;

// Finds clients by session, as the server does.
struct Sessions {
  std::map<SessionId, Client*> clients;
  Client* operator()(SessionId session) const {
    const auto found = clients.find(session);
    return found == clients.end() ? nullptr : found->second;
  }
  void add(TestClient& peer) { clients[peer.client.session()] = &peer.client; }
};

struct TwoClients {
  TwoClients() {
    sessions.add(a);
    sessions.add(b);
  }

  TestServer server;
  TestClient a{server};
  TestClient b{server};
  Sessions sessions;
};

}  // namespace

TEST_CASE("clients are taken in the order in which they were added, each once") {
  TwoClients clients;
  auto& [server, a, b, sessions] = clients;
  ClientQueue queue(&QueuedIn::dirty);
  CHECK(queue.empty());
  queue.add(b.client);
  queue.add(a.client);
  queue.add(b.client);
  CHECK(queue.size() == 2);
  std::vector<Client*> taken;
  queue.take_all(sessions, [&](Client& client) { taken.push_back(&client); });
  CHECK(taken == std::vector<Client*>{&b.client, &a.client});
  CHECK(queue.empty());
  CHECK_FALSE(a.client.queued.dirty);
}

TEST_CASE("a client that is added while all are taken stays queued") {
  TestServer server;
  TestClient a(server);
  Sessions sessions;
  sessions.add(a);
  ClientQueue queue(&QueuedIn::dirty);
  queue.add(a.client);
  int visits = 0;
  queue.take_all(sessions, [&](Client& client) {
    ++visits;
    queue.add(client);
  });
  CHECK(visits == 1);
  CHECK(queue.size() == 1);
}

TEST_CASE("neither a closed client is taken, nor a client that reuses its session id") {
  TwoClients clients;
  auto& [server, a, b, sessions] = clients;
  ClientQueue queue(&QueuedIn::paused);
  queue.add(a.client);
  queue.add(b.client);
  sessions.clients[a.client.session()] = &b.client;  // reused; its flag belongs to another entry
  b.client.queued.paused = false;
  CHECK(queue.take_first(sessions) == nullptr);
  sessions.clients.clear();
  CHECK(queue.take_first(sessions) == nullptr);
  CHECK(queue.empty());
}

TEST_CASE("the first client is taken, however many pass through the queue") {
  TwoClients clients;
  auto& [server, a, b, sessions] = clients;
  ClientQueue queue(&QueuedIn::deferred);
  queue.add(a.client);
  queue.add(b.client);
  for (int i = 0; i < 1000; ++i) {
    Client* const first = queue.take_first(sessions);
    REQUIRE(first == (i % 2 == 0 ? &a.client : &b.client));
    queue.add(*first);
    REQUIRE(queue.size() == 2);
  }
}

}  // namespace tubed::server_test
