// Roles: which commands, tubes and jobs each of them allows. The matrices are made from the command
// table: the expectation for a row comes from its family and from what it concerns.
#include "commands/authorization.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "commands/table.h"
#include "tests/commands/admitted.h"

using namespace tubed;
using namespace tubed::commands;

namespace {

using What = AuditEvent::What;

// A row whose text lacks a member that has to be given does not compile.
template <class Text>
concept CompilesWithAll = requires {
  Text{.name = "x",
       .summary = {},
       .replies = {},
       .access = Access::any,
       .concerns = Concerns::no_tube};
};
template <class Text>
concept CompilesWithoutAccess = requires {
  Text{.name = "x", .summary = {}, .replies = {}, .concerns = Concerns::no_tube};
};
template <class Text>
concept CompilesWithoutConcerns = requires {
  Text{.name = "x", .summary = {}, .replies = {}, .access = Access::any};
};
static_assert(CompilesWithAll<CommandText>);
static_assert(!CompilesWithoutAccess<CommandText>);
static_assert(!CompilesWithoutConcerns<CommandText>);

const std::vector<Role> kFamilies = {
    role_of_families("none", ""),      role_of_families("produce", "p"),
    role_of_families("work", "w"),     role_of_families("inspect", "i"),
    role_of_families("admin", "a"),    role_of_families("all", "pwia"),
    role_of_families("producer", "pi")};

// The rights of the role, without the function that is tested.
bool allows(const Role& role, Access access) {
  switch (access) {
    case Access::produce:
      return role.produce;
    case Access::work:
      return role.work;
    case Access::inspect:
      return role.inspect;
    case Access::admin:
      return role.admin;
    case Access::open:
    case Access::any:
      break;
  }
  return true;
}

const Role kOpenTubes = role_of_families("open", "pwia", {"open.*", "also"});

// The reply to `line` after `before`, on a server with a job in "secret" (1) and one in "open.a"
// (2), to a client with this role, or to one that may do everything.
std::string reply_on_new_server(const std::vector<Role>& roles, std::string_view role,
                                std::string_view before, std::string_view line) {
  Admitted talk(roles);
  auto other = talk.connect();
  Talk::exchange(*other,
                 "put-in-tube secret 9 0 60 1\r\ns\r\nput-in-tube open.a 9 0 60 1\r\no\r\n");
  other->half_close();
  auto client = role.empty() ? talk.connect() : talk.connect_as(role);
  Talk::exchange(*client, before);
  client->half_close();  // a reserve then does not wait
  return Talk::exchange(*client, line);
}

std::string job_line(std::string_view name, std::string_view rest = {}) {
  return std::string(name) + " 1" + std::string(rest) + "\r\n";
}

std::string send(Conversation& client, std::string_view bytes) {
  return Talk::exchange(client, bytes);
}

}  // namespace

TEST_CASE("each row is allowed to the families that its access says, and denied to the others") {
  for (const Command& command : command_table()) {
    if (&command == &auth_command() || command.name == "capabilities") continue;
    // The line has no optional argument.
    const std::string line = line_with(command, "default", 2, "other");
    const std::string allowed = reply_on_new_server(kFamilies, "", "", line);
    for (const Role& role : kFamilies) {
      CAPTURE(line);
      CAPTURE(role.name);
      const bool may = allows(role, command.access) || (command.shows_alone && role.inspect);
      const std::string reply = reply_on_new_server(kFamilies, role.name, "", line);
      if (may && command.name == "list-clients") {  // which shows the role
        CHECK(reply.starts_with("OK "));
      } else {
        CHECK(reply == (may ? allowed : "DENIED\r\n"));
      }
    }
  }
}

TEST_CASE("a command that names a tube is denied if the role may not use the tube") {
  for (const Command& command : command_table()) {
    if (command.concerns != Concerns::argument) continue;
    CAPTURE(command.name);
    const auto reply = [&](std::string_view role, std::string_view tube, std::string_view to) {
      return reply_on_new_server({kOpenTubes}, role, "", line_with(command, tube, 2, to));
    };
    CHECK(reply("open", "secret", "open.b") == "DENIED\r\n");
    CHECK(reply("open", "none.such", "open.b") == "DENIED\r\n");
    CHECK(reply("open", "open.a", "open.b") == reply("", "open.a", "open.b"));
    CHECK(reply("open", "also", "also") == reply("", "also", "also"));
    const bool has_two = std::ranges::count(command.arguments, "to", &ArgumentText::name) > 0;
    if (has_two) CHECK(reply("open", "open.a", "secret") == "DENIED\r\n");
  }
}

