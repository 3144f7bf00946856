// list-tubes in parts: one moment's list, whatever comes and goes while it is written.
#include "commands/tube_list_cache.h"

#include <string>

#include <doctest/doctest.h>

#include "tests/commands/talk.h"

using namespace tubed;
using namespace tubed::commands;

namespace {

// Tubes `first` to `last` with names of 200 bytes, each watched by `client`.
void make_tubes(Conversation& client, int first, int last) {
  for (int i = first; i <= last; ++i) {
    std::string name = std::to_string(i) + "-";
    name.append(200 - name.size(), 'n');
    Talk::exchange(client, "watch " + name + "\r\n");
  }
}

std::string list_in_one_piece(const engine::Engine& engine) {
  std::string text = "---\n";
  engine.tube_list().for_each(
      [&](std::string_view name) { text.append("- ").append(name).append("\n"); });
  return "OK " + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}

}  // namespace

TEST_CASE("the parts of a list are the list, however long it is") {
  Talk talk({.tubes = 3000});
  auto client = talk.connect();
  for (const int count : {254, 255, 256, 257, 2000}) {
    CAPTURE(count);
    make_tubes(*client, static_cast<int>(talk.service.engine().info().tubes), count);
    CHECK(Talk::exchange(*client, "list-tubes\r\n") == list_in_one_piece(talk.service.engine()));
  }
}

TEST_CASE("a list follows every tube that is created and removed") {
  Talk talk;
  auto stays = talk.connect();
  auto other = talk.connect();
  make_tubes(*stays, 1, 600);
  for (const char* command :
       {"use a\r\n", "use b\r\n", "watch c\r\n", "ignore c\r\n", "use d\r\n"}) {
    Talk::exchange(*other, command);
    CHECK(Talk::exchange(*stays, "list-tubes\r\n") == list_in_one_piece(talk.service.engine()));
  }
  // The last tube takes the place of one that goes.
  Talk::exchange(*stays, "ignore 1-" + std::string(198, 'n') + "\r\n");
  CHECK(Talk::exchange(*stays, "list-tubes\r\n") == list_in_one_piece(talk.service.engine()));
  other.reset();
  CHECK(Talk::exchange(*stays, "list-tubes\r\n") == list_in_one_piece(talk.service.engine()));
}

TEST_CASE("a list is written as its client reads it, and shows a single moment") {
  Talk talk;
  auto client = talk.connect();
  auto other = talk.connect();
  make_tubes(*other, 1, 5000);  // a megabyte
  const std::string before = list_in_one_piece(talk.service.engine());
  client->receive("list-tubes\r\nlist-tube-used\r\n");
  CHECK(client->replies().size() < 200'000);
  CHECK_FALSE(client->can_resume());
  CHECK_FALSE(client->wants_input());
  CHECK(talk.service.tube_list_cache().pinned_bytes() == 0);
  other.reset();
  auto third = talk.connect();
  Talk::exchange(*third, "list-tubes\r\n");
  // The rest of the old list, without the part that was written.
  CHECK(talk.service.tube_list_cache().pinned_bytes() > 800'000);
  CHECK(Talk::replies_of(*client) == before + "USING default\r\n");
  CHECK(talk.service.tube_list_cache().pinned_bytes() == 0);
}

TEST_CASE("clients share one list while no tube is created or removed") {
  Talk talk;
  auto owner = talk.connect();
  make_tubes(*owner, 1, 1000);
  TubeListCache list;
  const auto& engine = talk.service.engine();
  const auto first = list.snapshot(engine);
  CHECK(list.snapshot(engine) == first);
  Talk::exchange(*owner, "use new\r\n");
  const auto second = list.snapshot(engine);
  CHECK(second != first);
  // Only the last part differs.
  REQUIRE(first->parts.size() == second->parts.size());
  for (std::size_t i = 0; i + 1 < first->parts.size(); ++i) {
    CHECK(first->parts[i] == second->parts[i]);
  }
  CHECK(first->parts.back() != second->parts.back());
  CHECK(list.pinned_bytes() == first->parts.back()->text().size());
}

TEST_CASE("a long list that is out of date is made in slices") {
  Talk talk({.tubes = 20'000, .session_watches = 20'000});
  auto owner = talk.connect();
  make_tubes(*owner, 1, 10'000);
  TubeListCache list;
  const auto& engine = talk.service.engine();
  int slices = 1;
  while (!list.refresh(engine)) REQUIRE(++slices < 100);
  CHECK(slices == 2);
  CHECK(list.refresh(engine));
  Talk::exchange(*owner, "use new\r\n");
  CHECK(list.refresh(engine));
}

TEST_CASE("a client that closes in the middle of a list leaves nothing of it") {
  Talk talk;
  auto owner = talk.connect();
  auto client = talk.connect();
  make_tubes(*owner, 1, 5000);
  client->receive("list-tubes\r\n");
  Talk::exchange(*owner, "use new\r\n");
  client.reset();
  CHECK(Talk::exchange(*owner, "list-tubes\r\n") == list_in_one_piece(talk.service.engine()));
  CHECK(talk.service.tube_list_cache().pinned_bytes() == 0);
}
