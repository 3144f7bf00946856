// Tokens, identities and the delays of failed attempts.
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/access_files.h"
#include "access/failed_attempts.h"
#include "access/identities.h"
#include "access/tokens.h"
#include "os/process.h"
#include "tests/loop/loopback.h"

using namespace tubed;
using namespace tubed::access;
using namespace tubed::serving;
using namespace std::chrono_literals;

namespace {

// SHA-256 of "abc". [FIPS 180-2, appendix B.1]
const std::string kHash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const std::string kOther(64, '0');

std::string error_of(const std::string& text) {
  const auto tokens = parse_tokens(text, "tokens");
  return tokens.ok() ? "" : tokens.error().message;
}

void write_file(const std::string& path, const std::string& text, mode_t mode = 0600) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  REQUIRE(file >= 0);
  REQUIRE(::fchmod(file, mode) == 0);
  REQUIRE(::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  ::close(file);
}

RoleSettings role(const std::string& name) {
  RoleSettings settings;
  settings.role.name = name;
  return settings;
}

std::string role_of(const std::optional<ClientIdentity>& identity) {
  return identity ? identity->role : "";
}

}  // namespace

TEST_CASE("a token has the hash that its line says") {
  const auto tokens = parse_tokens(
      "# of the web\n\n  web-1 sha256:" + kHash + "\r\nops sha256:" + kOther + "\n", "tokens");
  REQUIRE(tokens.ok());
  REQUIRE(tokens->size() == 2);
  CHECK((*tokens)[0].name == "web-1");
  CHECK((*tokens)[0].hash == hash_of("abc"));
  CHECK(find_token(*tokens, hash_of("abc")) == &(*tokens)[0]);
  CHECK(find_token(*tokens, hash_of("abd")) == nullptr);
  CHECK(parse_tokens("", "tokens")->empty());
  std::string upper = kHash;
  for (char& c : upper) c = static_cast<char>(c >= 'a' ? c - 'a' + 'A' : c);
  CHECK(parse_tokens("web sha256:" + upper, "tokens")->front().hash == hash_of("abc"));
}

TEST_CASE("a wrong line is named without its text") {
  const std::string name = "the name of a token has 1 to 64 letters, digits and -_.@";
  const std::string hash = "expected NAME sha256: and 64 hexadecimal digits";
  CHECK(error_of("tbd_secret") == "tokens:1: " + hash);
  CHECK(error_of("\n#\nweb sha1:" + kHash) == "tokens:3: " + hash);
  CHECK(error_of("web sha256:" + kHash + "0") == "tokens:1: " + hash);
  CHECK(error_of("web sha256:" + kHash.substr(1)) == "tokens:1: " + hash);
  CHECK(error_of("web sha256:g" + kHash.substr(1)) == "tokens:1: " + hash);
  CHECK(error_of("w/b sha256:" + kHash) == "tokens:1: " + name);
  CHECK(error_of(std::string(65, 'w') + " sha256:" + kHash) == "tokens:1: " + name);
  CHECK(error_of("web sha256:" + kHash + " more") == "tokens:1: unexpected text after the hash");
  CHECK(error_of("web sha256:" + kHash + "\nweb sha256:" + kOther) ==
        "tokens:2: another token has this name");
}

TEST_CASE("a file of tokens is secret and not endless") {
  const loop_test::Directory directory;
  const std::string file = directory.file("tokens");
  const auto error = [&] {
    const auto tokens = read_tokens(file);
    return tokens.ok() ? "" : tokens.error().message;
  };
  CHECK(error() == file + ": cannot read: No such file or directory");
  write_file(file, "web sha256:" + kHash, 0640);
  CHECK(error().empty());
  for (const mode_t mode : {0644U, 0604U, 0602U, 0660U}) {
    write_file(file, "", mode);
    CHECK(error().find("others may use this secret") != std::string::npos);
  }
  write_file(file, std::string((std::size_t{1} << 20) + 1, '\n'));
  CHECK(error() == file + ": larger than 1048576 bytes");
  ::unlink(file.c_str());
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  CHECK(error() == file + ": not a file");
}

