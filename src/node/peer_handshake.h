// The beginning of a connection between two nodes: CallerHandshake on the node that dials,
// CalleeHandshake on the node that is dialled.
//
// Without a secret, the caller sends its Hello, and the callee answers with its Welcome. With one,
// both prove that they know it:
//
//  1. The caller sends its Hello with a nonce.
//  2. The callee answers with a Challenge, a nonce of its own, and reveals nothing else.
//  3. The caller sends a Proof: the HMAC-SHA-256, with the secret as the key, of a text with the
//     direction, both nonces and the whole Hello, which has the cluster, both nodes, both names and
//     the purpose of the connection.
//  4. The callee checks it. It sends its own Proof, which also covers its Welcome, and the Welcome.
//
// The nonces keep a proof from being used again, the direction and the Hello from being used on
// another connection. A node with a secret speaks with no node that has none, nor the other way
// round. The caller proves its first secret; the callee accepts each of its secrets, and proves
// with that of the caller.
//
// With TLS (cluster.tls), the connection begins with its handshake, in which both ends verify the
// other's certificate. The caller then checks that the callee's certificate has its name, and the
// callee that the caller's has the name in its Hello. The text of a proof ends with the binding of
// the session, so a proof cannot be passed on from one session to another.
//
// No I/O: frames go in and come out, and the caller of a function sends them. Errors are one line,
// the reason for closing the connection.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/control.h"
#include "loop/tls_session.h"
#include "node/cluster_secret.h"

namespace tubed::node {

using NodeTls = std::shared_ptr<const loop::TlsContext>;  // null: without TLS

// The secrets and certificates of a node, for its connections to other nodes.
struct PeerSecurity {
  PeerSecurity() = default;
  PeerSecurity(ClusterSecrets known, NodeTls context = nullptr)  // NOLINT: as secrets alone
      : secrets(std::move(known)), tls(std::move(context)) {}

  ClusterSecrets secrets;
  NodeTls tls;
};

class CallerHandshake {
 public:
  CallerHandshake(const PeerSecurity& security, cluster::Hello hello);

  // If not null, the connection begins with TLS, and check() comes first.
  const NodeTls& tls() const { return tls_; }
  // Checks that the callee has the name to which the Hello is addressed.
  Result<void> check(const loop::TlsPeer& callee);

  // The first frame.
  const std::string& hello() const { return hello_; }

  struct Step {
    std::string reply;                        // the next frame to send; empty: none
    std::optional<cluster::Welcome> welcome;  // the handshake is over; the Welcome is proved
  };
  // Takes a frame of the callee. Not called again after a Welcome or an error.
  Result<Step> take(std::string_view frame);

  // Completes the reason for the end of the connection before the Welcome, for the log.
  std::string explain(std::string_view reason) const;
  // The same before the end of the handshake of TLS.
  std::string explain_tls(std::string_view reason) const;

  // The secret that was proved; none without secrets.
  const std::optional<ClusterSecret>& secret() const { return secret_; }

 private:
  NodeTls tls_;
  std::string binding_;  // empty: without TLS
  std::string callee_;   // its name
  std::optional<ClusterSecret> secret_;
  std::string callee_nonce_;  // empty: no Challenge has arrived
  std::string callee_proof_;
  std::string hello_;
};

class CalleeHandshake {
 public:
  explicit CalleeHandshake(PeerSecurity security) : security_(std::move(security)) {}

  // If not null, the connection begins with TLS, and set_caller() comes first.
  const NodeTls& tls() const { return security_.tls; }
  // The other end of the session of TLS.
  void set_caller(loop::TlsPeer caller) { caller_ = std::move(caller); }
  // Returns whether the caller's certificate has the name in its Hello.
  bool is_named() const { return security_.tls != nullptr; }

  // Takes a Hello. Returns the Challenge to send; empty: the handshake needs no proof.
  Result<std::string> take_hello(std::string_view frame);
  bool has_hello() const { return !hello_frame_.empty(); }
  // Takes the answer to the Challenge.
  Result<void> take_proof(std::string_view frame);

  // Precondition: a Hello was taken. It is proved if take_proof() has succeeded.
  const cluster::Hello& hello() const { return hello_; }
  // The secret that the caller has proved; none without secrets.
  const std::optional<ClusterSecret>& secret() const { return secret_; }
  // True if an error is about the secret or the name: the settings of one of the nodes are wrong.
  bool settings_differ() const { return settings_differ_; }
  // Returns the frames that answer the caller: the Welcome, after a Proof if the caller has proved
  // the secret.
  std::string answer(const cluster::Welcome& welcome) const;

 private:
  Error differ(std::string_view reason);

  const PeerSecurity security_;
  loop::TlsPeer caller_;
  std::optional<ClusterSecret> secret_;
  cluster::Hello hello_;
  std::string hello_frame_;
  std::string callee_nonce_;
  bool settings_differ_ = false;
};

}  // namespace tubed::node
