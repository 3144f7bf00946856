// Tokens: what a client may send before it has authenticated, and what `auth` does. Then what a
// role's clients share: limits, the reload of the roles, and the audit.
#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "commands/table.h"
#include "tests/commands/admitted.h"

using namespace tubed;
using namespace tubed::commands;
using namespace std::chrono_literals;

namespace {

using What = AuditEvent::What;

const Role kProducer = role_of_families("producer", "p");
const Role kWorker = role_of_families("worker", "w");
const Role kAdmin = role_of_families("admin", "pwia");
const Role kMail = role_of_families("mail", "pwi", {"mail.*"});

std::string send_to(Conversation& client, std::string_view bytes) {
  return Talk::exchange(client, bytes);
}

// All lines of stats but the memory of stored input, of which a client that sends single bytes has
// some.
std::string stats_of(const Admitted& talk) {
  std::string stats = talk.stats();
  const std::size_t at = stats.find("input-memory:");
  return stats.erase(at, stats.find('\n', at) - at);
}

// Sends the bytes whole to one client and one by one to another, which get the same replies.
std::string reply_before_authentication(Admitted& talk, const std::string& bytes) {
  auto whole = talk.connect_with_token();
  auto cut = talk.connect_with_token();
  const std::string before = stats_of(talk);
  const std::string reply = send_to(*whole, bytes);
  std::string replies_to_cut;
  for (const char byte : bytes) replies_to_cut += send_to(*cut, {&byte, 1});
  CHECK(replies_to_cut == reply);
  CHECK(whole->finished() == cut->finished());
  CHECK(stats_of(talk) == before);
  CHECK(whole->in_body() == false);
  return whole->finished() ? reply + "closed" : reply;
}

std::string repeated(std::string_view text, std::size_t bytes) {
  std::string all;
  while (all.size() < bytes) all += text;
  return all;
}

}  // namespace

TEST_CASE("before authentication each command but three is refused, and changes nothing") {
  for (const Command& command : command_table()) {
    if (command.access == Access::open) continue;
    const std::string line = line_with(command, "a", 1, "b");
    CAPTURE(line);
    Admitted talk({kAdmin});
    auto other = talk.connect();
    send_to(*other, "put 0 0 60 1\r\nx\r\n");
    // Commands that follow are not run.
    CHECK(reply_before_authentication(talk, line + "auth admin\r\nlist-tube-used\r\n") ==
          "UNAUTHORIZED\r\nclosed");
    const Audited expected{What::unauthorized, std::string(command.name), "", "", ""};
    CHECK(talk.audited == std::vector<Audited>{expected, expected});
  }
}

TEST_CASE("before authentication every other line is refused") {
  Admitted talk({kAdmin});
  const std::string nul(1, '\0');
  for (const std::string& line : {std::string(),
                                  std::string("foo"),
                                  std::string("put 1"),
                                  std::string("list-tubes x"),
                                  "auth" + nul,
                                  "auth adm" + nul + "in",
                                  std::string("auth"),
                                  std::string("auth "),
                                  std::string("auth  admin"),
                                  std::string("auth admin "),
                                  std::string("auth admin x"),
                                  std::string("auth wrong"),
                                  std::string("AUTH admin"),
                                  std::string("capabilities x"),
                                  "quit" + nul,
                                  std::string(" quit"),
                                  "auth " + std::string(218, 't'),
                                  std::string(300, 'x'),
                                  std::string("put 0 0 60 5"),
                                  std::string("test-clock"),
                                  "put " + nul}) {
    CAPTURE(line);
    CHECK(reply_before_authentication(talk, line + "\r\n") == "UNAUTHORIZED\r\nclosed");
  }
  // A line without an end, of as many bytes as a line may have.
  CHECK(reply_before_authentication(talk, std::string(223, 'x')).empty());
  CHECK(reply_before_authentication(talk, std::string(224, 'x')) == "UNAUTHORIZED\r\nclosed");
}

TEST_CASE("before authentication a client may quit and ask for the capabilities") {
  Admitted talk({kAdmin});
  CHECK(reply_before_authentication(talk, "quit\r\nauth admin\r\n") == "closed");
  CHECK(reply_before_authentication(talk, "quit now\r\n") == "closed");
  const std::string block = "---\n- auth:token\n- capabilities\n";
  const std::string ok = "OK " + std::to_string(block.size()) + "\r\n" + block + "\r\n";
  CHECK(reply_before_authentication(talk, "capabilities\r\ncapabilities\r\n") == ok + ok);
  CHECK(reply_before_authentication(talk, "capabilities\r\nput 0 0 60 1\r\n") ==
        ok + "UNAUTHORIZED\r\nclosed");
}

