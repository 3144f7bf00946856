// The command reload: its answer, and what happens until the answer is there.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "tests/commands/admitted.h"

namespace tubed::commands {

namespace {

using What = AuditEvent::What;

const Role kAdmin = role_of_families("admin", "pwia");

std::string block_of(std::string_view changed, std::string_view needs_restart) {
  const std::string block = "---\nchanged: [" + std::string(changed) + "]\nneeds-restart: [" +
                            std::string(needs_restart) + "]\n";
  return "OK " + std::to_string(block.size()) + "\r\n" + block + "\r\n";
}

// A server whose reloads are pending until the test says so.
struct Pending final : Admitted {
  Pending() : Admitted({kAdmin}) {
    host.answer_to_reload = [this](SessionId session) {
      asked.push_back(session);
      return std::optional<ReloadResult>();
    };
  }
  // Ends the reload for this client. Returns what it receives.
  static std::string end(Conversation& conversation, ReloadResult result) {
    conversation.command().reloaded(std::move(result));
    return replies_of(conversation);
  }

  std::vector<SessionId> asked;
};

}  // namespace

TEST_CASE("reload answers with the keys, or with the reason") {
  Talk talk;
  auto client = talk.connect();
  CHECK(Talk::exchange(*client, "reload\r\n") == block_of("", ""));
  talk.host.answer_to_reload = [](SessionId) {
    return ReloadResult{
        .changed = {"auth.tokens", "log.level"}, .needs_restart = {"user"}, .refusal = {}};
  };
  CHECK(Talk::exchange(*client, "reload\r\n") == block_of("auth.tokens, log.level", "user"));
  talk.host.answer_to_reload = [](SessionId) { return ReloadResult{.refusal = "no file"}; };
  CHECK(Talk::exchange(*client, "reload\r\n") == "NOT_RELOADED no file\r\n");
  CHECK(Talk::exchange(*client, "reload x\r\n") == "BAD_FORMAT\r\n");
}

TEST_CASE("the reason for a refused reload is a line of printable characters") {
  Talk talk;
  auto client = talk.connect();
  std::string reason = "a\r\nb\x1b\x7f\xc3\xa4";
  talk.host.answer_to_reload = [&](SessionId) { return ReloadResult{.refusal = reason}; };
  CHECK(Talk::exchange(*client, "reload\r\n") == "NOT_RELOADED a??b????\r\n");
  reason.assign(5000, 'x');
  CHECK(Talk::exchange(*client, "reload\r\n") == "NOT_RELOADED " + std::string(900, 'x') + "\r\n");
}

TEST_CASE("a client that waits for a reload runs nothing meanwhile, and then what it has sent") {
  Pending talk;
  auto client = talk.connect();
  CHECK(Talk::exchange(*client, "use a\r\nreload\r\nuse b\r\n") == "USING a\r\n");
  CHECK(client->command().awaits_reload());
  CHECK_FALSE(client->can_resume());
  CHECK_FALSE(client->wants_input());
  CHECK_FALSE(client->idle());
  CHECK(talk.asked == std::vector<SessionId>{client->session()});
  CHECK(Pending::end(*client, {.changed = {"role"}, .needs_restart = {}, .refusal = {}}) ==
        block_of("role", "") + "USING b\r\n");
  CHECK_FALSE(client->command().awaits_reload());
  CHECK(Talk::exchange(*client, "list-tube-used\r\n") == "USING b\r\n");
}

TEST_CASE("a client that half-closes still gets the answer to its reload") {
  Pending talk;
  auto client = talk.connect();
  CHECK(Talk::exchange(*client, "reload\r\n").empty());
  client->end_input();
  CHECK(client->command().awaits_reload());
  CHECK_FALSE(client->finished());
  CHECK(talk.asked.size() == 1);
  CHECK(Pending::end(*client, {.refusal = "no"}) == "NOT_RELOADED no\r\n");
  CHECK(client->finished());
}

TEST_CASE("a stop answers clients that wait for a reload") {
  Pending talk;
  auto client = talk.connect();
  CHECK(Talk::exchange(*client, "reload\r\nuse b\r\n").empty());
  client->stop_waiting();
  CHECK_FALSE(client->command().awaits_reload());
  CHECK(Talk::replies_of(*client) == "NOT_RELOADED the server is stopping\r\nUSING b\r\n");
}

TEST_CASE("a client that is abandoned runs nothing more") {
  Pending talk;
  auto client = talk.connect();
  CHECK(Talk::exchange(*client, "reload\r\nuse b\r\n").empty());
  client->abandon();
  CHECK(Talk::replies_of(*client).empty());
  CHECK(client->finished());
}

TEST_CASE("a reload that takes the right to reload is answered with its result") {
  Pending talk;
  auto client = talk.connect_as("admin");
  CHECK(Talk::exchange(*client, "reload\r\nreload\r\n").empty());
  Role less = kAdmin;
  less.admin = false;
  talk.service.set_roles({less});
  CHECK(Pending::end(*client, {.changed = {"role"}, .needs_restart = {}, .refusal = {}}) ==
        block_of("role", "") + "DENIED\r\n");
  CHECK(talk.audited ==
        std::vector<Audited>{{What::ran, "reload", "", "peer", "admin", "", {}, "OK"},
                             {What::denied, "reload", "", "peer", "admin"}});
}

TEST_CASE("a reload that takes the role of its client answers it, and runs nothing more") {
  Pending talk;
  auto client = talk.connect_as("admin");
  CHECK(Talk::exchange(*client, "reload\r\nuse b\r\n").empty());
  talk.service.set_roles({});
  client->command().close_after_reload();
  CHECK_FALSE(client->finished());
  CHECK(Pending::end(*client, {.changed = {"role"}, .needs_restart = {}, .refusal = {}}) ==
        block_of("role", ""));
  CHECK(client->finished());
}

TEST_CASE("the audit has the reload of a client that leaves before the answer") {
  Pending talk;
  auto client = talk.connect_as("admin");
  CHECK(Talk::exchange(*client, "reload\r\n").empty());
  client.reset();
  CHECK(talk.audited ==
        std::vector<Audited>{{What::ran, "reload", "", "peer", "admin", "", {}, ""}});
}

TEST_CASE("a role with tubes of its own may not reload") {
  Pending talk;
  talk.service.set_roles({role_of_families("some", "pwia", {"mail.*"})});
  auto client = talk.connect_as("some");
  CHECK(Talk::exchange(*client, "reload\r\n") == "DENIED\r\n");
  CHECK(talk.asked.empty());
}

}  // namespace tubed::commands