TEST_CASE("a command on the used or the watched tubes is denied if the role may not use them") {
  for (const Command& command : command_table()) {
    const bool used = command.concerns == Concerns::used;
    if (!used && command.concerns != Concerns::watched) continue;
    const std::string line = line_with(command, "", 2, "");
    CAPTURE(line);
    const auto reply = [&](std::string_view role, std::string_view before) {
      return reply_on_new_server({kOpenTubes}, role, before, line);
    };
    CHECK(reply("open", "") == "DENIED\r\n");
    // One tube of the watch list is enough.
    CHECK(reply("open", "watch open.a\r\n") == "DENIED\r\n");
    const std::string_view before = "use open.a\r\nwatch open.a\r\nignore default\r\n";
    CHECK(reply("open", before) == reply("", before));
  }
}

TEST_CASE("a job in a tube that the role may not use does not exist for any command") {
  for (const Command& command : command_table()) {
    if (command.concerns != Concerns::job) continue;
    CAPTURE(command.name);
    const auto reply = [&](std::string_view role, JobId job, std::string_view tube) {
      return reply_on_new_server({kOpenTubes}, role, "", line_with(command, tube, job, ""));
    };
    CHECK(reply("open", 1, "open.b") == reply("", 99, "open.b"));
    CHECK(reply("open", 2, "open.b") == reply("", 2, "open.b"));
    CHECK(reply("open", 99, "open.b") == reply("", 99, "open.b"));
  }
}

TEST_CASE("a tube that the role may not use is denied whether the job of the line exists or not") {
  int rows = 0;
  for (const Command& command : command_table()) {
    const auto has = [&](std::string_view name) {
      return std::ranges::count(command.arguments, name, &ArgumentText::name) > 0;
    };
    if (!has("id") || !has("tube")) continue;
    ++rows;
    CAPTURE(command.name);
    // Jobs of another tube and of its own tube, and ids without a job: ids are given in order, so
    // each could be a job of other clients.
    for (const JobId job : {1U, 2U, 3U, 99U}) {
      for (const std::string_view tube : {"secret", "none.such"}) {
        CAPTURE(job);
        CHECK(reply_on_new_server({kOpenTubes}, "open", "", line_with(command, tube, job, "")) ==
              "DENIED\r\n");
      }
    }
  }
  CHECK(rows == 1);  // move-job
}

TEST_CASE("a command that concerns no tube is denied for the server's sake only") {
  for (const Command& command : command_table()) {
    // The last three have their own tests below.
    const bool skipped = &command == &auth_command() || command.name == "stats-tubes" ||
                         command.name == "list-clients" || command.name == "capabilities";
    if (command.concerns != Concerns::no_tube || skipped) continue;
    const std::string line = line_with(command, "default", 2, "");
    CAPTURE(line);
    const std::string reply = reply_on_new_server({kOpenTubes}, "open", "", line);
    const bool denied = command.access == Access::admin;
    CHECK(reply == (denied ? "DENIED\r\n" : reply_on_new_server({}, "", "", line)));
  }
}

