#include "api/tube_feed.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/api/api.h"

namespace tubed::api {
namespace {

// The names of the rows, with a space after each.
std::string tubes_in(std::string_view rows) {
  std::string names;
  for (std::size_t at = rows.find("[\""); at != std::string_view::npos; at = rows.find("[\"")) {
    rows.remove_prefix(at + 2);
    names.append(rows.substr(0, rows.find('"'))).append(" ");
  }
  return names;
}

class Feed : public Api {
 public:
  struct Walk {
    std::string rows;
    std::string gone;
    int slices = 0;
  };

  // A whole walk. `in_the_middle`: text that a client sends after the first slice.
  Walk walk(bool all = false, const Role* role = nullptr, std::string_view in_the_middle = {}) {
    Walk walk;
    feed.begin();
    for (bool last = false; !last; ++walk.slices) {
      if (walk.slices == 1) run(in_the_middle);
      last = feed.slice(service.engine(), service.now());
      feed.append_rows(all, role, walk.rows);
    }
    feed.append_gone(role, walk.gone);
    CHECK(is_json("[" + walk.rows + "]"));
    CHECK(is_json("[" + walk.gone + "]"));
    return walk;
  }

  TubeFeed feed;
};

std::string put(std::string_view tube) {
  return fmt::format("put-in-tube {} 2000 0 60 1\r\na\r\n", tube);
}

TEST_CASE("the first walk has all tubes, and the next those that have changed") {
  Feed feed;
  feed.run(put("a") + put("b"));
  CHECK(is_json(TubeFeed::columns()));
  CHECK(tubes_in(feed.walk().rows) == "default a b ");
  CHECK(feed.walk().rows.empty());
  feed.run(put("b"));
  CHECK(feed.walk().rows == "[\"b\",0,2,0,0,0,0,2,0,0,0,0,0,0,0,0]");
  CHECK(tubes_in(feed.walk(true).rows) == "default a b ");
  feed.run("pause-tube a 9\r\n");
  CHECK(feed.walk().rows == "[\"a\",0,1,0,0,0,0,1,0,0,0,0,0,0,9,9]");
  feed.advance(std::chrono::seconds(1));
  CHECK(tubes_in(feed.walk().rows) == "a ");  // the time that is left of its pause
  feed.feed.clear();
  CHECK(tubes_in(feed.walk().rows) == "default a b ");
}

TEST_CASE("a column for each number of a row") {
  Feed feed;
  const std::string columns = TubeFeed::columns();
  const std::string row = feed.walk().rows;
  CHECK(std::ranges::count(columns, ',') == std::ranges::count(row, ','));
}

TEST_CASE("a removed tube is listed once") {
  Feed feed;
  feed.run(put("a") + put("b"));
  feed.walk();
  feed.run("delete 1\r\n");
  const Feed::Walk after = feed.walk();
  CHECK(after.gone == "\"a\"");
  CHECK(after.rows.empty());  // although b has another place now
  CHECK(feed.walk().gone.empty());
  feed.run(put("a"));
  CHECK(tubes_in(feed.walk().rows) == "a ");
  feed.run("delete 3\r\n" + put("a"));
  const Feed::Walk again = feed.walk();
  CHECK(again.gone.empty());  // the name is there, with other numbers or the same
}

std::string many_tubes(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += put(fmt::format("t{}", i));
  return text;
}

TEST_CASE("a walk goes over the tubes in slices") {
  Feed feed;
  feed.run(many_tubes(1200));
  const Feed::Walk walk = feed.walk();
  CHECK(walk.slices == 5);
  CHECK(std::ranges::count(tubes_in(walk.rows), ' ') == 1201);
  CHECK(feed.walk().rows.empty());
}

TEST_CASE("a tube that gets the place of another during a walk is not gone") {
  Feed feed;
  feed.run(many_tubes(1200));
  feed.walk();
  // t0 is deleted after it was visited, and the last tube gets its place, which is not visited.
  const Feed::Walk walk = feed.walk(false, nullptr, "delete 1\r\n");
  CHECK(walk.gone.empty());
  const Feed::Walk next = feed.walk();
  CHECK(next.gone == "\"t0\"");
  // A reader that began with the walk that has missed it has not seen it.
  CHECK(tubes_in(next.rows) == "t1199 ");
  CHECK(feed.walk().rows.empty());
}

TEST_CASE("a role sees its tubes") {
  Feed feed;
  feed.run(put("web.a") + put("b"));
  const Role role = commands::role_of_families("web", "i", {"web.*"});
  const Feed::Walk first = feed.walk(true, &role);
  CHECK(tubes_in(first.rows) == "web.a ");
  feed.run("delete 1\r\ndelete 2\r\n");
  const Feed::Walk second = feed.walk(false, &role);
  CHECK(second.gone == "\"web.a\"");
  std::string all;
  feed.feed.append_gone(nullptr, all);
  CHECK(all.find("\"b\"") != std::string::npos);
}

TEST_CASE("the oldest ready job of all tubes") {
  Feed feed;
  feed.walk();
  CHECK(feed.feed.oldest().tube.empty());
  feed.run(put("a"));
  feed.advance(std::chrono::seconds(5));
  feed.run(put("b"));
  feed.advance(std::chrono::seconds(5));
  feed.walk();
  CHECK(feed.feed.oldest().tube == "a");
  CHECK(feed.feed.oldest().age >= std::chrono::seconds(5));
  feed.run("delete 1\r\ndelete 2\r\n");
  feed.walk();
  CHECK(feed.feed.oldest().tube.empty());
}

TEST_CASE("rows and names come after what is there") {
  Feed feed;
  feed.feed.begin();
  CHECK(feed.feed.slice(feed.service.engine(), feed.service.now()));
  std::string text = "{\"tubes\":[";
  feed.feed.append_rows(true, nullptr, text);
  feed.feed.append_rows(true, nullptr, text);
  CHECK(is_json(text + "]}"));
  CHECK(tubes_in(text) == "default default ");
}

}  // namespace
}  // namespace tubed::api
