// The frames of tubectl top at many sizes, and the effects of keys; times and snapshots are made
// up.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/share.h"
#include "tubectl/top/controller.h"
#include "tubectl/top/frame.h"
#include "tubectl/top/model.h"
#include "tubectl/top/text.h"
#include "tubectl/top/view.h"

using tubed::tubectl::Snapshot;
using tubed::tubectl::Style;
namespace client = tubed::client;
using tubed::tubectl::TubeCounts;
using namespace tubed::tubectl::top;
using namespace std::chrono_literals;

namespace {

const Glyphs kAscii(false);

std::string server_block(std::uint64_t puts, double cpu_seconds) {
  return fmt::format(
      "---\ncurrent-jobs-ready: 12345\ncurrent-jobs-buried: 2\ntotal-jobs: {}\ncmd-delete: 50\n"
      "cmd-reserve: 30\ncmd-reserve-with-timeout: 40\njob-timeouts: 0\ncurrent-connections: 7\n"
      "current-workers: 3\ncurrent-waiting: 1\nversion: \"2.0.0\"\nuptime: 90061\n"
      "draining: false\nrusage-utime: {}\nrusage-stime: 0.5\njob-memory: 512\n"
      "max-job-memory: 1024\njournal-bytes: 95\njournal-max-bytes: 100\n",
      puts, cpu_seconds);
}

TubeCounts tube(std::string name, std::uint64_t ready, std::uint64_t buried = 0) {
  TubeCounts counts;
  counts.name = std::move(name);
  counts.ready = ready;
  counts.buried = buried;
  return counts;
}

// A snapshot taken at `at` milliseconds.
Snapshot look(int at, std::vector<TubeCounts> tubes, std::uint64_t puts = 100, double cpu = 1) {
  Snapshot snapshot;
  snapshot.taken = std::chrono::steady_clock::time_point() + std::chrono::milliseconds(at);
  snapshot.server = client::StatsBlock(server_block(puts, cpu));
  snapshot.tubes = std::move(tubes);
  std::ranges::sort(snapshot.tubes, {}, &TubeCounts::name);
  return snapshot;
}

std::vector<std::string> shown(Model& model, View& view, Size size, const Glyphs& glyphs = kAscii) {
  const Frame frame = compose(model, view, glyphs, size);
  CHECK(frame.lines.size() <= size.rows);
  std::vector<std::string> lines;
  for (const Line& line : frame.lines) {
    CHECK(line.width() <= size.columns);
    CHECK(line.width() == width_of(line.text()));
    lines.push_back(line.text());
  }
  return lines;
}

// The index of the first line that contains `text`, or the number of lines if none does.
std::size_t line_with(const std::vector<std::string>& lines, const std::string& text) {
  const auto found = std::ranges::find_if(
      lines, [&](const std::string& line) { return line.find(text) != line.npos; });
  return static_cast<std::size_t>(found - lines.begin());
}

bool has(const std::vector<std::string>& lines, const std::string& text) {
  return line_with(lines, text) < lines.size();
}

void press(View& view, Model& model, const std::string& characters) {
  for (const char character : characters) {
    CHECK_FALSE(view.press({Key::Kind::character, character}, model));
  }
}

void press(View& view, Model& model, Key::Kind kind) {
  CHECK_FALSE(view.press({kind}, model));
}

Model with_tubes(std::vector<TubeCounts> tubes) {
  Model model("127.0.0.1:11300");
  model.update(look(0, std::move(tubes)));
  return model;
}

using Time = Controller::Moment;

// Queries every 100 ms.
Controller controller_with(std::vector<TubeCounts> tubes, Time at) {
  return {Model("127.0.0.1:11300"), 100ms, look(0, std::move(tubes)), at};
}

// Types K, a number and Enter; returns the resulting request.
std::optional<Request> kick(Controller& controller, const std::string& number, Time at) {
  for (const char key : "K" + number)
    CHECK_FALSE(controller.press({Key::Kind::character, key}, at));
  return controller.press({Key::Kind::enter}, at);
}

RequestResult answer(std::string message) {
  return {look(1000, {tube("mail", 5, 9)}), std::move(message), std::nullopt};
}

}  // namespace

