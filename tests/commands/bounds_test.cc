// The bounds of a conversation: work in a tick, replies that the client does not read, stored
// input.
#include <algorithm>
#include <string>

#include <doctest/doctest.h>

#include "commands/table.h"
#include "tests/commands/talk.h"

using namespace tubed;
using namespace tubed::commands;

namespace {

std::string line_times(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all.append(text);
  return all;
}

long lines_in(std::string_view text) {
  return std::count(text.begin(), text.end(), '\n');
}

// Takes two facts at a time.
class CongestedLog final : public NullLog {
 public:
  void fact(const Fact&) override { ++facts; }
  bool congested() const override { return facts >= 2; }
  int facts = 0;
};

}  // namespace

TEST_CASE("one tick does the work of one quantum, and later ticks the rest") {
  Talk talk({.work_per_turn = 10});
  auto client = talk.connect();
  client->receive(line_times("delete 1\r\n", 95));
  CHECK(client->can_resume());
  CHECK_FALSE(client->wants_input());
  int turns = 1;
  while (client->can_resume()) {
    client->resume();
    ++turns;
  }
  CHECK(turns == 10);
  CHECK(client->wants_input());
  CHECK(Talk::replies_of(*client) == line_times("NOT_FOUND\r\n", 95));
}

TEST_CASE("many filtered lists on one connection take several ticks") {
  Talk talk({.work_per_turn = 200});
  auto client = talk.connect();
  for (int i = 0; i < 200; ++i) Talk::exchange(*client, "put 0 0 9 1\r\nx\r\n");
  client->receive(line_times("list-jobs default ready 0 1 body:y\r\n", 50));
  int turns = 1;
  for (; client->can_resume(); ++turns) client->resume();
  // Each page has walked over 200 jobs and matched them.
  CHECK(turns > 5);
  CHECK(lines_in(Talk::replies_of(*client)) == 50 * 5);
}

TEST_CASE("a batch has no more bytes than limits.output_bytes, unless one job has") {
  Talk talk;
  talk.service.set_limits({}, {.output_bytes = 100});
  auto client = talk.connect();
  const auto put = [&](int bytes) {
    const std::string size = std::to_string(bytes);
    Talk::exchange(*client, "put 0 0 9 " + size + "\r\n" + line_times("x", bytes) + "\r\n");
  };
  for (const int bytes : {60, 40, 1, 150, 60, 60}) put(bytes);
  std::string counts;
  for (int i = 0; i < 6; ++i) {
    const std::string reply = Talk::exchange(*client, "reserve-batch 10\r\n");
    counts += reply.substr(reply.find(' ') + 1, 1);
  }
  CHECK(counts == "211110");
}

TEST_CASE("each job of a batch counts as a command of the quantum") {
  Talk talk({.work_per_turn = 10});
  auto client = talk.connect();
  client->receive(line_times("delete-batch 1 2 3 4 5 6 7 8 9 10\r\n", 3));
  CHECK(lines_in(protocol::take_replies(client->replies())) == 1);
  CHECK(client->can_resume());
  CHECK(lines_in(Talk::replies_of(*client)) == 2);
}

TEST_CASE("touch-all touches a slice of the jobs in a tick") {
  Talk talk({.work_per_turn = 10});
  auto client = talk.connect();
  Talk::exchange(*client, line_times("put 0 0 9 1\r\nx\r\n", 25) + "reserve-batch 25\r\n");
  client->receive("touch-all\r\n");
  int slices = 1;
  for (; client->replies().empty(); ++slices) client->resume();
  CHECK(slices == 3);
  CHECK(protocol::take_replies(client->replies()) == "TOUCHED_ALL 25\r\n");
}

