// The secret of a cluster: its file, the handshake with it, and nodes with equal, different and no
// secrets.
#include <algorithm>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "journal/little_endian.h"
#include "node/cluster_secret.h"
#include "node/peer_handshake.h"
#include "os/descriptor.h"
#include "tests/server/peer_node.h"

namespace tubed::server_test {

using cluster::Hello;
using cluster::Purpose;
using cluster::Welcome;
using cluster::WelcomeStatus;
using loop_test::run_ticks;
using loop_test::run_until;
using node::CalleeHandshake;
using node::CallerHandshake;
using node::ClusterSecrets;

namespace {

// The line of a secret, by a letter.
std::string line_of(char letter) {
  return "tbc_" + std::string(42, letter) + "A\n";
}

ClusterSecrets secrets_of(std::string_view letters) {
  std::string text;
  for (const char letter : letters) text += line_of(letter);
  return letters.empty() ? ClusterSecrets() : ClusterSecrets::parse(text, "secret").value();
}

std::string parse_error(const std::string& text) {
  const auto secrets = ClusterSecrets::parse(text, "secret");
  return secrets ? "" : secrets.error().message;
}

const Hello kHello{.purpose = Purpose::frames,
                   .level = 3,
                   .cluster = 7,
                   .from = 1,
                   .to = 2,
                   .address = "a@127.0.0.1:1",
                   .configuration_index = 4,
                   .name = "b"};
const Welcome kWelcome{.status = WelcomeStatus::ok, .level = 3, .name = "b"};

// The frames of a handshake, in order.
struct Exchange {
  Exchange(const ClusterSecrets& of_caller, const ClusterSecrets& of_callee,
           const Welcome& welcome = kWelcome)
      : caller(of_caller, kHello), callee(of_callee) {
    auto challenge = callee.take_hello(caller.hello());
    if (!challenge) {
      refused = challenge.error().message;
      return;
    }
    if (!challenge->empty()) {
      const auto step = caller.take(*challenge);
      REQUIRE(step.ok());
      proof = step->reply;
      if (const auto proved = callee.take_proof(proof); !proved) {
        refused = proved.error().message;
        return;
      }
    }
    answer = callee.answer(welcome);
  }