TEST_CASE("the families of the usual commands") {
  const auto reply = [](std::string_view role, const std::string& line) {
    return reply_on_new_server(kFamilies, role, "", line);
  };
  // Each with the only family that may.
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"list-tubes\r\n", "inspect"},
      {"stats-tube open.a\r\n", "inspect"},
      {"peek 2\r\n", "inspect"},
      {"list-jobs open.a ready\r\n", "inspect"},
      {"wait 0 2\r\n", "inspect"},
      {"list-clients\r\n", "inspect"},
      {"stats-tube-times open.a\r\n", "inspect"},
      {"watch open.a\r\n", "work"},
      {"reserve-job 2\r\n", "work"},
      {"delete 2\r\n", "work"},
      {"delete-batch 1 2\r\n", "work"},
      {"reserve-batch 2\r\n", "work"},
      {"touch-all\r\n", "work"},
      {"kick-job 2\r\n", "admin"},
      {"move-job 2 default\r\n", "admin"},
      {"move-jobs open.a ready b\r\n", "admin"},
      {"drain\r\n", "admin"},
      {"use open.a\r\n", "produce"},
      {"put 0 0 60 1\r\nb\r\n", "produce"},
      {"put-in-tube t 0 0 60 1\r\nb\r\n", "produce"},
      {"flush-tube open.a\r\n", "admin"},
      {"pause-tube open.a 1\r\n", "admin"},
      {"tube-policy open.a max-jobs 1\r\n", "admin"},
      {"tube-policy open.a max-jobs -\r\n", "admin"},
      {"stats\r\n", "inspect"},
      {"reserve-with-timeout 0\r\n", "work"},
      {"stats-job 2\r\n", "inspect"}};
  for (const auto& entry : lines) {
    const std::string& line = entry.first;
    const std::string& family = entry.second;
    for (const std::string_view role : {"produce", "work", "inspect", "admin"}) {
      CAPTURE(line);
      CAPTURE(role);
      CHECK((reply(role, line) == "DENIED\r\n") == (role != family));
    }
  }
  for (const std::string_view role : {"none", "produce", "work", "inspect", "admin"}) {
    CHECK(reply(role, "list-tube-used\r\n") == "USING default\r\n");
    CHECK(reply(role, "list-tubes-watched\r\n").starts_with("OK "));
  }
}

// A filter answers questions about bodies.
TEST_CASE("who may filter the jobs of a tube by their bodies may peek at them") {
  const Command& list = *find_command("list-jobs");
  const Command& peek = *find_command("peek");
  for (const Role& role : kFamilies) CHECK(may_run(role, list) == may_run(role, peek));
  CHECK(list.concerns == Concerns::argument);
  for (const std::string_view role : {"none", "produce", "work", "admin"}) {
    CAPTURE(role);
    CHECK(reply_on_new_server(kFamilies, role, "", "list-jobs open.a all 0 9 body:b\r\n") ==
          "DENIED\r\n");
  }
  const std::string hidden = "list-jobs default all 0 9 body:b\r\n";
  CHECK(reply_on_new_server({kOpenTubes}, "open", "", hidden) == "DENIED\r\n");
}

TEST_CASE("a filtered list names no tube that the role may not use") {
  Admitted talk({kOpenTubes});
  auto all = talk.connect();
  Talk::exchange(*all,
                 "put-in-tube secret 0 0 60 1 max:1:open.d\r\nx\r\n"
                 "put-in-tube open.a 0 0 60 1 max:1:open.d\r\nx\r\n"
                 "watch secret\r\nwatch open.a\r\n");
  for (const char* id : {"1", "2"}) {
    const std::string job = id;
    Talk::exchange(*all, "reserve-job " + job + "\r\nrelease " + job + " 0 0\r\n");
  }
  auto client = talk.connect_as("open");
  const std::string line = "list-jobs open.d all 0 9 body:x\r\n";
  const std::string shown = Talk::exchange(*client, line);
  CHECK(shown.find(" 1 - max:1:open.d\n") != std::string::npos);
  CHECK(shown.find(" 1 open.a max:1:open.d\n") != std::string::npos);
  CHECK(shown.find("secret") == std::string::npos);
  CHECK(Talk::exchange(*all, line).find(" 1 secret max:1:open.d\n") != std::string::npos);
}