TEST_CASE("a right token gives the role, and only then is a command counted") {
  Admitted talk({kAdmin});
  auto client = talk.connect_with_token();
  CHECK(client->awaits_authentication());
  const std::string input = "auth admin\r\nput 0 0 60 1\r\nx\r\nreserve\r\ncapabilities\r\n";
  const std::string replies = send_to(*client, input);
  CHECK(replies.starts_with("AUTHENTICATED\r\nINSERTED 1\r\nRESERVED 1 1\r\nx\r\nOK "));
  CHECK(replies.find("- auth:token\n") != std::string::npos);
  CHECK(replies.find("- auth\n") == std::string::npos);
  CHECK_FALSE(client->awaits_authentication());
  CHECK(client->principal()->name() == "client of admin");
  CHECK(talk.stats().find("\ncmd-auth: 1\n") != std::string::npos);
  for (std::size_t cut = 0; cut <= input.size(); ++cut) {
    Admitted fresh({kAdmin});
    auto same = fresh.connect_with_token();
    std::string all = send_to(*same, input.substr(0, cut));
    CHECK(all + send_to(*same, input.substr(cut)) == replies);
  }
}

TEST_CASE("a longest token fits into a line") {
  const std::string token = repeated("t", 217);
  Admitted talk({role_of_families(token, "p")});
  auto client = talk.connect_with_token();
  CHECK(send_to(*client, "auth " + token + "\r\n") == "AUTHENTICATED\r\n");
}

TEST_CASE("another token changes the role, and a wrong one closes the connection") {
  Admitted talk({kProducer, kWorker});
  auto client = talk.connect_with_token();
  CHECK(send_to(*client, "auth producer\r\nput 0 0 60 1\r\nx\r\nreserve\r\n") ==
        "AUTHENTICATED\r\nINSERTED 1\r\nDENIED\r\n");
  CHECK(send_to(*client, "auth worker\r\nput 0 0 60 1\r\nx\r\nreserve\r\n") ==
        "AUTHENTICATED\r\nDENIED\r\nRESERVED 1 1\r\nx\r\n");
  CHECK(talk.service.roles().find("producer")->conversations() == 0);
  CHECK(talk.service.roles().find("worker")->conversations() == 1);
  for (const std::string& line :
       {std::string("auth wrong"), std::string("auth"), std::string("auth "),
        std::string("auth a b"), "auth " + std::string(300, 't'),
        std::string("auth worker") + std::string(1, '\0')}) {
    CAPTURE(line);
    auto other = talk.connect_with_token();
    CHECK(send_to(*other, "auth worker\r\n" + line + "\r\nlist-tube-used\r\n") ==
          "AUTHENTICATED\r\nUNAUTHORIZED\r\n");
    CHECK(other->finished());
  }
}

TEST_CASE("auth is an unknown command where no tokens are taken") {
  const std::string nul(1, '\0');
  for (const bool with_role : {false, true}) {
    Admitted talk({kAdmin});
    auto client = with_role ? talk.connect_as("admin") : talk.connect();
    CHECK(send_to(*client, "auth\r\nauth \r\nauth admin\r\nauth a b\r\n") ==
          "UNKNOWN_COMMAND\r\nUNKNOWN_COMMAND\r\nUNKNOWN_COMMAND\r\nUNKNOWN_COMMAND\r\n");
    // As for every other word.
    for (const std::string& rest : {" a" + nul, " " + std::string(300, 't')}) {
      CHECK(send_to(*client, "auth" + rest + "\r\n") == send_to(*client, "hello" + rest + "\r\n"));
    }
    CHECK(talk.service.counters().count_of(stats::Counter::unknown_command) == 4);
    CHECK(talk.stats().find("\ncmd-auth: 0\n") != std::string::npos);
  }
}

TEST_CASE("a refusal may come later, and until then the client is not served") {
  Admitted talk({kAdmin});
  auto client = talk.connect_with_token();
  CHECK(send_to(*client, "auth later\r\nauth admin\r\n").empty());
  CHECK(client->principal()->awaits_refusal());
  CHECK_FALSE(client->finished());
  CHECK_FALSE(client->wants_input());
  CHECK_FALSE(client->can_resume());
  CHECK_FALSE(client->waiting());
  CHECK(send_to(*client, "auth admin\r\n").empty());
  client->half_close();
  CHECK_FALSE(client->finished());
  client->refuse();
  CHECK(Talk::replies_of(*client) == "UNAUTHORIZED\r\n");
  CHECK(client->finished());
  // It may close before.
  auto other = talk.connect_with_token();
  send_to(*other, "auth admin\r\nput 0 0 60 1\r\nx\r\nreserve\r\nauth later\r\n");
  CHECK(other->principal()->awaits_refusal());
  other.reset();
  talk.service.engine().check_invariants();
}

