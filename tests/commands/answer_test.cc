// Answers of handlers, as values, and the flags of each row of the command table.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "commands/handlers.h"
#include "commands/table.h"
#include "protocol/text_keys.h"
#include "tests/commands/talk.h"

using namespace tubed;
using namespace tubed::commands;
using namespace tubed::protocol;

namespace {

// A session whose commands are called without a line and without a reply.
class Caller {
 public:
  explicit Caller(Talk& talk) : talk_(talk), session_(talk.service.engine().open()) {}

  Context context(std::string_view body = {}) {
    return {.service = talk_.service,
            .engine = talk_.service.engine(),
            .session = session_,
            .now = talk_.service.now(),
            .body = Bytes::copy_of(body),
            .may_wait = false};
  }
  template <class Arguments>
  Answer call(Answer (*handler)(Context&, const Arguments&), const Arguments& arguments,
              std::string_view body = {}) {
    Context context = this->context(body);
    return handler(context, arguments);
  }
  Answer put(std::string_view body) {
    const auto bytes = static_cast<std::uint32_t>(body.size());
    REQUIRE(talk_.service.engine().memory().claim(bytes));
    return call(commands::put,
                {.priority = 1, .delay = {}, .ttr = {{60}}, .size = {bytes}, .tags = {}}, body);
  }

 private:
  Talk& talk_;
  SessionId session_;
};

Block items(const std::vector<std::string>& names) {
  return {[names](BlockSink& block) {
    for (const std::string& name : names) block.item(name);
  }};
}

}  // namespace

TEST_CASE("handlers answer values") {
  Talk talk;
  Caller caller(talk);
  CHECK(caller.put("hello") == Answer(Number{"INSERTED", 1}));
  CHECK(caller.call(peek, {.id = 1}) == Answer(JobAnswer{"FOUND", 1, Bytes::copy_of("hello")}));
  CHECK(caller.call(peek, {.id = 2}) == Answer(Status{word::kNotFound}));
  CHECK(caller.call(reserve, {}) == Answer(JobAnswer{"RESERVED", 1, Bytes::copy_of("hello")}));
  CHECK(caller.call(reserve, {}) == Answer(Status{word::kTimedOut}));
  CHECK(caller.call(bury, {.id = 1, .priority = 3}) == Answer(Status{word::kBuried}));
  Operation operation;
  Context context = caller.context();
  CHECK(kick(context, operation, {.bound = 9}) == Answer(Number{word::kKicked, 1}));
  CHECK(caller.call(use, {.tube = {"a"}}) == Answer(Name{"USING", "a"}));
  CHECK(caller.call(watch, {.tube = {"a"}, .weight = {}}) == Answer(Number{"WATCHING", 2}));
  CHECK(caller.call(list_tubes_watched, {}) == Answer(items({"default", "a"})));
  CHECK(caller.call(quit, {}) == Answer(Close{}));
}

TEST_CASE("a reserve that waits says so, and its notice is answered later") {
  Talk talk;
  Caller caller(talk);
  Context context = caller.context();
  context.may_wait = true;
  CHECK(reserve(context, {}) == Answer(Waiting{}));
  CHECK(answer_of({.session = 0, .kind = engine::Notice::Kind::timed_out, .job = 0, .body = {}}) ==
        Answer(Status{word::kTimedOut}));
  talk.service.engine().cancel_wait(context.session);
}

TEST_CASE("a command in slices is unfinished until its last slice") {
  Talk talk({.work_per_turn = 2});
  Caller caller(talk);
  for (int i = 0; i < 5; ++i) caller.put("x");
  for (JobId id = 1; id <= 5; ++id) {
    caller.call(reserve, {});
    caller.call(bury, {.id = id, .priority = 0});
  }
  Operation operation;
  Context context = caller.context();
  CHECK(kick(context, operation, {.bound = 9}) == Answer(Unfinished{}));
  CHECK(kick(context, operation, {.bound = 9}) == Answer(Unfinished{}));
  CHECK(kick(context, operation, {.bound = 9}) == Answer(Number{word::kKicked, 5}));
}