TEST_CASE("a policy is shown to inspect and to admin, and set by admin alone") {
  for (const std::string_view role : {"none", "produce", "work", "inspect", "admin"}) {
    CAPTURE(role);
    const bool may_show = role == "inspect" || role == "admin";
    Admitted talk(kFamilies);
    auto client = talk.connect_as(role);
    CHECK(send(*client, "tube-policy a\r\n").starts_with(may_show ? "OK " : "DENIED\r\n"));
    for (const char* const set : {"max-jobs 7", "dead b", "max-jobs -", "dead -"}) {
      CAPTURE(set);
      CHECK(send(*client, "tube-policy a " + std::string(set) + "\r\n") ==
            (role == "admin" ? "POLICY_SET\r\n" : "DENIED\r\n"));
      if (role != "admin") CHECK(talk.service.engine().queries().policies().count() == 0);
    }
    // A line that is malformed is neither.
    CHECK(send(*client, "tube-policy a max-jobs\r\n") == "BAD_FORMAT\r\n");
    const bool lists =
        send(*client, "capabilities\r\n").find("- tube-policy\n") != std::string::npos;
    CHECK(lists == may_show);
  }
  // Showing it is restricted to the tubes of the role, as setting it is.
  Admitted talk({role_of_families("viewer", "i", {"open.*"})});
  auto viewer = talk.connect_as("viewer");
  CHECK(send(*viewer, "tube-policy open.a\r\n").starts_with("OK "));
  CHECK(send(*viewer, "tube-policy secret\r\n") == "DENIED\r\n");
  CHECK(send(*viewer, "tube-policy open.a max-jobs 1\r\n") == "DENIED\r\n");
}

TEST_CASE("each command on a job is answered NOT_FOUND for a job that is hidden") {
  for (const std::string& line :
       {job_line("reserve-job"), job_line("peek"), job_line("delete"), job_line("kick-job"),
        job_line("release", " 0 0"), job_line("bury", " 0"), job_line("touch"),
        job_line("stats-job"), job_line("reprioritize", " 5"), job_line("delete-force"),
        job_line("move-job", " open.a"), std::string("wait 5 1\r\n")}) {
    CAPTURE(line);
    CHECK(reply_on_new_server({kOpenTubes}, "open", "", line) == "NOT_FOUND\r\n");
  }
  CHECK(reply_on_new_server({kOpenTubes}, "open", "", "delete-batch 1 2 99\r\n") ==
        "DELETED_BATCH 1 2\r\n");
}

TEST_CASE("a tube to which jobs may go later has to be allowed") {
  Admitted talk({kOpenTubes});
  auto client = talk.connect_as("open");
  for (const std::string key : {"dead", "expired"}) {
    CHECK(send(*client, "tube-policy open.a " + key + " secret\r\n") == "DENIED\r\n");
    for (const char* const value : {"open.b", "bury", "delete", "-"}) {
      CHECK(send(*client, "tube-policy open.a " + key + " " + value + "\r\n") == "POLICY_SET\r\n");
    }
  }
  CHECK(send(*client, "tube-policy open.a max-attempts 3\r\n") == "POLICY_SET\r\n");
  CHECK(send(*client, "put-in-tube open.a 0 0 60 1 max:1:secret\r\nb\r\n") == "DENIED\r\n");
  CHECK(send(*client, "put-in-tube open.a 0 0 60 1 max:1:bury\r\nb\r\n") == "INSERTED 1\r\n");
  CHECK(send(*client, "put-in-tube open.a 0 0 60 1 max:1:open.b\r\nb\r\n") == "INSERTED 2\r\n");
  CHECK(send(*client, "put-in-tube open.a 0 0 60 1 grp:secret\r\nb\r\n") == "INSERTED 3\r\n");
}

TEST_CASE("stats-tubes has a line for each tube that is allowed, on pages of the same tubes") {
  Admitted talk({kOpenTubes});
  auto other = talk.connect();
  for (const char* const tube : {"open.a", "x", "y", "open.b", "z", "also"}) {
    send(*other, "put-in-tube " + std::string(tube) + " 0 0 60 1\r\nb\r\n");
  }
  auto client = talk.connect_as("open");
  std::string names;
  std::string from = "0";
  do {
    const std::string page = send(*client, "stats-tubes " + from + " 2\r\n");
    const std::size_t next = page.find("next ") + 5;
    from = page.substr(next, page.find('\n', next) - next);
    for (std::size_t at = page.find("\n- ", page.find("name urgent")); at != std::string::npos;
         at = page.find("\n- ", at + 1)) {
      names += page.substr(at + 3, page.find(' ', at + 3) - at - 3) + " ";
    }
  } while (from != "0");
  CHECK(names == "open.a open.b also ");
}