TEST_CASE("a client has the role of its token, certificate, user or group") {
  const loop_test::Directory directory;
  Settings settings;
  settings.tokens = directory.file("tokens");
  write_file(settings.tokens, "web sha256:" + kHash + "\nunused sha256:" + kOther);
  settings.roles = {role("producer"), role("worker")};
  settings.roles[0].tokens = {"web", "missing"};
  settings.roles[0].subjects = {"CN=web,O=example"};
  settings.roles[0].groups = {"4711"};
  settings.roles[1].subjects = {"DNS:worker.example"};
  settings.roles[1].users = {"root"};
  const auto identities = Identities::load(settings);
  REQUIRE(identities.ok());

  CHECK(role_of(identities->of_token("abc")) == "producer");
  CHECK(identities->of_token("abc")->name == "token web");
  CHECK(!identities->of_token("abd"));
  CHECK(!identities->of_token(""));
  CHECK(identities->complaints() ==
        std::vector<std::string>{"role producer: no token missing in " + settings.tokens,
                                 settings.tokens + ": token unused: no role names it"});

  CHECK(role_of(identities->of_certificate({.subject = "CN=web,O=example"})) == "producer");
  CHECK(role_of(identities->of_certificate(
            {.subject = "CN=x", .names = {"DNS:other", "DNS:worker.example"}})) == "worker");
  CHECK(!identities->of_certificate({.subject = "CN=web"}));
  CHECK(!identities->of_certificate({}));

  CHECK(role_of(identities->of_process({.user = 0})) == "worker");
  CHECK(role_of(identities->of_process({.user = 1, .groups = {7, 4711}})) == "producer");
  CHECK(role_of(identities->of_process({.user = 0, .groups = {4711}})) == "worker");
  CHECK(!identities->of_process({.user = 4711, .groups = {7}}));
}

TEST_CASE("a user or a group in two roles is an error, in whatever way it is named") {
  Settings settings;
  settings.roles = {role("one"), role("two")};
  const auto error = [&] { return Identities::load(settings).error().message; };
  settings.roles[0].users = {"root"};
  settings.roles[1].users = {"0"};
  CHECK(error() == "role two: user 0 is user root, which is in the role one already");
  std::swap(settings.roles[0].users, settings.roles[1].users);
  CHECK(error() == "role two: user root is user 0, which is in the role one already");
  settings.roles[0].users = {"00", "0"};
  settings.roles[1].users.clear();
  CHECK(error() == "role one: user 0 is user 00, which is in the role one already");
  settings.roles[0].users.clear();
  settings.roles[0].groups = {"root"};
  settings.roles[1].groups = {"0"};
  CHECK(error() == "role two: group 0 is group root, which is in the role one already");
  // A user's own role takes precedence over the roles of its groups.
  settings.roles[0].groups = {"0"};
  settings.roles[1].groups.clear();
  settings.roles[1].users = {"0"};
  const auto identities = Identities::load(settings);
  REQUIRE(identities.ok());
  CHECK(role_of(identities->of_process({.user = 0, .groups = {0}})) == "two");
}

TEST_CASE("a user whose groups are in several roles gets no role") {
  Settings settings;
  settings.roles = {role("one"), role("two")};
  settings.roles[0].groups = {"4711", "4712"};
  settings.roles[1].groups = {"4713"};
  settings.roles[1].users = {"1"};
  const auto identities = Identities::load(settings);
  REQUIRE(identities.ok());
  CHECK(role_of(identities->of_process({.user = 7, .groups = {9, 4712, 4711}})) == "one");
  CHECK(role_of(identities->of_process({.user = 7, .groups = {4713, 9}})) == "two");
  CHECK(!identities->of_process({.user = 7, .groups = {4711, 4713}}));
  CHECK(!identities->of_process({.user = 7, .groups = {4713, 9, 4712}}));
  CHECK(role_of(identities->of_process({.user = 1, .groups = {4711, 4713}})) == "two");
}