  CallerHandshake caller;
  CalleeHandshake callee;
  std::string proof;
  std::string answer;
  std::string refused;  // the callee's reason
};

// Splits frames that follow each other.
std::vector<std::string> frames_in(std::string_view bytes) {
  std::vector<std::string> frames;
  while (!bytes.empty()) {
    frames.emplace_back(bytes.substr(0, cluster::frame_bytes(bytes).value()));
    bytes.remove_prefix(frames.back().size());
  }
  return frames;
}

// The Welcome that the caller accepts, or the reason for which it does not.
Result<Welcome> accepted(CallerHandshake& caller, std::string_view answer) {
  for (const std::string& frame : frames_in(answer)) {
    auto step = TRY(caller.take(frame));
    if (step.welcome) return *step.welcome;
  }
  return Error{"no welcome"};
}

long count_lines(const PeerNode& node, std::string_view text) {
  return std::ranges::count_if(
      node.lines, [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

constexpr std::string_view kCallerHasNone = "it has not proved the secret of the cluster";
constexpr std::string_view kCalleeHasNone = "it has a cluster.secret_file, and this node has none";
constexpr std::string_view kOtherSecret =
    "its proof is wrong: it has another secret in its cluster.secret_file";

}  // namespace

TEST_CASE("a file of a cluster's secret has one or two secrets, and no error shows them") {
  CHECK(secrets_of("a").all().size() == 1);
  CHECK(secrets_of("ab").all()[1] == secrets_of("b").all()[0]);
  CHECK(ClusterSecrets::parse("# new\r\n\n \t" + line_of('a'), "secret").value() ==
        secrets_of("a"));
  const std::string wrong = "not a secret as tubectl cluster secret prints it";
  CHECK(parse_error(line_of('a') + "tbc_abc") == "secret:2: " + wrong);
  CHECK(parse_error("tbd_" + line_of('a').substr(4)) == "secret:1: " + wrong);
  CHECK(parse_error("tbc_" + std::string(42, 'a') + "=") == "secret:1: " + wrong);
  CHECK(parse_error("tbc_" + std::string(44, 'a')) == "secret:1: " + wrong);
  CHECK(parse_error(line_of('a') + line_of('a')) == "secret:2: another line has this secret");
  CHECK(parse_error(line_of('a') + line_of('b') + line_of('c')) ==
        "secret:3: more than two secrets");
  CHECK(parse_error("# nothing\n") == "secret: it has no secret");
}

TEST_CASE("a file of a cluster's secret is readable by its owner only, or a credential") {
  const loop_test::Directory directory;
  const std::string file = directory.file("secret");
  const auto error = [&] {
    const auto secrets = ClusterSecrets::read(file);
    return secrets.ok() ? "" : secrets.error().message;
  };
  CHECK(ClusterSecrets::read("").value().empty());
  CHECK(error() == file + ": cannot read: No such file or directory");
  const auto write_file = [&file](const std::string& text, mode_t mode) {
    ::unlink(file.c_str());
    const os::Descriptor opened(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, mode));
    REQUIRE(::write(opened.number(), text.data(), text.size()) ==
            static_cast<ssize_t>(text.size()));
    REQUIRE(::chmod(file.c_str(), mode) == 0);
  };
  write_file(line_of('a'), 0600);
  CHECK(error().empty());
  for (const mode_t mode : {0640U, 0604U, 0620U, 0602U, 0610U}) {
    write_file(line_of('a'), mode);
    CHECK(error().find("others may use this secret") != std::string::npos);
    CHECK(error().find("chmod go= " + file) != std::string::npos);
  }
  // systemd shows the mask of the access list as the mode of the group.
  write_file(line_of('a'), 0440);
  REQUIRE(::setenv("CREDENTIALS_DIRECTORY", directory.file("other").c_str(), 1) == 0);
  CHECK_FALSE(error().empty());
  std::string folder = directory.file("");
  folder.pop_back();
  REQUIRE(::setenv("CREDENTIALS_DIRECTORY", folder.c_str(), 1) == 0);
  CHECK(error().empty());
  write_file(line_of('a'), 0444);
  CHECK_FALSE(error().empty());
  REQUIRE(::unsetenv("CREDENTIALS_DIRECTORY") == 0);
}

TEST_CASE("both ends of a handshake prove the secret, and without one the bytes are as before") {
  for (const auto& [caller, callee] :
       {std::pair("a", "a"), {"ab", "a"}, {"a", "ba"}, {"ba", "ab"}, {"", ""}}) {
    Exchange exchange(secrets_of(caller), secrets_of(callee));
    CHECK(exchange.refused == "");
    CHECK(accepted(exchange.caller, exchange.answer).value() == kWelcome);
    CHECK(exchange.caller.secret() == exchange.callee.secret());
    CHECK(exchange.callee.hello() == kHello);
  }
  const Exchange plain(secrets_of(""), secrets_of(""));
  CHECK(plain.caller.hello() == encode(kHello));
  CHECK(plain.answer == encode(kWelcome));
  CHECK_FALSE(plain.caller.secret());
}

TEST_CASE("nodes with different secrets, or of which one has none, refuse each other") {
  for (const auto& [caller, callee, reason] : {std::tuple("b", "a", kOtherSecret),
                                               {"ba", "a", kOtherSecret},
                                               {"", "a", kCallerHasNone},
                                               {"a", "", kCalleeHasNone}}) {
    const Exchange exchange(secrets_of(caller), secrets_of(callee));
    CHECK(exchange.refused.starts_with(reason));
    CHECK(exchange.callee.settings_differ());
    CHECK(exchange.answer.empty());
  }
}

TEST_CASE("a caller accepts no welcome without the proof of its own handshake") {
  const Exchange exchange(secrets_of("a"), secrets_of("a"));
  Welcome forged = kWelcome;
  forged.status = WelcomeStatus::not_a_member;
  const std::string real_proof = frames_in(exchange.answer).at(0);
  for (const std::string& answer :
       {encode(kWelcome), encode(forged), real_proof + encode(forged),
        exchange.proof + encode(kWelcome),
        encode(cluster::Proof{std::string(32, '\0')}) + encode(kWelcome)}) {
    CallerHandshake caller = exchange.caller;
    CHECK_FALSE(accepted(caller, answer).ok());
  }
  // One that has sent no Challenge.
  CallerHandshake caller(secrets_of("a"), kHello);
  CHECK(accepted(caller, encode(kWelcome)).error().message.starts_with(kCallerHasNone));
  // The answer to another connection.
  Exchange other(secrets_of("a"), secrets_of("a"));
  CHECK_FALSE(accepted(other.caller, exchange.answer).ok());
}

TEST_CASE("a proof is of no use on another connection, in another direction or for another hello") {
  const Exchange exchange(secrets_of("a"), secrets_of("a"));
  const auto takes = [&](const std::string& hello, const std::string& proof) {
    CalleeHandshake callee(secrets_of("a"));
    REQUIRE(callee.take_hello(hello).ok());
    return callee.take_proof(proof).ok();
  };
  // A recorded connection, played again: the callee has another nonce.
  CHECK_FALSE(takes(exchange.caller.hello(), exchange.proof));
  CHECK_FALSE(takes(exchange.caller.hello(), frames_in(exchange.answer).at(0)));
  // The same nonces, with any bit of the hello changed.
  const std::string hello = exchange.caller.hello();
  for (std::size_t bit = 8 * cluster::kFrameHeaderBytes; bit < 8 * hello.size(); ++bit) {
    CallerHandshake caller(secrets_of("a"), kHello);
    CalleeHandshake callee(secrets_of("a"));
    std::string changed = caller.hello();
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    journal::store_little(changed.data() + 4, crc32c(0, std::string_view(changed).substr(8)));
    const auto challenge = callee.take_hello(changed);
    if (!challenge) continue;
    CHECK_FALSE(callee.take_proof(caller.take(*challenge)->reply).ok());
  }
}

TEST_CASE("nodes with the same secret are connected, and each purpose needs the proof") {
  loop::Loop loop;
  PeerNode a(loop, 1, kQuick);
  PeerNode b(loop, 2, kQuick);
  for (const PeerNode* node : {&a, &b}) node->links->set_secrets(secrets_of("a"));
  join({&a, &b});
  REQUIRE(all_connected({&a, &b}));
  a.links->send(2, frame_of(1));
  REQUIRE(run_until(loop, [&] { return b.frames.size() == 1; }));
  std::optional<Result<cluster::Response>> answered;
  b.then = [&] { b.requests.back().second({.status = 200, .body = "{}"}); };
  a.links->request(b.facts.address, {.path = "/cluster/add", .body = "{}"},
                   [&](Result<cluster::Response> response) { answered = std::move(response); });
  REQUIRE(run_until(loop, [&] { return answered.has_value(); }));
  CHECK(answered->ok());
  // A stranger that knows all ids is answered nothing, whatever it wants.
  for (const Purpose purpose :
       {Purpose::frames, Purpose::fetch, Purpose::request, Purpose::client}) {
    RawPeer without = a.dial();
    without.send(encode(a.hello(2, purpose)));
    CHECK(without.is_closed());
    RawPeer guesses = a.dial();
    Hello hello = a.hello(2, purpose);
    hello.nonce = std::string(cluster::kNonceBytes, 'n');
    guesses.send(encode(hello));
    const auto challenge = cluster::decode_challenge(guesses.take_frame());
    REQUIRE(challenge);
    guesses.send(encode(cluster::Proof{challenge->nonce}));
    CHECK(guesses.is_closed());
  }
  CHECK(a.turned_away.empty());
  CHECK(a.fetches.empty());
  CHECK(a.clients.empty());
  CHECK(a.links->is_connected(2));
  CHECK(b.links->is_connected(1));
}

TEST_CASE("a hello gives no more time and no more bytes than its proof needs") {
  loop::Loop loop;
  node::PeerLimits limits = kQuick;
  limits.hello = 20ms;
  const auto begin = [](PeerNode& node) {
    node.links->set_secrets(secrets_of("a"));
    RawPeer peer = node.dial();
    Hello hello = node.hello(2);
    hello.nonce = std::string(cluster::kNonceBytes, 'n');
    peer.send(encode(hello));
    return peer;
  };
  PeerNode quick(loop, 1, limits);
  RawPeer silent = begin(quick);
  REQUIRE(run_until(loop, [&] {
    silent.read();
    return silent.ended;
  }));
  CHECK(quick.has_logged("in time"));
  PeerNode a(loop, 1);
  RawPeer peer = begin(a);
  REQUIRE(cluster::decode_challenge(peer.take_frame()));
  CHECK(encode(cluster::Proof{std::string(cluster::kProofBytes, 'p')}).size() ==
        node::kProofFrameBytes);
  // The length of any other frame.
  peer.send(encode(a.hello(2)).substr(0, 4));
  CHECK(peer.is_closed());
  CHECK(a.has_logged("the other node has sent something that is no frame"));
}

TEST_CASE("nodes with different secrets, or of which one has none, log the reason once") {
  for (const auto& [of_a, of_b, reason] :
       {std::tuple("a", "b", kOtherSecret), {"a", "", kCallerHasNone}, {"", "a", kCalleeHasNone}}) {
    loop::Loop loop;
    PeerNode a(loop, 1, kQuick);
    PeerNode b(loop, 2, kQuick);
    a.links->set_secrets(secrets_of(of_a));
    b.links->set_secrets(secrets_of(of_b));
    join({&a, &b});
    // Both dial again and again.
    REQUIRE(run_until(loop, [&] {
      return a.has_logged("not connected to another node") &&
             a.has_logged("connection of another node refused");
    }));
    run_ticks(loop, 200);
    CHECK(count_lines(a, reason) == 1);
    CHECK(count_lines(a, "not connected to another node") == 1);
    CHECK(a.has_logged("cluster.secret_file"));
    CHECK(a.hellos.empty());
    CHECK(a.rejected.empty());
    // With the same secret they are connected.
    for (const PeerNode* node : {&a, &b}) node->links->set_secrets(secrets_of("c"));
    CHECK(all_connected({&a, &b}));
  }
}

TEST_CASE("a secret is changed node by node, and a connection ends with its secret") {
  loop::Loop loop;
  PeerNode a(loop, 1, kQuick);
  PeerNode b(loop, 2, kQuick);
  const auto hellos = [&] { return a.hellos.size() + b.hellos.size(); };
  join({&a, &b});
  REQUIRE(all_connected({&a, &b}));
  for (const PeerNode* node : {&a, &b}) node->links->set_secrets(secrets_of("a"));
  CHECK_FALSE(a.links->is_connected(2));  // it had no proof
  REQUIRE(all_connected({&a, &b}));
  const std::size_t before = hellos();
  a.links->set_secrets(secrets_of("ab"));
  b.links->set_secrets(secrets_of("ab"));
  a.links->set_secrets(secrets_of("ba"));
  b.links->set_secrets(secrets_of("ba"));
  run_ticks(loop, 20);
  CHECK(hellos() == before);
  // The connections have proved the secret that is removed now.
  a.links->set_secrets(secrets_of("b"));
  CHECK_FALSE(a.links->is_connected(2));
  REQUIRE(all_connected({&a, &b}));
  b.links->set_secrets(secrets_of("b"));
  REQUIRE(all_connected({&a, &b}));
}

}  // namespace tubed::server_test