TEST_CASE("list-clients shows a role with tubes the clients of this role only") {
  Role spaced = role_of_families("two words: a #1", "i");
  Admitted talk({kOpenTubes, spaced, role_of_families("other", "i", {"x"})});
  const auto clients = [&](Conversation& client) {
    const std::string page = send(client, "list-clients\r\n");
    const std::string_view columns = "id address role used waiting held idle watched\n";
    const std::size_t begin = page.find(columns) + columns.size();
    return page.substr(begin, page.size() - begin - 2);
  };
  auto unrestricted = talk.connect();
  auto first = talk.connect_as("open");
  auto second = talk.connect_as("two words: a #1");
  auto third = talk.connect_as("other");
  auto fourth = talk.connect_as("open");
  auto unauthenticated = talk.connect_with_token();
  send(*fourth, "use open.a\r\n");
  const std::string all =
      "- 0 - - default 0 0 0 default\n"
      "- 1 - open default 0 0 0 default\n"
      "- 2 - two_words__a__1 default 0 0 0 default\n"
      "- 3 - other default 0 0 0 default\n"
      "- 4 - open open.a 0 0 0 default\n"
      "- 5 - - default 0 0 0 default\n";
  CHECK(clients(*unrestricted) == all);
  CHECK(clients(*second) == all);
  CHECK(clients(*first) == "- 1 - open default 0 0 0 default\n- 4 - open open.a 0 0 0 default\n");
  CHECK(clients(*third) == "- 3 - other default 0 0 0 default\n");
  CHECK(send(*unauthenticated, "list-clients\r\n") == "UNAUTHORIZED\r\n");
}

TEST_CASE("capabilities lists what the role may use") {
  Admitted talk({kFamilies[1], kOpenTubes, kFamilies[5]});
  const auto lists = [](Conversation& client, const std::string& name) {
    return send(client, "capabilities\r\n").find("- " + name + "\n") != std::string::npos;
  };
  auto producer = talk.connect_as("produce");
  for (const char* const name : {"put-in-tube", "put:idp", "capabilities", "set-caps", "time:ms"}) {
    CHECK(lists(*producer, name));
  }
  for (const char* const name :
       {"reserve-batch", "touch:seconds", "drain", "list-jobs", "auth:token", "auth"}) {
    CHECK_FALSE(lists(*producer, name));
  }
  auto open = talk.connect_as("open");
  CHECK(lists(*open, "move-job"));
  CHECK_FALSE(lists(*open, "drain"));  // which concerns all tubes
  auto all = talk.connect_as("all");
  auto unrestricted = talk.connect();
  CHECK(send(*all, "capabilities\r\n") == send(*unrestricted, "capabilities\r\n"));
}

TEST_CASE("the body of a command that is refused is read and dropped, however it is cut") {
  Role small = role_of_families("small", "p");
  small.limits.job_bytes = 2;
  small.limits.put_rate = 1;
  const std::string input =
      "put 0 0 60 5\r\ndrain\r\nlist-tube-used\r\nput-in-tube open.a 0 0 60 2\r\n\r\n\r\n"
      "put 0 0 60 1 max:1:open.b\r\nb\r\nput 0 0 60 0\r\n\r\nput 0 0 60 1\r\nbb\r\nwatch t\r\n";
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"none",
       "DENIED\r\nUSING default\r\nDENIED\r\nDENIED\r\nDENIED\r\nEXPECTED_CRLF\r\nDENIED\r\n"},
      {"open",
       "DENIED\r\nUSING default\r\nINSERTED 1\r\nDENIED\r\nDENIED\r\nEXPECTED_CRLF\r\nWATCHING 2"
       "\r\n"},
      {"small",
       "JOB_TOO_BIG\r\nUSING default\r\nINSERTED 1\r\nOUT_OF_MEMORY\r\nOUT_OF_MEMORY\r\n"
       "EXPECTED_CRLF\r\nDENIED\r\n"}};
  Role open = kOpenTubes;
  open.tubes.emplace_back("t");
  for (const auto& entry : expected) {
    const std::string& role = entry.first;
    const std::string& replies = entry.second;
    for (std::size_t cut = 0; cut <= input.size(); ++cut) {
      CAPTURE(cut);
      CAPTURE(role);
      Admitted talk({kFamilies[0], open, small});
      auto client = talk.connect_as(role);
      std::string all = send(*client, input.substr(0, cut));
      all += send(*client, input.substr(cut));
      CHECK(all == replies);
      CHECK_FALSE(talk.service.draining());
      talk.service.engine().check_invariants();
    }
    Admitted talk({kFamilies[0], open, small});
    auto client = talk.connect_as(role);
    std::string all;
    for (const char byte : input) all += send(*client, {&byte, 1});
    CHECK(all == replies);
  }
}

