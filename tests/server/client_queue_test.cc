// Clients that wait for one thing.
#include "server/client_queue.h"

#include <map>

#include "tests/server/party.h"

namespace tubed::server_test {

namespace {

using server::Client;
using server::ClientQueue;

// Finds clients by session, as the server does.
struct Book {
  std::map<SessionId, Client*> clients;
  Client* operator()(SessionId session) const {
    const auto found = clients.find(session);
    return found == clients.end() ? nullptr : found->second;
  }
  void add(Party& party) { clients[party.client.session()] = &party.client; }
};

struct TwoParties {
  TwoParties() {
    book.add(a);
    book.add(b);
  }

  House house;
  Party a{house};
  Party b{house};
  Book book;
};

}  // namespace

TEST_CASE("clients are taken in the order in which they were added, each once") {
  TwoParties parties;
  auto& [house, a, b, book] = parties;
  ClientQueue queue(&Client::dirty);
  CHECK(queue.empty());
  queue.add(b.client);
  queue.add(a.client);
  queue.add(b.client);
  CHECK(queue.size() == 2);
  std::vector<Client*> taken;
  queue.take_all(book, [&](Client& client) { taken.push_back(&client); });
  CHECK(taken == std::vector<Client*>{&b.client, &a.client});
  CHECK(queue.empty());
  CHECK_FALSE(a.client.dirty);
}

TEST_CASE("who is added while all are taken stays for the next time") {
  House house;
  Party a(house);
  Book book;
  book.add(a);
  ClientQueue queue(&Client::dirty);
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
  TwoParties parties;
  auto& [house, a, b, book] = parties;
  ClientQueue queue(&Client::held);
  queue.add(a.client);
  queue.add(b.client);
  book.clients[a.client.session()] = &b.client;  // reused; its flag is that of another entry
  b.client.held = false;
  CHECK(queue.take_first(book) == nullptr);
  book.clients.clear();
  CHECK(queue.take_first(book) == nullptr);
  CHECK(queue.empty());
}

TEST_CASE("the first is taken in turn, however many pass through") {
  TwoParties parties;
  auto& [house, a, b, book] = parties;
  ClientQueue queue(&Client::deferred);
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