TEST_CASE("a token with two names is an error") {
  CHECK(error_of("web sha256:" + kHash + "\nother sha256:" + kOther + "\nweb2 sha256:" + kHash) ==
        "tokens:3: another token has this hash");
}

TEST_CASE("a subject that no certificate has is an error") {
  const auto refused = [](const std::string& subject) {
    Settings settings;
    settings.roles = {role("one")};
    settings.roles[0].subjects = {subject};
    const auto identities = Identities::load(settings);
    const auto expected = "role one: subjects: " + subject + " is the subject of no certificate: ";
    CHECK((identities.ok() || identities.error().message.starts_with(expected)));
    return !identities.ok();
  };
  for (const auto* subject : {"CN=web", "CN=web 1,O=example", "CN=a\\, b+UID=7,DC=x",
                              "emailAddress=a@b.c", "CN=", "1.2.3.4=#0C0161", "CN=a=b",
                              "DNS:web.example", "email:a@b.c", "URI:spiffe://web/one"}) {
    CAPTURE(subject);
    CHECK(!refused(subject));
  }
  // Another spelling of a subject, or of a kind of name, or no subject at all.
  for (const auto* subject :
       {"web", "cn=web", "CN=web, O=example", "/CN=web", "CN=web,", "CN = web", "dns:web.example",
        "DNS:", "IP:127.0.0.1", "subject=CN=web"}) {
    CAPTURE(subject);
    CHECK(refused(subject));
  }
}

TEST_CASE("roles without clients and listeners without roles are warnings") {
  const loop_test::Directory directory;
  Settings settings;
  settings.tokens = directory.file("tokens");
  write_file(settings.tokens, "web sha256:" + kHash);
  const auto lines = [&] {
    const auto files = load_access_files(settings);
    REQUIRE(files.ok());
    return complaints(*files, {});
  };
  using Lines = std::vector<std::string>;
  settings.roles = {role("one")};
  settings.roles[0].tokens = {"web"};
  const std::string unused = "auth.tokens, and no listener has auth = \"token\"";
  CHECK(lines() == Lines{"role one: tokens, and no listener has auth = \"token\"", unused});
  settings.listeners.front().auth = AuthMode::token;
  CHECK(lines().empty());
  settings.listeners.front().auth = AuthMode::none;
  settings.http.auth = AuthMode::token;
  CHECK(lines().empty());
  settings.roles.push_back(role("two"));
  CHECK(lines() == Lines{"role two: it names no client, and no listener has it"});
  settings.listeners.front().role = "two";
  CHECK(lines().empty());
  settings.roles[1].subjects = {"CN=two"};
  settings.roles[1].groups = {"0"};
  CHECK(lines() == Lines{"role two: subjects, and no listener has auth = \"mtls\"",
                         "role two: users or groups, and no listener has auth = \"peer\""});
  settings.roles.clear();
  settings.listeners.front().role.clear();
  CHECK(lines() == Lines{settings.tokens + ": token web: no role names it",
                         "auth = \"token\", and no role has tokens"});
}

TEST_CASE("users and groups that do not exist are an error") {
  Settings settings;
  settings.roles = {role("worker")};
  settings.roles[0].users = {"no-such-user"};
  CHECK(Identities::load(settings).error().message == "role worker: no user no-such-user");
  settings.roles[0].users.clear();
  settings.roles[0].groups = {"no-such-group"};
  CHECK(Identities::load(settings).error().message == "role worker: no group no-such-group");
  settings.roles[0].groups.clear();
  settings.roles[0].tokens = {"web"};
  CHECK(Identities::load(settings).error().message == "role worker: tokens needs auth.tokens");
}