// --- The role changes while a command is under way

namespace {

// The roles before and after: the client loses a tube, or its right to the family.
struct Loss {
  std::string_view name;
  Role after;
};

std::vector<Loss> losses() {
  std::vector<Loss> all = {{"a tube", kOpenTubes}, {"the families", kOpenTubes}};
  all[0].after.tubes = {"also"};
  Role& without = all[1].after;
  without.produce = without.work = without.inspect = without.admin = false;
  return all;
}

}  // namespace

TEST_CASE("a put is denied if its role has lost the tube or the verb while the body arrived") {
  for (const Loss& loss : losses()) {
    for (const std::string line :
         {"put 0 0 60 3\r\n", "put 0 0 60 3 con:k\r\n", "put-in-tube open.a 0 0 60 3\r\n",
          "put-in-tube open.a 0 0 60 3 idp:k\r\n", "put 0 0 60 0\r\n"}) {
      const std::string body = line == "put 0 0 60 0\r\n" ? "\r\n" : "abc\r\n";
      for (std::size_t arrived = 0; arrived < body.size(); ++arrived) {
        CAPTURE(loss.name);
        CAPTURE(line);
        CAPTURE(arrived);
        Admitted talk({kOpenTubes});
        auto client = talk.connect_as("open");
        send(*client, "use open.a\r\n");
        CHECK(send(*client, line + body.substr(0, arrived)).empty());
        talk.service.set_roles({loss.after});
        CHECK(send(*client, body.substr(arrived) + "list-tube-used\r\n") ==
              "DENIED\r\nUSING open.a\r\n");
        CHECK(talk.service.engine().memory().bytes() == 0);
        CHECK(talk.service.engine().info().total_jobs == 0);
        CHECK(talk.audited.back() ==
              Audited{What::denied, line.substr(0, line.find(' ')),
                      line.starts_with("put-in") || loss.name == "a tube" ? "open.a" : "", "peer",
                      "open"});
        talk.service.engine().check_invariants();
      }
    }
  }
}

TEST_CASE("a put is denied if the tube of its dead jobs was lost while the body arrived") {
  Admitted talk({role_of_families("r", "p", {"a", "b"})});
  auto client = talk.connect_as("r");
  send(*client, "put-in-tube a 0 0 60 1 max:1:b\r\n");
  talk.service.set_roles({role_of_families("r", "p", {"a"})});
  CHECK(send(*client, "x\r\n") == "DENIED\r\n");
}

TEST_CASE("a put of a role that still has its rights after a reload is inserted") {
  Admitted talk({kOpenTubes});
  auto client = talk.connect_as("open");
  CHECK(send(*client, "put-in-tube open.a 0 0 60 1 idp:k\r\n").empty());
  Role other = kOpenTubes;
  other.inspect = false;
  talk.service.set_roles({other});
  CHECK(send(*client, "x\r\n") == "INSERTED 1\r\n");
}

TEST_CASE("a body that does not end in CR LF is answered so, whatever the role has lost") {
  Admitted talk({kOpenTubes});
  auto client = talk.connect_as("open");
  send(*client, "put-in-tube open.a 0 0 60 1\r\n");
  talk.service.set_roles({losses()[0].after});
  CHECK(send(*client, "xyz\r\n") == "EXPECTED_CRLF\r\n");
  CHECK(talk.service.engine().memory().bytes() == 0);
}

TEST_CASE("bodies that arrive together create no more tubes than the role may have") {
  Role role = role_of_families("few", "p");
  role.limits.tubes = 2;  // with default
  Admitted talk({role});
  auto first = talk.connect_as("few");
  auto second = talk.connect_as("few");
  CHECK(send(*first, "put-in-tube a 0 0 60 1\r\n").empty());
  CHECK(send(*second, "put-in-tube b 0 0 60 1\r\n").empty());
  CHECK(send(*first, "x\r\n") == "INSERTED 1\r\n");
  CHECK(send(*second, "x\r\n") == "OUT_OF_MEMORY\r\n");
  CHECK(send(*second, "put-in-tube a 0 0 60 1\r\nx\r\n") == "INSERTED 2\r\n");
  CHECK(talk.service.engine().info().tubes == 2);
}

