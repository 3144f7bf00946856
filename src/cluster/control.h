// Control frames between nodes: the start of a connection, and requests to change the cluster. They
// have the envelope of message.h (length, CRC, version, type), and types starting at
// kFirstControlType. docs/internals/cluster-protocol.md describes every byte.
//
// The dialling node sends a Hello and, for a Challenge, a Proof, and nothing else until it has
// received a Welcome. So whatever a node reads after it has sent a Welcome was sent after that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/levels.h"
#include "cluster/types.h"

namespace tubed::cluster {

inline constexpr std::uint8_t kFirstControlType = 16;

// The use of a connection.
enum class Purpose : std::uint8_t {
  frames = 1,  // messages of the dialling node
  fetch,       // the state of the dialled node
  request,     // one Request, and its Response
  client,      // the bytes of a client of the dialling node
};

// A client of the node that dials with Purpose::client, as it has connected there.
struct ForwardedClient {
  std::string address = {};          // as in the log
  std::string tls_name = {};         // that a proxy has reported
  std::string listener = {};         // HOST:PORT or unix:PATH
  std::uint8_t auth = 0;             // the listener's mode, as a number of AuthMode
  std::string role = {};             // of the listener
  std::string subject = {};          // of the client's certificate
  std::vector<std::string> names{};  // alternative names of the certificate
  // Of a local process, if the listener asks for it.
  bool has_process = false;
  std::int32_t process = 0;
  std::uint32_t user = 0;
  std::vector<std::uint32_t> groups{};

  friend bool operator==(const ForwardedClient&, const ForwardedClient&) = default;
};
// A node passes no client on that takes more bytes in a Hello (encoded_bytes()).
inline constexpr std::size_t kMostForwardedClient = 3 << 10;

// A setting of a node that should be the same on all nodes, without its value.
struct SettingDigest {
  std::string name;          // of the setting
  std::uint64_t digest = 0;  // of the value, for this cluster

  friend bool operator==(const SettingDigest&, const SettingDigest&) = default;
};
inline constexpr std::size_t kMostSettingDigests = 64;
inline constexpr std::size_t kMostSettingName = 64;

struct Hello {
  Purpose purpose = Purpose::frames;
  Level level = kFirstLevel;  // the highest that the caller knows
  std::uint64_t cluster = 0;
  NodeId from = 0;
  NodeId to = 0;                  // 0 for a request: any node with that address
  std::string address;            // where the caller says that it listens: NAME@HOST:PORT
  Index configuration_index = 0;  // newest configuration known to the caller
  std::string name;               // required name of the dialled node; empty: any
  // The caller leads and the dialled node is a standby: if it has no state, it may take the
  // identity `to`. A voter that has lost its state must not, because it has forgotten its votes.
  bool invites = false;
  ForwardedClient client = {};  // with Purpose::client
  std::string nonce = {};  // of a caller with a secret, kNonceBytes random bytes; otherwise empty
  // Of the caller; empty: not known. Only from level kLevelOfFields.
  std::vector<SettingDigest> settings = {};

  friend bool operator==(const Hello&, const Hello&) = default;
};

enum class WelcomeStatus : std::uint8_t {
  ok = 1,
  other_cluster,  // the node belongs to another cluster
  other_node,     // the node is another member
  waiting,        // the node has no state yet
  not_a_member,   // no configuration known to the node has the caller
  busy,           // another fetch is under way, or the node does not serve the client
  too_old,        // the caller does not know the level in use; not sent to a caller with level 1
  superseded,     // the node was recovered from the cluster of the caller; not sent below level 5
};

struct Welcome {
  WelcomeStatus status = WelcomeStatus::ok;
  Level level = kFirstLevel;      // the highest that the node knows
  Index configuration_index = 0;  // newest configuration known to the node
  std::string name;               // of the node

  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// The bytes of a nonce, and of a proof that the sender knows the secret of the cluster
// (node/peer_handshake.h).
inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kProofBytes = 32;

// The answer to a Hello with a nonce: the node requires a proof before it answers anything else.
struct Challenge {
  std::string nonce;

  friend bool operator==(const Challenge&, const Challenge&) = default;
};
// The caller's answer to it, and what the node then sends before its Welcome.
struct Proof {
  std::string proof;

  friend bool operator==(const Proof&, const Proof&) = default;
};

// A change that an operator requests from the leader: JSON, as on the admin socket.
struct Request {
  std::string path;  // "/cluster/add"
  std::string body;

  friend bool operator==(const Request&, const Request&) = default;
};
struct Response {
  std::uint16_t status = 200;  // an HTTP status
  std::string body;

  friend bool operator==(const Response&, const Response&) = default;
};

// The longest text. A frame with a longer text is not decoded.
inline constexpr std::size_t kMostControlText = 64U << 10;

// O(bytes).
std::string encode(const Hello& hello);
std::string encode(const Welcome& welcome);
std::string encode(const Request& request);
std::string encode(const Response& response);
std::string encode(const Challenge& challenge);
std::string encode(const Proof& proof);

// The bytes of the client in its Hello. O(bytes).
std::size_t encoded_bytes(const ForwardedClient& client);

// Returns nothing if the frame is damaged, is of another type or version, or has a value that is
// not allowed for its type. `frame` is complete (frame_bytes()).
std::optional<Hello> decode_hello(std::string_view frame);
std::optional<Welcome> decode_welcome(std::string_view frame);
std::optional<Request> decode_request(std::string_view frame);
std::optional<Response> decode_response(std::string_view frame);
std::optional<Challenge> decode_challenge(std::string_view frame);
std::optional<Proof> decode_proof(std::string_view frame);

}  // namespace tubed::cluster