TEST_CASE("a reload knows which clients have lost their role") {
  const loop_test::Directory directory;
  Settings settings;
  settings.tokens = directory.file("tokens");
  settings.roles = {role("producer"), role("worker")};
  settings.roles[0].tokens = {"web"};
  settings.roles[0].subjects = {"CN=web"};
  settings.roles[0].users = {"root"};
  const auto loaded = [&](const std::string& hash) {
    write_file(settings.tokens, "web sha256:" + hash);
    auto identities = Identities::load(settings);
    REQUIRE(identities.ok());
    return *identities;
  };
  const Identities before = loaded(kHash);
  const ClientIdentity token = *before.of_token("abc");
  const ClientIdentity certificate = *before.of_certificate({.subject = "CN=web"});
  const ClientIdentity user = *before.of_process({.user = 0});
  for (const ClientIdentity& one : {token, certificate, user}) CHECK(before.still_has(one));
  // The token has another value.
  CHECK(!loaded(kOther).still_has(token));
  CHECK(loaded(kOther).still_has(certificate));
  // It gives another role.
  std::swap(settings.roles[0].role, settings.roles[1].role);
  for (const ClientIdentity& one : {token, certificate, user}) CHECK(!loaded(kHash).still_has(one));
  settings.roles.clear();
  for (const ClientIdentity& one : {token, certificate, user}) CHECK(!loaded(kHash).still_has(one));
}

TEST_CASE("each failure of an address doubles its delay, and time halves it") {
  FailedAttempts failed;
  Time now = kNever - 24h;
  CHECK(failed.add("192.0.2.1:5000", now) == 100ms);
  CHECK(failed.add("192.0.2.1:5001", now) == 200ms);
  CHECK(failed.add("192.0.2.2:5000", now) == 100ms);
  Duration delay{};
  for (int i = 0; i < 20; ++i) delay = failed.add("192.0.2.1:5002", now);
  CHECK(delay == FailedAttempts::kMaxDelay);
  now += FailedAttempts::kForgiveness;
  CHECK(failed.add("192.0.2.1:1", now) == FailedAttempts::kMaxDelay);
  now += 3 * FailedAttempts::kForgiveness;
  CHECK(failed.add("192.0.2.1:1", now) == FailedAttempts::kMaxDelay / 4);
  now += 1000 * FailedAttempts::kForgiveness;
  CHECK(failed.add("192.0.2.1:1", now) == 200ms);
}

TEST_CASE("addresses of one machine count as one, and are forgotten when too many come") {
  FailedAttempts failed;
  const Time now = kNever - 24h;
  CHECK(failed.add("[2001:db8::1]:1", now) == 100ms);
  CHECK(failed.add("[2001:db8::ffff:0:0:2]:9", now) == 200ms);
  CHECK(failed.add("[2001:db8:0:1::1]:1", now) == 100ms);
  CHECK(failed.add("[::ffff:192.0.2.1]:1", now) == 100ms);
  CHECK(failed.add("[::ffff:192.0.2.2]:1", now) == 100ms);
  CHECK(failed.add("unix uid 0 pid 1", now) == 100ms);
  CHECK(failed.add("unix uid 1 pid 2", now) == 200ms);
  for (std::size_t i = 0; i < FailedAttempts::kMaxAddresses; ++i) {
    failed.add("10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256) + ":1", now);
  }
  CHECK(failed.addresses() == FailedAttempts::kMaxAddresses);
  CHECK(failed.add("[2001:db8::1]:1", now) == 100ms);
}

TEST_CASE("this process sees the users of its clients, or a warning says that it does not") {
  const loop_test::Directory directory;
  Settings settings;
  settings.listeners.front().kind = Listen::Kind::unix_socket;
  settings.listeners.front().path = directory.file("socket");
  settings.listeners.front().auth = AuthMode::peer;
  settings.roles = {role("operator")};
  settings.roles[0].users = {"root"};
  const auto files = load_access_files(settings);
  REQUIRE(files.ok());
  CHECK(complaints(*files, {}).empty() == os::sees_all_users());
  CHECK(first_expiry(*files) == Duration::zero());
}