TEST_CASE("a role has no more clients by token than its limit") {
  Role one = kWorker;
  one.limits.connections = 1;
  Admitted talk({one, kProducer});
  auto first = talk.connect_with_token();
  CHECK(send_to(*first, "auth worker\r\nauth worker\r\n") == "AUTHENTICATED\r\nAUTHENTICATED\r\n");
  CHECK(talk.service.roles().find("worker")->is_full());
  auto second = talk.connect_with_token();
  CHECK(send_to(*second, "auth worker\r\nlist-tube-used\r\n") == "OUT_OF_MEMORY\r\n");
  CHECK(second->finished());
  CHECK(talk.audited ==
        std::vector<Audited>{{What::role_full, "auth", "", "client of worker", "worker"}});
  first.reset();
  auto third = talk.connect_with_token();
  CHECK(send_to(*third, "auth worker\r\n") == "AUTHENTICATED\r\n");
}

TEST_CASE("the puts of all clients of a role share its rate") {
  Role limited = kProducer;
  limited.limits.put_rate = 3;
  Admitted talk({limited});
  auto a = talk.connect_as("producer");
  auto b = talk.connect_as("producer");
  const auto put = [&](Conversation& client) {
    const std::string reply = send_to(client, "put 0 0 60 1\r\nx\r\n");
    return reply != "OUT_OF_MEMORY\r\n";
  };
  CHECK(put(*a));
  CHECK(put(*b));
  CHECK(put(*a));
  CHECK_FALSE(put(*a));
  CHECK_FALSE(put(*b));
  talk.advance(334ms);
  CHECK(put(*b));
  CHECK_FALSE(put(*a));
  talk.advance(10s);  // not more than a second's puts at once
  int puts = 0;
  while (put(*a)) ++puts;
  CHECK(puts == 3);
  CHECK(talk.service.counters().count_of(stats::Counter::put_rate) == 4);
  // A put that the server refuses takes nothing.
  talk.advance(10s);
  talk.service.set_draining(true);
  for (int i = 0; i < 9; ++i) CHECK(send_to(*a, "put 0 0 60 1\r\nx\r\n") == "DRAINING\r\n");
  talk.service.set_draining(false);
  CHECK(put(*a));
}

TEST_CASE("the limits of a role are below those of the server") {
  Role limited = role_of_families("limited", "pwia");
  limited.limits = {.job_bytes = 3, .job_memory = 2000, .tubes = 3};
  Admitted talk({limited});
  auto other = talk.connect();
  auto client = talk.connect_as("limited");
  CHECK(send_to(*client, "put 0 0 60 3\r\nabc\r\nput 0 0 60 4\r\nabcd\r\nput 0 0 60 0\r\n\r\n") ==
        "INSERTED 1\r\nJOB_TOO_BIG\r\nINSERTED 2\r\n");
  // The tubes "default", "a" and "b".
  CHECK(send_to(*client, "use a\r\nwatch b\r\n") == "USING a\r\nWATCHING 2\r\n");
  CHECK(send_to(*client, "use a\r\nwatch b\r\nuse default\r\nuse a\r\n") ==
        "USING a\r\nWATCHING 2\r\nUSING default\r\nUSING a\r\n");
  CHECK(send_to(*client,
                "use c\r\nwatch c\r\nput-in-tube c 0 0 60 1\r\nx\r\nmove-job 1 c\r\n"
                "move-jobs default ready c\r\nmove-job 99 c\r\nmove-job 1 b\r\n") ==
        "OUT_OF_MEMORY\r\nOUT_OF_MEMORY\r\nOUT_OF_MEMORY\r\nOUT_OF_MEMORY\r\nOUT_OF_MEMORY\r\n"
        "NOT_FOUND\r\nMOVED\r\n");
  CHECK(send_to(*other, "use c\r\n") == "USING c\r\n");
  send_to(*other, "put 0 0 60 3000\r\n" + repeated("x", 3000) + "\r\n");
  CHECK(send_to(*client, "put 0 0 60 1\r\nx\r\nlist-tube-used\r\n") ==
        "OUT_OF_MEMORY\r\nUSING a\r\n");
  CHECK(send_to(*other, "put 0 0 60 1\r\nx\r\n").starts_with("INSERTED"));
}

