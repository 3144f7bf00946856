// Clients that wait for one thing.
#include "server/client_queue.h"

#include <map>

#include "tests/server/test_client.h"

namespace tubed::server_test {

namespace {

using server::Client;
using server::ClientQueue;
using server::QueuedIn;

// Finds clients by session, as the server does.
struct Book {
  std::map<SessionId, Client*> clients;
  Client* operator()(SessionId session) const {
    const auto found = clients.find(session);
    return found == clients.end() ? nullptr : found->second;
  }
  void add(TestClient& peer) { clients[peer.client.session()] = &peer.client; }
};

struct TwoClients {
  TwoClients() {
    book.add(a);
    book.add(b);
  }

  TestServer server;
  TestClient a{server};
  TestClient b{server};
  Book book;
};

}  // namespace

TEST_CASE("clients are taken in the order in which they were added, each once") {
  TwoClients clients;
  auto& [server, a, b, book] = clients;
  ClientQueue queue(&QueuedIn::dirty);
  CHECK(queue.empty());
  queue.add(b.client);
  queue.add(a.client);
  queue.add(b.client);
  CHECK(queue.size() == 2);
  std::vector<Client*> taken;
  queue.take_all(book, [&](Client& client) { taken.push_back(&client); });
  CHECK(taken == std::vector<Client*>{&b.client, &a.client});
  CHECK(queue.empty());
  CHECK_FALSE(a.client.queued.dirty);
}

TEST_CASE("who is added while all are taken stays for the next time") {
  TestServer server;
  TestClient a(server);
  Book book;
  book.add(a);
  ClientQueue queue(&QueuedIn::dirty);
  queue.add(a.client);
  int visits = 0;
  queue.take_all(book, [&](Client& client) {
    ++visits;
    queue.add(client);
  });
  CHECK(visits == 1);
  CHECK(queue.size() == 1);
}

TEST_CASE("a client that was closed is not taken, nor one that has its session id now") {
  TwoClients clients;
  auto& [server, a, b, book] = clients;
  ClientQueue queue(&QueuedIn::held);
  queue.add(a.client);
  queue.add(b.client);
  book.clients[a.client.session()] = &b.client;  // reused; its flag is that of another entry
  b.client.queued.held = false;
  CHECK(queue.take_first(book) == nullptr);
  book.clients.clear();
  CHECK(queue.take_first(book) == nullptr);
  CHECK(queue.empty());
}

TEST_CASE("the first is taken in turn, however many pass through") {
  TwoClients clients;
  auto& [server, a, b, book] = clients;
  ClientQueue queue(&QueuedIn::deferred);
  queue.add(a.client);
  queue.add(b.client);
  for (int i = 0; i < 1000; ++i) {
    Client* const first = queue.take_first(book);
    REQUIRE(first == (i % 2 == 0 ? &a.client : &b.client));
    queue.add(*first);
    REQUIRE(queue.size() == 2);
  }
}

}  // namespace tubed::server_test
