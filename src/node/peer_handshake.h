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
// No I/O: frames go in and come out, and the caller of a function sends them. Errors are one line,
// the reason for closing the connection.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/control.h"
#include "node/cluster_secret.h"

namespace tubed::node {

class CallerHandshake {
 public:
  CallerHandshake(const ClusterSecrets& secrets, cluster::Hello hello);

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

  // The secret that was proved; none without secrets.
  const std::optional<ClusterSecret>& secret() const { return secret_; }

 private:
  std::optional<ClusterSecret> secret_;
  std::string callee_nonce_;  // empty: no Challenge has arrived
  std::string callee_proof_;
  std::string hello_;
};

class CalleeHandshake {
 public:
  explicit CalleeHandshake(ClusterSecrets secrets) : secrets_(std::move(secrets)) {}

  // Takes a Hello. Returns the Challenge to send; empty: the handshake needs no proof.
  Result<std::string> take_hello(std::string_view frame);
  bool has_hello() const { return !hello_frame_.empty(); }
  // Takes the answer to the Challenge.
  Result<void> take_proof(std::string_view frame);

  // Precondition: a Hello was taken. It is proved if take_proof() has succeeded.
  const cluster::Hello& hello() const { return hello_; }
  // The secret that the caller has proved; none without secrets.
  const std::optional<ClusterSecret>& secret() const { return secret_; }
  // True if an error is about the secret: the settings of one of the nodes are wrong.
  bool secrets_differ() const { return secrets_differ_; }
  // Returns the frames that answer the caller: the Welcome, after a Proof if the caller has proved
  // the secret.
  std::string answer(const cluster::Welcome& welcome) const;

 private:
  Error differ(std::string_view reason);

  const ClusterSecrets secrets_;
  std::optional<ClusterSecret> secret_;
  cluster::Hello hello_;
  std::string hello_frame_;
  std::string callee_nonce_;
  bool secrets_differ_ = false;
};

}  // namespace tubed::node