TEST_CASE("each answer has one text") {
  const auto text = [](const Answer& answer) {
    ReplyBuffer replies;
    render(answer, replies);
    return take_replies(replies);
  };
  CHECK(text(Status{"DELETED"}) == "DELETED\r\n");
  CHECK(text(Number{"INSERTED", 18446744073709551615U}) == "INSERTED 18446744073709551615\r\n");
  CHECK(text(Name{"USING", std::string(200, 'n')}) == "USING " + std::string(200, 'n') + "\r\n");
  CHECK(text(JobAnswer{"FOUND", 7, Bytes::copy_of("ab")}) == "FOUND 7 2\r\nab\r\n");
  CHECK(text(items({})) == "OK 4\r\n---\n\r\n");
  CHECK(text(items({"a", "5"})) == "OK 12\r\n---\n- a\n- 5\n\r\n");
  CHECK(text(BlockPart{8, Bytes::copy_of("---\n"), false}) == "OK 8\r\n---\n");
  CHECK(text(BlockPart{{}, Bytes::copy_of("- a\n"), true}) == "- a\n\r\n");
  for (const Answer& none : {Answer(Waiting{}), Answer(Unfinished{}), Answer(Close{})}) {
    CHECK(text(none).empty());
    CHECK_FALSE(is_whole_reply(none));
  }
  CHECK(is_whole_reply(Block{}));
  CHECK_FALSE(is_whole_reply(BlockPart{}));
}

namespace {

// Checks that the columns of names are those that clients know.
class CheckedTable final : public BlockSink {
 public:
  void begin_table(const Columns& columns) override { names_ = columns.names; }
  void row(std::span<const Value> values) override {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const std::string_view name = names_[i];
      CAPTURE(name);
      const bool is_word = name == "state";
      CHECK(std::holds_alternative<Plain>(values[i]) == (is_text_column(name) || is_word));
    }
    ++rows;
  }

  int rows = 0;

 private:
  std::span<const std::string_view> names_;
};

}  // namespace

TEST_CASE("clients know which columns of a list are names") {
  class CheckedTables final : public AnswerWriter {
   public:
    void write(const Answer& answer, ReplyBuffer&) override {
      const auto* block = std::get_if<Block>(&answer);
      if (block != nullptr) block->write(table);
    }
    CheckedTable table;
  };
  Talk talk;
  CheckedTables tables;
  const auto conversation = talk.connect();
  conversation->answers().set_writer(&tables);
  conversation->receive("put 0 0 60 1\r\nx\r\n");
  for (const char* const line : {"stats-tubes\r\n", "list-jobs default all\r\n",
                                 "list-jobs default all 0 1 body:x\r\n", "list-clients\r\n"}) {
    CAPTURE(line);
    tables.table.rows = 0;
    conversation->receive(line);
    CHECK(tables.table.rows == 1);
  }
  conversation->answers().set_writer(nullptr);
}

TEST_CASE("each command's row says what it may do, and which tube it concerns") {
  const auto row = [](std::string_view name) -> const Command& { return *find_command(name); };
  for (const char* const name : {"put", "use"}) CHECK(row(name).access == Access::produce);
  for (const char* const name : {"reserve", "reserve-with-timeout", "reserve-job", "delete",
                                 "release", "bury", "touch", "watch", "ignore"}) {
    CHECK(row(name).access == Access::work);
  }
  for (const char* const name : {"kick", "kick-job", "pause-tube"}) {
    CHECK(row(name).access == Access::admin);
  }
  for (const char* const name : {"quit", "capabilities"}) CHECK(row(name).access == Access::open);
  CHECK(auth_command().access == Access::open);
  // They show or change nothing but the client's own state.
  for (const char* const name : {"list-tube-used", "list-tubes-watched", "set-caps"}) {
    CHECK(row(name).access == Access::any);
    CHECK(row(name).concerns == Concerns::no_tube);
  }
  for (const Command& command : command_table()) {
    CAPTURE(command.name);
    const std::string_view name = command.name;
    const bool shows =
        name.starts_with("peek") || name.starts_with("stats") || name.starts_with("list");
    const bool shows_own = name.starts_with("list-tube-") || name == "list-tubes-watched";
    if (shows) CHECK((command.access == Access::inspect) != shows_own);
    // A command with a tube or a job as argument concerns it. `ignore` takes a tube from the
    // client's own list.
    if (command.arguments.empty() || name == "ignore") continue;
    const std::string_view first = command.arguments.front().name;
    CHECK((first == "tube") == (command.concerns == Concerns::argument));
    const bool has_job = std::ranges::any_of(command.arguments, [](const ArgumentText& argument) {
      return argument.name == "id" || argument.name == "ids";
    });
    CHECK(has_job == (command.concerns == Concerns::job));
  }
}
