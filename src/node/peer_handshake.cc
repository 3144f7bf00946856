#include "node/peer_handshake.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/assert.h"
#include "base/planted.h"
#include "cluster/member.h"

namespace tubed::node {

namespace {

// The text that is proved begins with these. Neither is the beginning of the other.
constexpr std::string_view kOfCaller = "tubed 1: proof of the caller\n";
constexpr std::string_view kOfCallee = "tubed 1: proof of the callee\n";

std::string new_nonce() {
  std::array<unsigned char, cluster::kNonceBytes> bytes{};
  TUBED_ASSERT(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1);
  return {bytes.begin(), bytes.end()};
}

std::string hmac(const ClusterSecret& secret, std::string_view text) {
  std::array<unsigned char, cluster::kProofBytes> bytes{};
  unsigned size = 0;
  TUBED_ASSERT(HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                    reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes.data(),
                    &size) != nullptr);
  TUBED_ASSERT(size == bytes.size());
  return {bytes.begin(), bytes.end()};
}

// In constant time.
bool same(std::string_view one, std::string_view other) {
  return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

// Each part has a known length or, as a frame, begins with its length: two texts are equal only if
// all their parts are. The Hello has the nonce of the caller. `welcome`: empty for the caller.
// `binding`: empty without TLS.
std::string proof_of(const ClusterSecret& secret, std::string_view callee_nonce,
                     std::string_view hello, std::string_view welcome, std::string_view binding) {
  std::string text(welcome.empty() ? kOfCaller : kOfCallee);
  text.append(callee_nonce).append(hello).append(welcome);
  if (!TUBED_PLANTED(proof_is_not_bound)) text.append(binding);
  return hmac(secret, text);
}

bool has_name(const loop::TlsPeer& peer, std::string_view name) {
  return !name.empty() && std::ranges::count(peer.names, fmt::format("DNS:{}", name)) != 0;
}

std::string other_name(const loop::TlsPeer& peer, std::string_view name) {
  return fmt::format("its certificate ({}) has no alternative name DNS:{}", peer.subject, name);
}

}  // namespace

// --- The node that dials

CallerHandshake::CallerHandshake(const PeerSecurity& security, cluster::Hello hello)
    : tls_(security.tls), callee_(hello.name) {
  if (!security.secrets.empty()) {
    secret_ = security.secrets.all().front();
    hello.nonce = new_nonce();
  }
  hello_ = encode(hello);
}

Result<void> CallerHandshake::check(const loop::TlsPeer& callee) {
  binding_ = callee.binding;
  if (has_name(callee, callee_) || TUBED_PLANTED(name_of_the_callee_is_not_checked)) return {};
  return Error{other_name(callee, callee_)};
}

Result<CallerHandshake::Step> CallerHandshake::take(std::string_view frame) {
  if (secret_ && callee_nonce_.empty()) {
    if (const auto challenge = cluster::decode_challenge(frame)) {
      callee_nonce_ = challenge->nonce;
      const std::string proof = proof_of(*secret_, callee_nonce_, hello_, "", binding_);
      return Step{.reply = encode(cluster::Proof{proof}), .welcome = {}};
    }
  } else if (secret_ && callee_proof_.empty()) {
    if (const auto proof = cluster::decode_proof(frame)) {
      callee_proof_ = proof->proof;
      return Step{};
    }
  }
  auto welcome = cluster::decode_welcome(frame);
  if (!welcome) return Error{"the other node has sent something that is no welcome"};
  if (!secret_) return Step{.reply = {}, .welcome = std::move(welcome)};
  if (callee_proof_.empty() && !TUBED_PLANTED(unproved_welcome_is_accepted)) {
    return Error{
        "it has not proved the secret of the cluster: it needs the cluster.secret_file of this "
        "node, and a version that knows this setting"};
  }
  if (!same(callee_proof_, proof_of(*secret_, callee_nonce_, hello_, frame, binding_)) &&
      !TUBED_PLANTED(unproved_welcome_is_accepted))
    return Error{"its proof is wrong: it has another secret in its cluster.secret_file"};
  return Step{.reply = {}, .welcome = std::move(welcome)};
}

std::string CallerHandshake::explain(std::string_view reason) const {
  const bool may_have_tls = tls_ == nullptr && callee_nonce_.empty();
  if (!secret_) {
    return fmt::format("{}; if it has a cluster.secret_file{}, this node needs it too", reason,
                       may_have_tls ? " or cluster.tls" : "");
  }
  if (callee_nonce_.empty()) {
    return fmt::format("{}; this node has a cluster.secret_file, and it may have none{}", reason,
                       may_have_tls ? "; if it has cluster.tls, this node needs it too" : "");
  }
  return fmt::format("{}; it may have another secret in its cluster.secret_file", reason);
}

std::string CallerHandshake::explain_tls(std::string_view reason) const {
  if (reason == loop::TlsSession::kClosedByServer)
    return "TLS: it has closed the connection; this node has cluster.tls, and it may have none";
  return fmt::format("TLS: {}", reason);
}

// --- The node that is dialled

Error CalleeHandshake::differ(std::string_view reason) {
  settings_differ_ = true;
  return Error{std::string(reason)};
}

Result<std::string> CalleeHandshake::take_hello(std::string_view frame) {
  auto hello = cluster::decode_hello(frame);
  if (!hello) return Error{"no hello that this version knows"};
  hello_ = std::move(*hello);
  hello_frame_ = frame;
  const std::string_view caller = cluster::name_in(hello_.address);
  if (is_named() && !has_name(caller_, caller) && !TUBED_PLANTED(name_of_the_caller_is_not_checked))
    return differ(other_name(caller_, caller));
  const bool offers_proof = !std::exchange(hello_.nonce, "").empty();
  if (security_.secrets.empty()) {
    if (offers_proof)
      return differ("it has a cluster.secret_file, and this node has none: this node needs it too");
    return std::string();
  }
  if (!offers_proof) {
    return differ(
        "it has not proved the secret of the cluster: it needs the cluster.secret_file of this "
        "node");
  }
  callee_nonce_ = new_nonce();
  return encode(cluster::Challenge{callee_nonce_});
}

Result<void> CalleeHandshake::take_proof(std::string_view frame) {
  const auto sent = cluster::decode_proof(frame);
  if (!sent) return Error{"something was sent that is no proof"};
  for (const ClusterSecret& secret : security_.secrets.all()) {
    if (same(sent->proof, proof_of(secret, callee_nonce_, hello_frame_, "", caller_.binding)) ||
        TUBED_PLANTED(wrong_proof_is_accepted))
      secret_ = secret;
  }
  if (secret_) return {};
  return differ("its proof is wrong: it has another secret in its cluster.secret_file");
}

std::string CalleeHandshake::answer(const cluster::Welcome& welcome) const {
  const std::string frame = encode(welcome);
  if (!secret_) return frame;
  return encode(cluster::Proof{
             proof_of(*secret_, callee_nonce_, hello_frame_, frame, caller_.binding)}) +
         frame;
}

}  // namespace tubed::node