TEST_CASE("a reload changes the rights of connected clients at once") {
  Admitted talk({kProducer, kWorker});
  auto client = talk.connect_as("producer");
  CHECK(send_to(*client, "reserve-with-timeout 0\r\n") == "DENIED\r\n");
  talk.service.set_roles({role_of_families("producer", "pw"), kWorker});
  CHECK(send_to(*client, "reserve-with-timeout 0\r\n") == "TIMED_OUT\r\n");
  talk.service.set_roles({role_of_families("producer", "pw", {"mail.*"}), kWorker});
  CHECK(send_to(*client, "reserve-with-timeout 0\r\nput 0 0 60 0\r\n\r\n") ==
        "DENIED\r\nDENIED\r\n");
  CHECK_FALSE(client->principal()->role()->removed());
}

TEST_CASE("a wait that the role no longer allows is answered") {
  Admitted talk({kMail, kWorker});
  auto other = talk.connect();
  const auto waits_on = [&](std::string_view line) {
    auto client = talk.connect_as("mail");
    CHECK(send_to(*client, "watch mail.a\r\nignore default\r\n") == "WATCHING 2\r\nWATCHING 1\r\n");
    CHECK(send_to(*client, line).empty());
    CHECK(client->waiting());
    return client;
  };
  send_to(*other, "put-in-tube mail.b 0 0 60 1\r\nx\r\n");
  auto plain = waits_on("reserve\r\nlist-tube-used\r\n");
  auto batch = waits_on("reserve-batch 5 60\r\n");
  auto waiter = waits_on("wait 60 1\r\n");
  auto stays = talk.connect_as("worker");
  CHECK(send_to(*stays, "reserve\r\n").empty());

  talk.service.set_roles({kMail, kWorker});  // nothing has changed
  CHECK_FALSE(talk.service.conversations().has_notified());
  talk.service.set_roles({role_of_families("mail", "pwi", {"post.*"}), kWorker});
  std::vector<SessionId> notified;
  talk.service.conversations().take_notified(notified);
  CHECK(notified == std::vector<SessionId>{plain->session(), batch->session(), waiter->session()});
  CHECK(Talk::replies_of(*plain) == "DENIED\r\nUSING default\r\n");
  CHECK(Talk::replies_of(*batch) == "DENIED\r\n");
  CHECK(Talk::replies_of(*waiter) == "NOT_FOUND\r\n");
  CHECK(stays->waiting());
  talk.service.engine().check_invariants();

  // The family is taken.
  talk.service.set_roles({kMail, kWorker});
  auto last = waits_on("reserve-with-timeout 60\r\n");
  talk.service.set_roles({role_of_families("mail", "p"), kWorker});
  CHECK(Talk::replies_of(*last) == "DENIED\r\n");
  CHECK(send_to(*other, "put-in-tube mail.a 0 0 60 1\r\nx\r\n") == "INSERTED 2\r\n");
  CHECK(Talk::replies_of(*last).empty());
}

TEST_CASE("a role that is removed has no rights, and its conversations know it") {
  Admitted talk({kMail, kWorker});
  auto worker = talk.connect_as("worker");
  auto mail = talk.connect_with_token();
  send_to(*mail, "auth mail\r\n");
  CHECK(send_to(*worker, "reserve\r\n").empty());
  talk.service.set_roles({});
  CHECK(worker->principal()->role()->removed());
  CHECK(mail->principal()->role()->removed());
  CHECK(talk.service.roles().find("worker") == nullptr);
  CHECK(Talk::replies_of(*worker) == "DENIED\r\n");
  CHECK(send_to(*worker, "reserve\r\nlist-tube-used\r\n") == "DENIED\r\nUSING default\r\n");
  worker.reset();
  mail.reset();
  // A role that is added again before its clients close is theirs again.
  talk.service.set_roles({kWorker});
  auto again = talk.connect_as("worker");
  talk.service.set_roles({});
  talk.service.set_roles({kWorker});
  CHECK_FALSE(again->principal()->role()->removed());
  CHECK(send_to(*again, "reserve-with-timeout 0\r\n") == "TIMED_OUT\r\n");
}

TEST_CASE(
    "a first line that is too long ends where its bytes end, whatever the authenticator says") {
  Admitted talk({kAdmin});
  talk.host.answer_to_token = [&](std::string_view) -> Authentication {
    return Granted{talk.service.roles().find("admin"), "anyone"};
  };
  auto client = talk.connect_with_token();
  CHECK(send_to(*client, "auth " + std::string(300, 't')).starts_with("AUTHENTICATED\r\n"));
}