TEST_CASE("a long line of a command that has no limit of its own is not stored") {
  Talk talk;
  auto client = talk.connect();
  client->receive("delete-batch " + line_times("1 ", 10'000));
  CHECK(talk.service.input().bytes() > 20'000);
  client->receive(line_times("1 ", 1000));  // longer than any line
  CHECK(talk.service.input().bytes() < 5000);
  CHECK(Talk::exchange(*client, "\r\n") == "BAD_FORMAT\r\n");
  client->receive("delete " + line_times("1 ", 10'000));
  CHECK(talk.service.input().bytes() < 5000);
}

TEST_CASE("while the log is congested no command that may emit a fact is run") {
  Talk talk;
  CongestedLog log;
  talk.service.set_log(log);
  auto client = talk.connect();
  client->receive(line_times("put 0 0 9 1\r\nx\r\n", 5));
  CHECK(protocol::take_replies(client->replies()) == "INSERTED 1\r\nINSERTED 2\r\n");
  CHECK(client->can_resume());
  CHECK_FALSE(client->wants_input());
  client->resume();
  CHECK(client->replies().empty());
  log.facts = 0;
  client->resume();
  CHECK(protocol::take_replies(client->replies()) == "INSERTED 3\r\nINSERTED 4\r\n");
  log.facts = 0;
  client->resume();
  CHECK(protocol::take_replies(client->replies()) == "INSERTED 5\r\n");
  CHECK(client->wants_input());
}

TEST_CASE("with many clients each does less at a time") {
  Talk talk({.work_per_turn = 100});
  auto& budget = talk.service.tick_budget();
  budget.begin(kStart, 10'000);
  auto client = talk.connect();
  client->receive(line_times("list-tube-used\r\n", 40));
  CHECK(lines_in(protocol::take_replies(client->replies())) == TickBudget::kLeastQuantum);
  client->resume();
  CHECK(lines_in(protocol::take_replies(client->replies())) == TickBudget::kLeastQuantum);
  budget.begin(kStart, 0);
  client->resume();
  CHECK(lines_in(protocol::take_replies(client->replies())) == 8);
}

TEST_CASE("stored input is counted until it is consumed") {
  Talk talk;
  const auto waits = [&] { return talk.service.input().bytes(); };
  const std::string behind = line_times("list-tube-used\r\n", 1000);
  auto client = talk.connect();
  client->receive("reserve\r\n");
  CHECK(waits() == 0);
  client->receive(behind);
  CHECK(waits() >= behind.size());
  CHECK(waits() < behind.size() + 1000);
  client->half_close();
  Talk::replies_of(*client);
  CHECK(waits() < 1100);  // the capacity that an empty buffer keeps
  {
    auto other = talk.connect();
    other->receive("reserve\r\n");
    other->receive(behind);
    CHECK(waits() >= behind.size());
  }
  CHECK(waits() < 1100);
}

TEST_CASE("the more input is stored, the less a read brings") {
  Talk talk;
  auto& service = talk.service;
  service.set_limits({}, {.input_memory = 1 << 20});
  CHECK(service.read_bytes(65536) == (1 << 20) / 64);
  CHECK(service.read_bytes(100) == 100);
  std::vector<std::unique_ptr<Conversation>> clients;
  for (int i = 0; i < 500; ++i) {
    clients.push_back(talk.connect());
    clients.back()->receive("reserve\r\n");
    clients.back()->receive(std::string(service.read_bytes(65536), 'x'));
  }
  CHECK(service.read_bytes(65536) == 2048);
  CHECK(service.input().bytes() > (1 << 20) * 9 / 10);
  CHECK(service.input().bytes() < (1 << 20) + 500 * 2048);
}

TEST_CASE("while the log is congested, commands that emit no fact are answered") {
  Talk talk;
  CongestedLog log;
  talk.service.set_log(log);
  auto client = talk.connect();
  Talk::exchange(*client, "put 0 0 9 1\r\na\r\nput 0 0 9 1\r\nb\r\n");
  CHECK(log.congested());
  const std::string answers =
      Talk::exchange(*client,
                     "peek 1\r\nreserve\r\nreserve-job 2\r\ntouch 1\r\n"
                     "reserve-with-timeout 0\r\nwatch a\r\n"
                     "list-tubes-watched\r\nlist-tube-used\r\npeek-buried\r\n");
  CHECK(answers ==
        "FOUND 1 1\r\na\r\nRESERVED 1 1\r\na\r\nRESERVED 2 1\r\nb\r\nTOUCHED\r\n"
        "TIMED_OUT\r\nWATCHING 2\r\nOK 18\r\n---\n- default\n- a\n\r\nUSING default\r\n"
        "NOT_FOUND\r\n");
  CHECK(Talk::exchange(*client, "stats\r\n").starts_with("OK "));
  CHECK(client->wants_input());
  CHECK(log.facts == 2);
  CHECK(Talk::exchange(*client, "quit\r\n").empty());
  CHECK(client->finished());
}

TEST_CASE("each row that says that it emits no fact emits none") {
  for (const Command& command : command_table()) {
    CAPTURE(command.name);
    Talk talk;
    CongestedLog log;
    talk.service.set_log(log);
    auto client = talk.connect();
    // A job in each state, also reserved, and a paused tube that only this client uses.
    Talk::exchange(*client, "watch p\r\n" + line_times("put 0 0 9 1\r\nx\r\n", 1));
    const auto prepare = [&](std::string_view line) {
      log.facts = 0;
      Talk::exchange(*client, line);
    };
    prepare("put 0 100 9 1\r\nx\r\n");
    prepare("put 0 0 9 1\r\nx\r\n");
    prepare("put 0 0 9 1\r\nx\r\n");
    prepare("reserve-job 3\r\nbury 3 0\r\n");
    prepare("reserve-job 4\r\nuse p\r\n");
    prepare("pause-tube p 100\r\n");
    log.facts = 2;  // congested
    std::string line(command.name);
    for (const ArgumentText& argument : command.arguments) {
      const bool is_tube = argument.type.find("tube name") != std::string_view::npos;
      const bool is_state = argument.name == "state";
      const std::string_view other = argument.name == "id"                       ? " 4"
                                     : argument.name == "tags"                   ? " idp:k"
                                     : argument.type.starts_with("priority and") ? " 1 1"
                                     : argument.type.starts_with("key of a")     ? " keep 1"
                                                                                 : " 1";
      line += is_tube ? " p" : is_state ? " buried" : other;
    }
    line += "\r\n";
    if (command.begin_body != nullptr) line += "x\r\n";
    client->receive(line);
    CHECK(log.facts == 2);
    CHECK(client->waits_for_log() == command.may_emit_facts);
    const bool unanswered = command.may_emit_facts || command.name == "quit" || client->waiting();
    CHECK(client->replies().empty() == unanswered);
    if (!command.may_emit_facts) continue;
    // Later commands are answered after it, in order.
    CHECK_FALSE(client->wants_input());
    CHECK_FALSE(client->idle());
    client->resume();
    CHECK(client->waits_for_log());
    CHECK(client->replies().empty());
    log.facts = 0;
    client->resume();
    CHECK_FALSE(client->replies().empty());
    CHECK_FALSE(client->waits_for_log());
    client.reset();
  }
}

TEST_CASE("a kick that works in slices waits for the log between two of them") {
  Talk talk({.work_per_turn = 2});
  CongestedLog log;
  talk.service.set_log(log);
  auto client = talk.connect();
  for (int i = 0; i < 6; ++i) {
    Talk::exchange(*client, "put 0 100 9 1\r\nx\r\n");
    log.facts = 0;
  }
  client->receive("kick 6\r\npeek 1\r\n");
  for (int slice = 0; slice < 2; ++slice) {
    CHECK(log.facts == 2);
    client->resume();
    CHECK(log.facts == 2);
    CHECK(client->replies().empty());
    log.facts = 0;
    client->resume();
  }
  CHECK(Talk::replies_of(*client) == "KICKED 6\r\nFOUND 1 1\r\nx\r\n");
  client.reset();
}

TEST_CASE("a long reply counts as much work") {
  Talk talk({.work_per_turn = 100});
  auto client = talk.connect();
  for (int i = 0; i < 1000; ++i) {
    Talk::exchange(*client, "watch tube-with-a-long-name-" + std::to_string(i) + "\r\n");
  }
  client->receive(line_times("list-tubes\r\n", 10));
  CHECK(client->can_resume());
  CHECK(client->replies().size() < 40'000);  // one or two of ten
}

TEST_CASE("a watch list that is walked counts as work") {
  Talk talk({.work_per_turn = 100});
  auto client = talk.connect();
  for (int i = 0; i < 255; ++i) Talk::exchange(*client, "watch t" + std::to_string(i) + "\r\n");
  client->receive(line_times("reserve-with-timeout 0\r\n", 50));
  CHECK(client->can_resume());
  // 256 of them count as 4, and the command itself as 1.
  CHECK(lines_in(protocol::take_replies(client->replies())) == 20);
}

TEST_CASE("of a long watch list, the tubes that have jobs count as work") {
  Talk talk({.work_per_turn = 100});
  auto client = talk.connect();
  const auto reserves = line_times("reserve-with-timeout 0\r\n", 50);
  for (int i = 0; i < 1279; ++i) Talk::exchange(*client, "watch t" + std::to_string(i) + "\r\n");
  client->receive(reserves);
  CHECK_FALSE(client->can_resume());
  CHECK(lines_in(protocol::take_replies(client->replies())) == 50);
  for (int i = 0; i < 1279; ++i) {
    Talk::exchange(*client, "use t" + std::to_string(i) + "\r\nput 0 0 60 1\r\na\r\n");
  }
  client->receive(reserves);
  CHECK(client->can_resume());
  // Each counts as 19 or 20, and the command itself as 1.
  CHECK(lines_in(protocol::take_replies(client->replies())) == 2 * 5);
}

TEST_CASE("when the server stops a wait ends without an answer, and no other begins") {
  Talk talk;
  auto waiting = talk.connect();
  auto asking = talk.connect();
  waiting->receive("reserve\r\nlist-tube-used\r\n");
  waiting->stop_waiting();
  asking->stop_waiting();
  CHECK(waiting->finished());
  CHECK(talk.service.engine().info().waiting == 0);
  CHECK(Talk::exchange(*asking, "put 0 0 60 1\r\na\r\n") == "INSERTED 1\r\n");
  CHECK(Talk::exchange(*asking, "delete 1\r\nreserve\r\n") == "DELETED\r\nTIMED_OUT\r\n");
  CHECK(Talk::replies_of(*waiting).empty());
}

TEST_CASE("a kick works in slices and is answered once") {
  Talk talk({.work_per_turn = 10});
  auto client = talk.connect();
  for (int i = 0; i < 95; ++i) Talk::exchange(*client, "put 0 1000 60 1\r\na\r\n");
  client->receive("kick 1000\r\nlist-tube-used\r\n");
  CHECK(client->replies().empty());
  CHECK(client->can_resume());
  CHECK(talk.service.engine().info().jobs.ready == 10);
  CHECK_FALSE(client->wants_input());
  CHECK(Talk::replies_of(*client) == "KICKED 95\r\nUSING default\r\n");
  CHECK(talk.service.engine().info().jobs.ready == 95);
}

TEST_CASE("a kick continues when other clients take jobs away") {
  Talk talk({.work_per_turn = 10});
  auto client = talk.connect();
  auto other = talk.connect();
  for (int i = 0; i < 20; ++i) Talk::exchange(*client, "put 0 1000 60 1\r\na\r\n");
  client->receive("kick 1000\r\n");
  for (int i = 1; i <= 20; ++i) Talk::exchange(*other, "delete " + std::to_string(i) + "\r\n");
  CHECK(Talk::replies_of(*client) == "KICKED 10\r\n");
}

TEST_CASE("no command of a client is run while too many of its replies are unsent") {
  Talk talk;
  talk.service.set_limits({}, {.output_bytes = 1000});
  auto client = talk.connect();
  client->receive(line_times("list-tube-used\r\n", 500));
  CHECK(client->replies().size() > 1000);
  CHECK(client->replies().size() < 1100);
  CHECK_FALSE(client->can_resume());
  CHECK_FALSE(client->wants_input());
  CHECK(lines_in(Talk::replies_of(*client)) == 500);
  CHECK(client->wants_input());
}

TEST_CASE("a waiting client is read from until it has pipelined input") {
  Talk talk;
  auto client = talk.connect();
  client->receive("reserve\r\n");
  CHECK(client->wants_input());
  client->receive("list-tube-used\r\n");
  CHECK_FALSE(client->wants_input());
  auto producer = talk.connect();
  CHECK(Talk::exchange(*producer, "put 0 0 60 1\r\na\r\n") == "INSERTED 1\r\n");
  std::vector<SessionId> notified;
  talk.service.conversations().take_notified(notified);
  REQUIRE(notified.size() == 1);
  CHECK(notified[0] == client->session());
  CHECK(Talk::replies_of(*client) == "RESERVED 1 1\r\na\r\nUSING default\r\n");
}

TEST_CASE("undrain says that it is too late if its host keeps the server draining") {
  Talk talk;
  auto client = talk.connect();
  talk.service.set_draining(true);
  talk.host.refuses_drain_mode = true;
  CHECK(Talk::exchange(*client, "undrain\r\n") == "DRAINING\r\n");
  talk.host.refuses_drain_mode = false;
  CHECK(Talk::exchange(*client, "undrain\r\n") == "NOT_DRAINING\r\n");
}

TEST_CASE("memory that a body claimed is returned when the body does not arrive") {
  Talk talk;
  const auto used = [&] { return talk.service.engine().info().memory_bytes; };
  {
    auto client = talk.connect();
    client->receive("put 0 0 60 1000\r\nabc");
    CHECK(used() > 1000);
  }
  CHECK(used() == 0);
  auto client = talk.connect();
  CHECK(Talk::exchange(*client, "put 0 0 60 3\r\nabcd\r\n") == "EXPECTED_CRLF\r\n");
  CHECK(used() == 0);
  client->receive("put 0 0 60 3\r\n");
  talk.service.set_draining(true);
  CHECK(Talk::exchange(*client, "abc\r\n") == "DRAINING\r\n");
  CHECK(used() == 0);
  talk.service.set_draining(false);
  CHECK(Talk::exchange(*client, "put 0 0 60 3\r\nabc\r\n") == "INSERTED 1\r\n");
  CHECK(used() > 0);
  CHECK(Talk::exchange(*client, "delete 1\r\n") == "DELETED\r\n");
  CHECK(used() == 0);
}

TEST_CASE("an idle client holds no job, does not wait and has no unsent replies") {
  Talk talk;
  auto client = talk.connect();
  CHECK(client->idle());
  client->receive("put 0 0 60 3\r\n");
  CHECK(client->idle());  // a body that does not arrive must not hold its memory
  client->receive("abc\r\n");
  CHECK_FALSE(client->idle());
  Talk::replies_of(*client);
  CHECK(client->idle());
  Talk::exchange(*client, "reserve\r\n");
  CHECK_FALSE(client->idle());
  Talk::exchange(*client, "delete 1\r\n");
  CHECK(client->idle());
  client->receive("reserve\r\n");
  CHECK_FALSE(client->idle());
}

TEST_CASE("after quit no command is run and no reply is made") {
  Talk talk;
  auto client = talk.connect();
  CHECK(Talk::exchange(*client, "list-tube-used\r\nquit\r\nlist-tube-used\r\n") ==
        "USING default\r\n");
  CHECK(client->finished());
  CHECK(Talk::exchange(*client, "list-tube-used\r\n").empty());
}

namespace {

// A page of list-clients: `next`, and its lines of clients.
struct ClientPage {
  std::size_t next = 0;
  std::string clients;
};

ClientPage list_clients(Conversation& client, const std::string& arguments) {
  const std::string reply = Talk::exchange(client, "list-clients" + arguments + "\r\n");
  const std::string_view columns = "- id address role used waiting held idle watched\n";
  const std::size_t begin = reply.find(columns) + columns.size();
  return {.next = std::stoul(reply.substr(reply.find("next ") + 5)),
          .clients = reply.substr(begin, reply.size() - begin - 2)};
}

}  // namespace

TEST_CASE("a page of list-clients has the clients from an id on, as the server describes them") {
  Talk talk;
  talk.host.details_of = [](SessionId session) {
    return ClientDetails{.address = "192.0.2.1:" + std::to_string(session),
                         .idle = std::chrono::milliseconds(1999 * session)};
  };
  std::vector<std::unique_ptr<Conversation>> clients;
  for (int i = 0; i < 250; ++i) clients.push_back(talk.connect());
  Conversation& client = *clients[0];
  CHECK(list_clients(client, "").next == 100);
  CHECK(lines_in(list_clients(client, "").clients) == 100);
  CHECK(list_clients(client, " 200").next == 0);
  CHECK(lines_in(list_clients(client, " 200").clients) == 50);
  CHECK(lines_in(list_clients(client, " 0 1000").clients) == 250);
  clients[6].reset();
  const ClientPage page = list_clients(client, " 5 2");
  CHECK(page.next == 8);
  CHECK(page.clients ==
        "- 5 192.0.2.1:5 - default 0 0 9 default\n- 7 192.0.2.1:7 - default 0 0 13 default\n");
  CHECK(list_clients(client, " 249 1").next == 0);
  CHECK(list_clients(client, " 250").next == 0);
  CHECK(list_clients(client, " 250").clients.empty());
}

TEST_CASE("a page of list-clients looks at 4,096 ids") {
  Talk talk;
  std::vector<std::unique_ptr<Conversation>> clients;
  for (int i = 0; i < 9000; ++i) clients.push_back(talk.connect());
  auto last = talk.connect();
  clients.resize(1);
  Conversation& client = *clients[0];
  ClientPage page = list_clients(client, "");
  CHECK(page.next == 4096);
  CHECK(page.clients == "- 0 - - default 0 0 0 default\n");
  page = list_clients(client, " 4096");
  CHECK(page.next == 8192);
  CHECK(page.clients.empty());
  page = list_clients(client, " 8192 1000");
  CHECK(page.next == 0);
  CHECK(page.clients == "- 9000 - - default 0 0 0 default\n");
}

TEST_CASE("a page of list-clients ends after 256 KiB") {
  Talk talk;
  std::vector<std::unique_ptr<Conversation>> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(talk.connect());
    for (int tube = 0; tube < 30; ++tube) {
      const std::string name = std::string(190, 'x') + std::to_string(tube);
      Talk::exchange(*clients.back(), "watch " + name + "\r\n");
    }
  }
  std::size_t from = 0;
  long lines = 0;
  do {
    const ClientPage page = list_clients(*clients[0], " " + std::to_string(from));
    CHECK(page.clients.size() < (256 + 4) * 1024);
    lines += lines_in(page.clients);
    CHECK((page.next == 0 || page.next > from));
    from = page.next;
  } while (from != 0);
  CHECK(lines == 100);
}

TEST_CASE("pages of list-clients cost a part of the tick's work") {
  Talk talk({.work_per_turn = 100});
  std::vector<std::unique_ptr<Conversation>> clients;
  for (int i = 0; i < 5000; ++i) clients.push_back(talk.connect());
  clients.resize(1);
  clients[0]->receive(line_times("list-clients 0 1\r\n", 50));
  CHECK_FALSE(clients[0]->can_resume());
  talk.advance({});
  clients[0]->receive(line_times("list-clients 1\r\n", 3));  // 64 and 2 for each
  CHECK(clients[0]->can_resume());
}