TEST_CASE("numbers are short") {
  CHECK(shortened(0) == "0");
  CHECK(shortened(9999) == "9999");
  CHECK(shortened(12'345) == "12.3k");
  CHECK(shortened(99'960) == "100k");
  CHECK(shortened(999'499) == "999k");
  CHECK(shortened(999'950) == "1.0M");
  CHECK(shortened(4'500'000) == "4.5M");
  CHECK(shortened(18'446'744'073'709'551'615U) == "18.4E");
  CHECK(shortened_rate(0) == "0");
  CHECK(shortened_rate(0.01) == "<0.1");
  CHECK(shortened_rate(0.5) == "0.5");
  CHECK(shortened_rate(99.96) == "100");
  CHECK(shortened_rate(9999.7) == "10.0k");
  CHECK(bytes_in_words(1023) == "1023 B");
  CHECK(bytes_in_words(1536) == "1.5 KiB");
  CHECK(bytes_in_words(1'048'575) == "1.0 MiB");
  CHECK(seconds_in_words(59) == "00:00:59");
  CHECK(seconds_in_words(90'061) == "1 d 01:01");
}

TEST_CASE("text of others cannot move the cursor, and a sign marks where it is cut") {
  CHECK(clean("a\x1b[2J\nb\tc", 20) == "a?[2J?b c");
  CHECK(clean("\xff\xc3", 20) == "??");
  CHECK(clean("abcdef", 3) == "abc");
  CHECK(kAscii.shorten("abcdef", 6) == "abcdef");
  CHECK(kAscii.shorten("abcdef", 5) == "abcd~");
  CHECK(Glyphs(true).shorten("abcdef", 5) == "abcd…");
}

TEST_CASE("graphs") {
  const std::vector<float> values{9, 0, 1, 4, 8};
  CHECK(kAscii.sparkline(values, 4) == "_.=#");
  CHECK(Glyphs(true).sparkline(values, 4) == "▁▂▅█");
  CHECK(kAscii.sparkline(values, 7) == "  #_.-*");
  CHECK(kAscii.sparkline({}, 3) == "   ");
  const auto bar = kAscii.bar(0.5, 4);
  CHECK(bar.filled == "##");
  CHECK(bar.rest == "..");
  CHECK(kAscii.bar(7, 4).rest.empty());
}

TEST_CASE("80 x 24 shows the whole head, and the table without the less important columns") {
  Model model = with_tubes({tube("mail", 7), tube("default", 0, 3)});
  model.update(look(2000, {tube("mail", 9), tube("default", 0, 3)}, 300, 2));
  View view;
  const auto lines = shown(model, view, {80, 24});
  CHECK(lines.size() == 24);
  CHECK(lines[0] == "127.0.0.1:11300  serving  version 2.0.0  up 1 d 01:01");
  CHECK(lines[1] == "connections  7  workers 3  waiting 1  tubes 2  CPU 50 %  producers 0");
  CHECK(lines[2].starts_with("jobs         ready 12.3k  reserved 0  delayed 0  buried 2"));
  CHECK(lines[3].starts_with("puts/s        100"));
  CHECK(lines[4].starts_with("deletes/s       0"));
  CHECK(lines[5].starts_with("memory ########........ 512 B of 1.0 KiB  journal ######"));
  CHECK(lines[6] ==
        "  TUBE            vREADY RESERVED DELAYED BURIED WAITING PAUSED PUTS/S DELETES/S");
  CHECK(lines[7].starts_with("> mail                 9        0       0      0"));
  CHECK(lines[8].starts_with("  default              0        0       0      3"));
  CHECK(lines[23].starts_with("q quit  ? help"));
}

TEST_CASE("200 x 50 shows all columns and graphs, 40 x 8 the most important") {
  Model model = with_tubes({tube("mail", 7)});
  View view;
  const auto wide = shown(model, view, {200, 50});
  CHECK(wide.size() == 50);
  for (const char* const title :
       {"URGENT", "WATCHING", "PAUSED", "DELETES/S", "READY, OVER TIME"}) {
    CHECK(has(wide, title));
  }
  const auto small = shown(model, view, {40, 8});
  CHECK(small.size() == 8);
  CHECK(small[0].starts_with("127.0.0.1:11300  serving"));
  CHECK(small[1].starts_with("jobs"));
  CHECK(small[2].ends_with("READY RESERVED BURIED"));
  CHECK(small[3].starts_with("> mail"));
  CHECK(shown(model, view, {39, 8}).size() == 1);
  CHECK(has(shown(model, view, {80, 7}), "top wants 40 x 8"));
}

TEST_CASE("no size, page or question makes a frame larger than the window" *
          doctest::test_suite("slow")) {
  std::vector<TubeCounts> tubes{tube(std::string(200, 'n'), ~0ULL, ~0ULL)};
  tubes[0].pause_seconds_left = ~0ULL;
  for (int index = 0; index < 100; ++index) tubes.push_back(tube(fmt::format("t{}", index), 5));
  const client::StatsBlock in_a_cluster(server_block(~0ULL, 1) + "cluster-name: \"" +
                                        std::string(32, 'a') +
                                        "\"\ncluster-leader: \"b\"\ncluster-role: follower\n"
                                        "cluster-nodes: a:leader:1:1 b:voter:1:5000\n");
  for (const bool blocks : {false, true}) {
    for (const char* const keys : {"", "\n", "?", "/x", "p123", "K"}) {
      Model model("unix:/" + std::string(300, 'a'));
      model.update(look(0, tubes));
      model.update(look(100, tubes, ~0ULL));
      if (*keys == '?' || *keys == 'K') {
        Snapshot snapshot = look(200, tubes);
        snapshot.server = in_a_cluster;
        model.update(snapshot);
      }
      View view;
      for (const char key : std::string(keys)) {
        view.press(key == '\n' ? Key{Key::Kind::enter} : Key{Key::Kind::character, key}, model);
      }
      for (std::size_t columns = 0; columns < 210; columns += 7 * tubed::kOneIn) {
        for (std::size_t rows = 0; rows < 60; rows += 3) {
          shown(model, view, {columns, rows}, Glyphs(blocks));
        }
      }
    }
  }
}

TEST_CASE("a server without tubes, and a filter that matches no tube") {
  Model model = with_tubes({});
  View view;
  CHECK(has(shown(model, view, {80, 24}), "no tubes"));
  press(view, model, Key::Kind::enter);
  CHECK(view.page() == View::Page::tubes);
  press(view, model, "pK");
  CHECK(view.question() == View::Question::none);
  model.update(look(1000, {tube("mail", 1)}));
  model.tubes.filter("x");
  CHECK(has(shown(model, view, {80, 24}), "no tube has \"x\" in its name"));
}

TEST_CASE("sorting, by key and reversed") {
  Model model = with_tubes({tube("a", 1, 9), tube("b", 3), tube("c", 2)});
  View view;
  const auto order = [&] {
    std::string names;
    for (std::size_t index = 0; index < model.tubes.size(); ++index) {
      names += model.tubes[index].counts.name;
    }
    return names;
  };
  CHECK(order() == "bca");
  press(view, model, "r");
  CHECK(order() == "acb");
  press(view, model, Key::Kind::left);
  CHECK(model.tubes.sorted_by() == SortKey::name);
  CHECK(order() == "abc");
  press(view, model, "r");
  CHECK(order() == "cba");
  press(view, model, ">ssss");
  CHECK(model.tubes.sorted_by() == SortKey::buried);
  CHECK(order() == "abc");
  CHECK(has(shown(model, view, {80, 24}), "sorted by buried"));
  press(view, model, "<<<<<<");
  CHECK(model.tubes.sorted_by() == SortKey::deletes);
  for (std::size_t key = 0; key < kSortKeys; ++key) {
    const auto one = static_cast<SortKey>(key);
    CHECK(sort_key_of(name_of(one)) == one);
  }
  CHECK_FALSE(sort_key_of("size"));
}

TEST_CASE("the column of held jobs is shown if a tube has held jobs") {
  TubeCounts held = tube("held", 1);
  held.delayed = 5;
  held.held = 4;
  Model model = with_tubes({tube("a", 1, 9), tube("b", 3)});
  View view;
  CHECK_FALSE(has(shown(model, view, {200, 24}), "HELD"));
  press(view, model, "sss");
  CHECK(model.tubes.sorted_by() == SortKey::delayed);
  press(view, model, "s");
  CHECK(model.tubes.sorted_by() == SortKey::buried);
  press(view, model, "<");
  CHECK(model.tubes.sorted_by() == SortKey::delayed);

  model.update(look(2000, {tube("a", 1, 9), held}));
  CHECK(has(shown(model, view, {80, 24}), "DELAYED  HELD"));
  CHECK(has(shown(model, view, {80, 24}), " 5     4 "));
  model.tubes.filter("a");  // any tube counts, not only the shown tubes
  CHECK(has(shown(model, view, {80, 24}), "HELD"));
  CHECK_FALSE(has(shown(model, view, {60, 24}), "HELD"));
  model.tubes.filter("");
  press(view, model, "s");
  CHECK(model.tubes.sorted_by() == SortKey::held);
  CHECK(model.tubes[0].counts.name == "held");
  CHECK(has(shown(model, view, {60, 24}), "HELD"));
  press(view, model, "s");
  CHECK(model.tubes.sorted_by() == SortKey::buried);
}

TEST_CASE("the sorted column is always shown") {
  Model model = with_tubes({tube("a", 1, 9), tube("b", 3)});
  View view;
  for (const Size size : {Size{80, 24}, Size{40, 8}}) {
    for (std::size_t key = 1; key < kSortKeys; ++key) {
      CAPTURE(key);
      model.tubes.sort_by(static_cast<SortKey>(key));
      CHECK(std::ranges::any_of(shown(model, view, size), [](const std::string& line) {
        const auto title = line.find(" TUBE ");
        return title != line.npos && line.find('v', title) != line.npos;
      }));
    }
  }
}

TEST_CASE("the titles do not look like the selected row below them") {
  Model model = with_tubes({tube("mail", 7)});
  View view;
  const Frame frame = compose(model, view, kAscii, {80, 24});
  const auto is_bar = [](const Line& line) { return line.spans().front().reversed; };
  CHECK(frame.lines[6].text().starts_with("  TUBE"));
  CHECK_FALSE(is_bar(frame.lines[6]));
  CHECK(is_bar(frame.lines[7]));
}

TEST_CASE("the selection stays with its tube, and scrolls the table") {
  std::vector<TubeCounts> tubes;
  for (std::uint64_t index = 0; index < 10'000; ++index) {
    tubes.push_back(tube(fmt::format("t{:05}", index), index));
  }
  Model model = with_tubes(tubes);
  View view;
  CHECK(has(shown(model, view, {80, 24}), "> t09999"));
  press(view, model, "jj");
  CHECK(has(shown(model, view, {80, 24}), "> t09997"));
  tubes[0].ready = 20'000;
  model.update(look(1000, tubes));
  CHECK(model.tubes.selected()->counts.name == "t09997");
  press(view, model, Key::Kind::end);
  auto lines = shown(model, view, {80, 24});
  CHECK(lines[22].starts_with("> t00001"));
  press(view, model, Key::Kind::page_up);
  CHECK(has(shown(model, view, {80, 24}), "> t00017"));
  press(view, model, Key::Kind::home);
  lines = shown(model, view, {80, 24});
  CHECK(lines[7].starts_with("> t00000"));
  press(view, model, "k");
  CHECK(model.tubes.selected_index() == 0);
  // With fewer tubes the table still fills its room.
  press(view, model, Key::Kind::end);
  tubes.resize(30);
  model.update(look(2000, tubes));
  lines = shown(model, view, {80, 24});
  CHECK(lines[22].starts_with("> t00001"));
}

TEST_CASE("a filter takes effect while it is typed") {
  Model model = with_tubes({tube("mail", 1), tube("maps", 2), tube("urgent-mail", 3)});
  View view;
  press(view, model, "/mai");
  CHECK(model.tubes.size() == 2);
  auto frame = compose(model, view, kAscii, {80, 24});
  CHECK(frame.lines.back().text() == "only tubes with: mai");
  CHECK(frame.cursor == 20U);
  press(view, model, Key::Kind::backspace);
  CHECK(model.tubes.size() == 3);
  press(view, model, "p");
  press(view, model, Key::Kind::enter);
  CHECK(model.tubes.filter() == "map");
  CHECK(has(shown(model, view, {80, 24}), "tubes 1 of 3"));
  press(view, model, Key::Kind::escape);
  CHECK(model.tubes.size() == 3);
  press(view, model, "/x");
  press(view, model, Key::Kind::escape);
  CHECK(model.tubes.size() == 3);
}

TEST_CASE("pause and kick ask for a number before they order") {
  Model model = with_tubes({tube("mail", 5, 4), tube("slow", 1)});
  View view;
  press(view, model, "p");
  CHECK(has(shown(model, view, {80, 24}), "pause mail, seconds (0 ends it): "));
  press(view, model, "6a0");
  CHECK_FALSE(view.take_order());
  press(view, model, Key::Kind::enter);
  auto order = view.take_order();
  REQUIRE(order);
  CHECK(order->kind == Order::Kind::pause);
  CHECK(order->tube == "mail");
  CHECK(order->number == 60);
  CHECK_FALSE(view.take_order());

  press(view, model, "p");
  press(view, model, Key::Kind::enter);
  CHECK_FALSE(view.take_order());
  press(view, model, "p5");
  press(view, model, Key::Kind::escape);
  CHECK_FALSE(view.take_order());
  press(view, model, "p4294967296");
  press(view, model, Key::Kind::enter);
  CHECK_FALSE(view.take_order());
  CHECK(view.message() == "4294967296 is more than a server takes");

  press(view, model, "K");
  CHECK(has(shown(model, view, {80, 24}), "kick buried jobs of mail, how many (all): "));
  press(view, model, Key::Kind::enter);
  order = view.take_order();
  REQUIRE(order);
  CHECK(order->kind == Order::Kind::kick);
  CHECK(order->number == 4'294'967'295U);
  press(view, model, "K2");
  press(view, model, Key::Kind::enter);
  CHECK(view.take_order()->number == 2);
}

TEST_CASE("each order is taken with its key, however many keys are read at once") {
  Time at;
  Controller controller = controller_with({tube("mail", 5, 9)}, at);
  // No request is in progress: the first order is sent immediately, the second waits, the third is
  // refused.
  auto request = kick(controller, "1", at);
  REQUIRE(request);
  REQUIRE(request->order);
  CHECK(request->order->number == 1);
  CHECK_FALSE(kick(controller, "2", at));
  CHECK(controller.view().message().empty());
  CHECK_FALSE(kick(controller, "3", at));
  CHECK(controller.view().message() == "not done: wait until the server has answered");
  CHECK_FALSE(controller.tick(at));
  CHECK(controller.view().message() == "not done: wait until the server has answered");

  controller.take_result(answer("kicked 1 job of mail"));
  CHECK(controller.view().message() == "kicked 1 job of mail");
  request = controller.tick(at);
  REQUIRE(request);
  REQUIRE(request->order);
  CHECK(request->order->number == 2);
  controller.take_result(answer("kicked 2 jobs of mail"));
  CHECK_FALSE(controller.tick(at));
  at += 100ms;
  request = controller.tick(at);
  REQUIRE(request);
  CHECK_FALSE(request->order);
}

TEST_CASE("an order is dropped when the server is silent, and refused until it answers") {
  Time at;
  Controller controller = controller_with({tube("mail", 5, 9)}, at);
  at += 100ms;
  REQUIRE(controller.tick(at));
  CHECK(controller.next(at) == at + 1s);
  at += 2999ms;
  CHECK_FALSE(kick(controller, "1", at));
  CHECK_FALSE(controller.model().trouble());
  at += 1ms;
  CHECK_FALSE(controller.tick(at));
  CHECK(controller.model().trouble() == "the server has not answered for 3 s");
  CHECK(controller.view().message() == "not done: no server is connected");
  CHECK_FALSE(kick(controller, "2", at));
  CHECK(controller.view().message() == "no server is connected");

  controller.take_result(answer(""));
  CHECK_FALSE(controller.model().trouble());
  REQUIRE(controller.tick(at));
  controller.take_result(answer(""));
  const auto request = kick(controller, "3", at);
  REQUIRE(request);
  REQUIRE(request->order);
  CHECK(request->order->number == 3);
  // The connection is lost meanwhile.
  CHECK_FALSE(kick(controller, "4", at));
  controller.take_result(tubed::Error{"connection reset"});
  CHECK(controller.model().trouble() == "connection reset; trying again");
  CHECK(controller.view().message() == "not done: no server is connected");
  CHECK(controller.next(at) == at + 1s);
  CHECK_FALSE(controller.tick(at + 999ms));
  const auto again = controller.tick(at + 1s);
  REQUIRE(again);
  CHECK_FALSE(again->order);
}

TEST_CASE("after a lost connection it is unknown whether the order was carried out") {
  Time at;
  Controller controller = controller_with({tube("mail", 5, 9)}, at);
  REQUIRE(kick(controller, "1", at));
  controller.take_result(tubed::Error{"connection reset"});
  CHECK(controller.view().message() ==
        "the connection was lost: it is unknown whether that was done");
}

TEST_CASE("a message is shown for five seconds, or until the next key") {
  Time at;
  Controller controller = controller_with({tube("mail", 5)}, at);
  CHECK_FALSE(controller.press({Key::Kind::character, 'x'}, at));
  CHECK(controller.view().message() == "h lists the keys");
  at += 4999ms;
  REQUIRE(controller.tick(at));
  CHECK(controller.view().message() == "h lists the keys");
  at += 1ms;
  CHECK_FALSE(controller.tick(at));
  CHECK(controller.view().message().empty());
  CHECK_FALSE(controller.press({Key::Kind::character, 'x'}, at));
  CHECK_FALSE(controller.press({Key::Kind::down}, at));
  CHECK(controller.view().message().empty());
}

TEST_CASE("a frozen view sends requests only for orders and details") {
  Time at;
  Controller controller = controller_with({tube("mail", 5, 9)}, at);
  CHECK_FALSE(controller.press({Key::Kind::character, ' '}, at));
  at += 1min;
  CHECK_FALSE(controller.tick(at));
  CHECK(controller.next(at) == at + 1h);
  const auto ordered = kick(controller, "1", at);
  REQUIRE(ordered);
  CHECK(ordered->order);
  controller.take_result(answer("kicked 1 job of mail"));
  const auto details = controller.press({Key::Kind::enter}, at);
  REQUIRE(details);
  CHECK(details->details_of == "mail");
  CHECK_FALSE(controller.ends());
  CHECK_FALSE(controller.press({Key::Kind::character, 'q'}, at));
  CHECK(controller.ends());
}

TEST_CASE("the details of a tube, the help, and back") {
  Model model = with_tubes({tube("mail", 5)});
  View view;
  press(view, model, Key::Kind::enter);
  CHECK(has(shown(model, view, {80, 24}), "asking the server"));
  Details details;
  details.tube = "mail";
  model.details = details;
  CHECK(has(shown(model, view, {80, 24}), "there is no such tube now"));
  model.details->there = true;
  model.details->stats = client::StatsBlock("---\nname: mail\ncurrent-jobs-ready: 5\n");
  CHECK(has(shown(model, view, {80, 24}), "no job is ready, delayed or buried"));
  model.details->jobs.push_back(
      {"ready", 17, 12, "hello\nworld!", client::StatsBlock("---\nid: 17\npri: 3\nage: 9\n")});
  auto lines = shown(model, view, {80, 24});
  CHECK(has(lines, "  current-jobs-ready    5"));
  CHECK(has(lines, "next ready job  17  priority 3  age 9"));
  CHECK(has(lines, "  world!"));
  CHECK(has(lines, "12 bytes in all"));
  press(view, model, "K");
  CHECK(view.asked_tube() == "mail");
  press(view, model, Key::Kind::escape);
  press(view, model, "?");
  CHECK(has(shown(model, view, {80, 24}), "show only tubes with a text"));
  press(view, model, Key::Kind::end);
  CHECK(has(shown(model, view, {40, 10}), "graphs"));
  CHECK_FALSE(has(shown(model, view, {40, 10}), "KEYS"));
  press(view, model, "?");
  CHECK(view.page() == View::Page::details);
  press(view, model, Key::Kind::escape);
  CHECK(view.page() == View::Page::tubes);
  CHECK(view.press({Key::Kind::character, 'q'}, model));
}

TEST_CASE("a paused tube, and a draining, a frozen and a lost server") {
  Model model("127.0.0.1:11300");
  Snapshot snapshot = look(0, {tube("mail", 1)});
  snapshot.tubes[0].pause_seconds_left = 42;
  snapshot.server = client::StatsBlock("---\ndraining: true\n");
  model.update(snapshot);
  View view;
  auto lines = shown(model, view, {80, 24});
  CHECK(has(lines, "draining"));
  CHECK(has(lines, "    42s"));
  // beanstalkd does not report memory.
  CHECK_FALSE(has(lines, "memory"));
  press(view, model, " ");
  CHECK(has(shown(model, view, {80, 24}), "FROZEN"));
  press(view, model, " ");
  model.lost("cannot connect; trying again");
  lines = shown(model, view, {80, 24});
  CHECK(has(lines, "NO SERVER"));
  CHECK(has(lines, "mail"));
  CHECK(lines.back() == "cannot connect; trying again");
}

TEST_CASE("dead and expired jobs are shown if their number is not 0") {
  Model model = with_tubes({tube("mail", 7)});
  View view;
  CHECK_FALSE(has(shown(model, view, {200, 50}), "expired"));
  Snapshot snapshot = look(1000, {tube("mail", 7)});
  snapshot.server =
      client::StatsBlock(server_block(100, 1) + "dead-jobs: 3\nexpired-jobs: 12345\n");
  model.update(snapshot);
  const auto lines = shown(model, view, {80, 24});
  CHECK(lines[2] ==
        "jobs         ready 12.3k  reserved 0  delayed 0  buried 2  dead 3  expired 12.3k");
  Details details;
  details.tube = "mail";
  details.there = true;
  HeadJob& job = details.jobs.emplace_back();
  job.state = "buried";
  job.id = 7;
  job.stats =
      client::StatsBlock("pri: 3\nage: 5\nkicks: 0\ndead-from: \"mail\"\ndead-reason: timeouts\n");
  model.details = details;
  press(view, model, Key::Kind::enter);
  CHECK(has(shown(model, view, {80, 24}),
            "next buried job  7  priority 3  dead-reason timeouts  dead-from mail  age 5s"));
}

namespace {

Model in_cluster(const std::string& lines) {
  Model model = with_tubes({tube("mail", 7)});
  Snapshot snapshot = look(1000, {tube("mail", 7)});
  snapshot.server = client::StatsBlock(server_block(100, 1) + lines);
  model.update(snapshot);
  return model;
}

const std::string kClusterLines =
    "cluster-name: \"a\"\ncluster-role: leader\ncluster-leader: \"a\"\ncluster-term: 3\n"
    "cluster-commit-index: 5000\ncluster-applied-index: 4999\ncluster-held-over: 0\n";

Style style_of(const Frame& frame, const std::string& text) {
  for (const Line& line : frame.lines) {
    for (const Span& span : line.spans()) {
      if (span.text.find(text) != span.text.npos) return span.style;
    }
  }
  return Style::plain;
}

}  // namespace

TEST_CASE("the nodes of a cluster and their leader are shown") {
  View view;
  Model alone = with_tubes({tube("mail", 7)});
  CHECK_FALSE(has(shown(alone, view, {200, 50}), "cluster"));
  CHECK_FALSE(has(shown(alone, view, {200, 50}), "nodes"));

  Model model = in_cluster(kClusterLines +
                           "cluster-nodes: a:leader:5000:- b:voter:4997:12 "
                           "c:standby:10:999\n");
  auto lines = shown(model, view, {100, 24});
  CHECK(lines[0].starts_with("127.0.0.1:11300  serving"));
  CHECK(lines[1] == "cluster      leader a  this a leader  term 3  committed 5000  applied 4999");
  CHECK(lines[2] == "nodes        a leads  b voter lacks 3 12 ms  c standby lacks 4990 999 ms");
  CHECK(lines[3].starts_with("connections"));
  CHECK(lines[4].starts_with("jobs"));
  CHECK(lines[8].starts_with("  TUBE"));
  CHECK(lines.size() == 24);
  // The head shrinks first.
  lines = shown(model, view, {100, 10});
  CHECK(lines[1].starts_with("cluster"));
  CHECK(lines[2].starts_with("nodes"));
  CHECK(lines[3].starts_with("jobs"));
  CHECK(lines[4].starts_with("  TUBE"));
  lines = shown(model, view, {100, 8});
  CHECK(lines[1].starts_with("jobs"));
}

TEST_CASE("a silent node of a cluster comes first, and is highlighted") {
  View view;
  Model model = in_cluster(kClusterLines +
                           "cluster-nodes: a:leader:5000:- b:voter:5000:1000 "
                           "c:voter:100:61001\n");
  CHECK(shown(model, view, {80, 24})[2] ==
        "nodes        c voter lacks 4900 SILENT 1 min  a leads  b voter lacks 0 1.0 s");
  CHECK(shown(model, view, {60, 24})[2] == "nodes        c voter lacks 4900 SILENT 1 min  a leads");
  CHECK(style_of(compose(model, view, kAscii, {80, 24}), "SILENT") == Style::red);
  CHECK(style_of(compose(model, view, kAscii, {80, 24}), " lacks 4900") == Style::yellow);
  CHECK(style_of(compose(model, view, kAscii, {80, 24}), " lacks 0") == Style::plain);
}

TEST_CASE("a cluster without a leader, and values that a follower does not know") {
  View view;
  for (const char* const leader : {"\"\"", "-"}) {
    Model model =
        in_cluster(fmt::format("cluster-name: \"b\"\ncluster-role: candidate\n"
                               "cluster-leader: {}\ncluster-held-over: 2\n"
                               "cluster-nodes: \"a:voter:-:- b:voter:-:-\"\n",
                               leader));
    const auto lines = shown(model, view, {80, 24});
    CHECK(lines[1] == "cluster      NO LEADER  this b candidate  held over 2");
    CHECK(lines[2] == "nodes        a voter  b voter");
    CHECK(style_of(compose(model, view, kAscii, {80, 24}), "NO LEADER") == Style::red);
  }
}

TEST_CASE("malformed cluster-nodes do not affect other lines") {
  View view;
  for (const char* const nodes :
       {"", "\"\"", " ", ":::", "a", "a:", ":voter:1:2", "  :  ", "a::1:1", "\x1b[2J"}) {
    CAPTURE(nodes);
    Model model = in_cluster(kClusterLines + "cluster-nodes: " + nodes + "\n");
    const auto lines = shown(model, view, {80, 24});
    CHECK(lines[1].starts_with("cluster      leader a"));
    CHECK(lines[2].starts_with("connections"));
  }
  Model model = in_cluster(kClusterLines + "cluster-nodes: " + std::string(300, 'n') +
                           ":voter:x:99999999999999999999 " +
                           "b:voter:18446744073709551615:18446744073709551615:9 c:leader:1:1\n");
  CHECK(shown(model, view, {80, 24})[2] ==
        "nodes        " + std::string(31, 'n') + "~ voter  b voter lacks 0  c leads");
  CHECK(shown(model, view, {200, 24})[2].find("b voter lacks 0") != std::string::npos);
}

TEST_CASE("held jobs are shown next to the delayed jobs if their number is not 0") {
  Model model = with_tubes({tube("mail", 7)});
  View view;
  CHECK_FALSE(has(shown(model, view, {200, 50}), "held"));
  Snapshot snapshot = look(1000, {tube("mail", 7)});
  snapshot.server =
      client::StatsBlock(server_block(100, 1) + "current-jobs-delayed: 9\ncurrent-jobs-held: 4\n");
  model.update(snapshot);
  CHECK(shown(model, view, {80, 24})[2] ==
        "jobs         ready 12.3k  reserved 0  delayed 9  held 4  buried 2  urgent 0");
}

TEST_CASE("a snapshot that comes too soon changes no rate") {
  const auto mail = [](std::uint64_t ready, std::uint64_t puts) {
    TubeCounts counts = tube("mail", ready);
    counts.total_jobs = puts;
    return counts;
  };
  Model model("127.0.0.1:11300");
  model.rate_over(500ms);
  model.update(look(0, {mail(1, 1)}, 100));
  // Within the first second: no rate is shown instead of 0 or a spike.
  model.update(look(10, {mail(2, 2), tube("new", 1)}, 110, 1.005));
  CHECK_FALSE(model.rate(Flow::puts));
  CHECK_FALSE(model.cpu_percent());
  CHECK_FALSE(model.tubes.find("mail")->rates);
  CHECK(model.tubes.find("mail")->counts.ready == 2);
  CHECK(model.server().count("total-jobs") == 110);
  CHECK(model.history(Flow::puts).values().empty());
  model.update(look(1000, {mail(3, 11), tube("new", 1)}, 200, 1.5));
  CHECK(*model.rate(Flow::puts) == doctest::Approx(100));
  CHECK(model.tubes.find("mail")->rates->puts == doctest::Approx(10));
  const double cpu = *model.cpu_percent();
  // Later: the last rates stay, and the next count from the snapshot before.
  model.update(look(1001, {mail(4, 21)}, 300, 2));
  CHECK(*model.rate(Flow::puts) == doctest::Approx(100));
  CHECK(*model.cpu_percent() == cpu);
  CHECK(model.tubes[0].rates->puts == doctest::Approx(10));
  CHECK(model.tubes[0].ready.values().size() == 2);
  model.update(look(2000, {mail(4, 41)}, 400, 2));
  CHECK(*model.rate(Flow::puts) == doctest::Approx(200));
  CHECK(model.tubes[0].rates->puts == doctest::Approx(30));
}

TEST_CASE("times have units") {
  Model model("127.0.0.1:11300");
  Snapshot snapshot = look(0, {tube("mail", 1)});
  snapshot.tubes[0].pause_seconds_left = 85;
  model.update(snapshot);
  View view;
  CHECK(has(shown(model, view, {80, 24}), " 1m25s"));
  snapshot.tubes[0].pause_seconds_left = 85'400;
  model.update(snapshot);
  CHECK(has(shown(model, view, {80, 24}), " 23h43m"));
  snapshot.tubes[0].pause_seconds_left = 4'294'967'295;
  model.update(snapshot);
  CHECK(has(shown(model, view, {80, 24}), " 49.7kd"));
  Details details;
  details.tube = "mail";
  details.there = true;
  HeadJob& job = details.jobs.emplace_back();
  job.state = "delayed";
  job.stats = client::StatsBlock("pri: 90\nage: 90\ndelay: 7200\nttr: 60\ntime-left: 5\n");
  model.details = details;
  press(view, model, Key::Kind::enter);
  CHECK(has(shown(model, view, {100, 24}),
            "priority 90  age 1m30s  delay 2h00m  ttr 1m00s  time-left 5s"));
}

TEST_CASE("rates cover the time since the last snapshot, and start again after a loss") {
  Model model("127.0.0.1:11300");
  model.update(look(0, {tube("mail", 1)}, 100));
  CHECK_FALSE(model.rate(Flow::puts));
  CHECK_FALSE(model.tubes[0].rates);
  TubeCounts mail = tube("mail", 3);
  mail.total_jobs = 8;
  model.update(look(500, {mail}, 150, 1.25));
  CHECK(*model.rate(Flow::puts) == doctest::Approx(100));
  CHECK(*model.rate(Flow::reserves) == 0);
  CHECK(*model.cpu_percent() == doctest::Approx(50));
  CHECK(model.tubes[0].rates->puts == doctest::Approx(16));
  CHECK(model.tubes[0].ready.values().size() == 2);
  model.lost("gone");
  model.update(look(1000, {tube("mail", 1)}, 3));
  CHECK_FALSE(model.trouble());
  CHECK_FALSE(model.rate(Flow::puts));
  model.update(look(2000, {tube("mail", 1)}, 5));
  CHECK(*model.rate(Flow::puts) == doctest::Approx(2));
}