TEST_CASE("a command in slices ends where its role loses the tube or the verb") {
  const std::vector<std::pair<std::string, JobState>> lines = {
      {"kick 100\r\n", JobState::delayed},
      {"kick-tube open.a 100\r\n", JobState::delayed},
      {"flush-tube open.a delayed\r\n", JobState::delayed},
      {"move-jobs open.a delayed also\r\n", JobState::delayed},
      {"move-jobs open.a delayed open.b\r\n", JobState::delayed},
      {"touch-all\r\n", JobState::reserved}};
  for (const Loss& loss : losses()) {
    for (const auto& entry : lines) {
      const std::string& line = entry.first;
      if (line == "touch-all\r\n" && loss.name == "a tube") continue;  // it concerns no tube
      CAPTURE(loss.name);
      CAPTURE(line);
      Admitted talk({kOpenTubes}, {.work_per_turn = 10});
      auto client = talk.connect_as("open");
      send(*client, "use open.a\r\nwatch open.a\r\nignore default\r\n");
      const bool held = entry.second == JobState::reserved;
      for (int i = 0; i < 35; ++i) {
        send(*client, held ? "put 0 0 60 1\r\nb\r\n" : "put 0 9 60 1\r\nb\r\n");
      }
      if (held) send(*client, "reserve-batch 35\r\n");
      client->receive(line);
      // Later input of other clients overwrites its arguments.
      auto other = talk.connect();
      send(*other, "list-tube-used                        \r\n");
      talk.service.set_roles({loss.after});
      CHECK(send(*client, "list-tube-used\r\n") == "DENIED\r\nUSING open.a\r\n");
      const auto tube = talk.service.engine().queries().tube_info(talk.service.now(), "open.a");
      REQUIRE(tube);
      CHECK((held ? tube->jobs.reserved : tube->jobs.delayed) >= (held ? 35U : 15U));
      talk.service.engine().check_invariants();
    }
  }
}

TEST_CASE("a list of tubes ends where its role loses the verb, and is whole once it has begun") {
  const auto begin = [](Admitted& talk, Conversation& client, std::uint64_t output_bytes) {
    talk.service.set_limits({.work_per_turn = 10},
                            {.line_bytes = 224, .output_bytes = output_bytes});
    auto other = talk.connect();
    for (int i = 0; i < 10'000; ++i) {
      send(*other, "put-in-tube t" + std::to_string(i) + " 0 0 60 0\r\n\r\n");
    }
    client.receive("list-tubes\r\n");
    return protocol::take_replies(client.replies());
  };
  {
    Admitted talk({kFamilies[3]});
    auto client = talk.connect_as("inspect");
    CHECK(begin(talk, *client, 1 << 20).empty());
    talk.service.set_roles({kFamilies[0], role_of_families("inspect", "")});
    CHECK(send(*client, "list-tube-used\r\n") == "DENIED\r\nUSING default\r\n");
  }
  {
    Admitted talk({kFamilies[3]});
    auto client = talk.connect_as("inspect");
    std::string reply = begin(talk, *client, 100);
    while (reply.empty()) {
      client->resume();
      reply = protocol::take_replies(client->replies());
    }
    talk.service.set_roles({role_of_families("inspect", "")});
    reply += send(*client, "list-tubes\r\n");
    CHECK(reply.find("\n- t9999\n") != std::string::npos);
    CHECK(reply.ends_with("\r\nDENIED\r\n"));
  }
}

TEST_CASE("a batch is denied, and its job comes back, if the role has lost the tube meanwhile") {
  for (const Loss& loss : losses()) {
    CAPTURE(loss.name);
    Admitted talk({kOpenTubes});
    auto client = talk.connect_as("open");
    send(*client, "watch open.a\r\nignore default\r\n");
    client->receive("reserve-batch 10 60\r\n");
    REQUIRE(client->waiting());
    auto other = talk.connect();
    send(*other, "put-in-tube open.a 0 0 60 1\r\na\r\n");
    CHECK(talk.service.engine().queries().holder_of(1) == client->session());
    talk.service.set_roles({loss.after});
    CHECK(Talk::replies_of(*client) == "DENIED\r\n");
    talk.service.engine().check_invariants();
    CHECK(send(*other, "reserve-job 1\r\n") == "RESERVED 1 1\r\na\r\n");
    CHECK(send(*client, "list-tube-used\r\n") == "USING default\r\n");
  }
}