TEST_CASE("the audit names the job, both tubes and how many jobs a command has changed") {
  Limits limits;
  limits.work_per_turn = 2;
  Admitted talk({kAdmin}, limits);
  auto admin = talk.connect_as("admin");
  for (int i = 0; i < 5; ++i) send_to(*admin, "put 0 100 60 1\r\nx\r\n");
  talk.audited.clear();
  send_to(*admin, "kick 3\r\nmove-jobs default ready other 2\r\ndelete-force 4\r\n");
  send_to(*admin, "delete-force 99\r\ntruncate other\r\n");
  CHECK(talk.audited ==
        std::vector<Audited>{
            {What::ran, "kick", "default", "peer", "admin", "", {}, "KICKED", 3},
            {What::ran, "move-jobs", "default", "peer", "admin", "other", {}, "MOVED", 2},
            {What::ran, "delete-force", "default", "peer", "admin", "", 4, "DELETED"},
            {What::ran, "delete-force", "", "peer", "admin", "", 99, "NOT_FOUND"},
            {What::ran, "truncate", "other", "peer", "admin", "", {}, "TRUNCATED", 2}});
  // A client that closes within a command in slices has changed some jobs.
  talk.audited.clear();
  for (int i = 0; i < 5; ++i) send_to(*admin, "put 0 100 60 1\r\nx\r\n");
  admin->receive("kick 5\r\n");
  CHECK(talk.audited.empty());
  admin.reset();
  REQUIRE(talk.audited.size() == 1);
  CHECK(talk.audited[0] == Audited{What::ran, "kick", "default", "peer", "admin", "", {}, "", 2});
}

TEST_CASE("the audit has what a command changed before its role lost the right to it") {
  Limits limits;
  limits.work_per_turn = 2;
  Admitted talk({kAdmin}, limits);
  auto admin = talk.connect_as("admin");
  for (int i = 0; i < 5; ++i) send_to(*admin, "put 0 100 60 1\r\nx\r\n");
  talk.audited.clear();
  admin->receive("kick 5\r\n");
  Role less = kAdmin;
  less.admin = false;
  talk.service.set_roles({less});
  send_to(*admin, "");
  CHECK(talk.audited ==
        std::vector<Audited>{{What::denied, "kick", "", "peer", "admin"},
                             {What::ran, "kick", "default", "peer", "admin", "", {}, "", 2}});
  // Its end has been reported.
  talk.audited.clear();
  admin.reset();
  CHECK(talk.audited.empty());
}

TEST_CASE("the audit has each command that was denied, and each of the family admin") {
  Admitted talk({kMail, kAdmin});
  auto other = talk.connect();
  send_to(*other, "put 0 0 60 1\r\nx\r\ndrain\r\nundrain\r\nkick 1\r\n");
  CHECK(talk.audited.empty());  // it has no role
  auto mail = talk.connect_as("mail");
  send_to(*mail, "use mail.a\r\nput 0 0 60 1\r\nx\r\nuse x\r\npeek 1\r\ndelete-batch 1 2\r\n");
  send_to(*mail, "kick 1\r\nreserve-with-timeout 0\r\npeek 99\r\nfoo\r\nuse default default\r\n");
  const std::string name = "peer";
  CHECK(talk.audited ==
        std::vector<Audited>{{What::denied, "use", "x", name, "mail"},
                             {What::hidden, "peek", "default", name, "mail"},
                             {What::hidden, "delete-batch", "default", name, "mail"},
                             {What::denied, "kick", "", name, "mail"},
                             {What::denied, "reserve-with-timeout", "default", name, "mail"}});
  talk.audited.clear();
  auto admin = talk.connect_with_token();
  send_to(
      *admin,
      "auth admin\r\nstats\r\ntube-policy a\r\npause-tube default 1\r\ndrain\r\nmove-job 1 b\r\n");
  send_to(*admin, "auth wrong\r\n");
  const std::string who = "client of admin";
  CHECK(talk.audited ==
        std::vector<Audited>{{What::ran, "pause-tube", "default", who, "admin", "", {}, "PAUSED"},
                             {What::ran, "drain", "", who, "admin", "", {}, "DRAINING"},
                             {What::ran, "move-job", "default", who, "admin", "b", 1, "MOVED"},
                             {What::unauthorized, "auth", "", who, "admin"}});
  for (const What what : {What::ran, What::denied, What::hidden, What::unauthorized}) {
    CHECK_FALSE(name_of(what).empty());
  }
}