TEST_CASE("a batch that has lost its tube and its job is denied") {
  for (const std::string_view removal : {"delete-force 1\r\n", "truncate open.a\r\n"}) {
    Admitted talk({kOpenTubes});
    auto client = talk.connect_as("open");
    send(*client, "watch open.a\r\nignore default\r\n");
    client->receive("reserve-batch 10 60\r\n");
    auto other = talk.connect();
    send(*other, "put-in-tube open.a 0 0 60 1\r\na\r\n" + std::string(removal));
    talk.service.set_roles({losses()[0].after});
    CHECK(Talk::replies_of(*client) == "DENIED\r\n");
    CHECK_FALSE(talk.service.engine().holds_jobs(client->session()));
    talk.service.engine().check_invariants();
  }
}

TEST_CASE("a wait ends with NOT_FOUND when its job moves to a tube that the role may not use") {
  for (const std::string_view move :
       {"move-job 1 secret\r\n", "move-jobs open.a ready secret\r\n"}) {
    CAPTURE(move);
    Admitted talk({kOpenTubes});
    auto other = talk.connect();
    send(*other, "put-in-tube open.a 0 0 60 1\r\na\r\n");
    auto first = talk.connect_as("open");
    auto unrestricted = talk.connect();
    auto second = talk.connect_as("open");
    for (Conversation* client : {first.get(), unrestricted.get(), second.get()}) {
      client->receive("wait 60 1\r\n");
      CHECK(client->waiting());
    }
    // It stays visible.
    CHECK(send(*other, "move-job 1 open.b\r\nmove-job 1 open.a\r\n") == "MOVED\r\nMOVED\r\n");
    CHECK(first->waiting());
    CHECK(send(*other, move).starts_with("MOVED"));
    CHECK(Talk::replies_of(*first) == "NOT_FOUND\r\n");
    CHECK(Talk::replies_of(*second) == "NOT_FOUND\r\n");
    CHECK(unrestricted->waiting());
    CHECK(send(*first, "wait 60 1\r\n") == "NOT_FOUND\r\n");
    talk.service.engine().check_invariants();
    CHECK(send(*other, "delete 1\r\n") == "DELETED\r\n");
    CHECK(Talk::replies_of(*unrestricted) == "DELETED 1\r\n");
    CHECK(Talk::replies_of(*first).empty());
  }
}

TEST_CASE("clients of a role set no further value of a policy while as many are set as it may") {
  Role role = role_of_families("few", "a", {"a", "b"});
  role.limits.policies = 2;
  Admitted talk({role});
  auto client = talk.connect_as("few");
  auto other = talk.connect();
  CHECK(send(*client, "tube-policy a max-jobs 5\r\n") == "POLICY_SET\r\n");
  CHECK(send(*other, "tube-policy z max-jobs 5\r\n") == "POLICY_SET\r\n");
  CHECK(send(*client, "tube-policy a max-attempts 5\r\n") == "OUT_OF_MEMORY\r\n");
  CHECK(send(*client, "tube-policy b max-jobs 5\r\n") == "OUT_OF_MEMORY\r\n");
  CHECK(talk.service.counters().count_of(stats::Counter::policy_limit) == 2);
  // A value that is set gets another, or is taken away, and a policy is shown.
  CHECK(send(*client, "tube-policy a max-jobs 6\r\n") == "POLICY_SET\r\n");
  CHECK(send(*client, "tube-policy b max-jobs -\r\n") == "POLICY_SET\r\n");
  CHECK(send(*client, "tube-policy a\r\n").starts_with("OK "));
  CHECK(send(*client, "tube-policy a max-jobs -\r\ntube-policy b max-jobs 1\r\n") ==
        "POLICY_SET\r\nPOLICY_SET\r\n");
  CHECK(send(*other, "tube-policy a ttl 5\r\n") == "POLICY_SET\r\n");
}
