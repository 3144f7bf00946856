// Control frames between nodes: how a connection begins, and requests to change the cluster. They
// have the envelope of message.h (length, CRC, version, type), and types from kFirstControlType on.
// docs/cluster-protocol.md has every byte.
//
// The node that has dialled sends a Hello, and nothing else before it has a Welcome. So a node that
// has sent a Welcome knows that what it reads from then on was sent after that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cluster/types.h"

namespace tubed::cluster {

inline constexpr std::uint8_t kFirstControlType = 16;

// The use of a connection.
enum class Purpose : std::uint8_t {
  frames = 1,  // the messages of the node that has dialled
  fetch,       // the state of the node that was dialled
  request,     // one Request, and its Response
};

struct Hello {
  Purpose purpose = Purpose::frames;
  std::uint16_t level = 1;  // the features that the caller knows
  std::uint64_t cluster = 0;
  NodeId from = 0;
  NodeId to = 0;                  // 0 for a request: whichever node has the address
  std::string address;            // of the caller, as in the configuration: NAME@HOST:PORT
  Index configuration_index = 0;  // of the newest configuration that the caller knows
  std::string name;               // that the node which was dialled has to have; empty: any
  // The caller leads, and the node which was dialled is a standby: if it has no state, it may take
  // the identity `to`. A voter that has lost its state must not, since it has forgotten its votes.
  bool invites = false;

  friend bool operator==(const Hello&, const Hello&) = default;
};

enum class WelcomeStatus : std::uint8_t {
  ok = 1,
  other_cluster,  // the node is of another cluster
  other_node,     // it is another member
  waiting,        // it has no state yet
  not_a_member,   // the caller is in no configuration that the node knows
  busy,           // a fetch: another fetch is under way
};

struct Welcome {
  WelcomeStatus status = WelcomeStatus::ok;
  std::uint16_t level = 1;
  Index configuration_index = 0;  // of the newest configuration that the node knows
  std::string name;               // of the node

  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// A change that an operator requests of the leader: JSON, as on the admin socket.
struct Request {
  std::string path;  // "/cluster/add"
  std::string body;

  friend bool operator==(const Request&, const Request&) = default;
};
struct Response {
  std::uint16_t status = 200;  // as of HTTP
  std::string body;

  friend bool operator==(const Response&, const Response&) = default;
};

// A text is at most this long. A frame with a longer text is not decoded.
inline constexpr std::size_t kMostControlText = 64U << 10;

// O(bytes).
std::string encode(const Hello& hello);
std::string encode(const Welcome& welcome);
std::string encode(const Request& request);
std::string encode(const Response& response);

// Nothing: the frame is damaged, of another type or version, or has a value that the type does not
// allow. `frame`: whole (frame_bytes()).
std::optional<Hello> decode_hello(std::string_view frame);
std::optional<Welcome> decode_welcome(std::string_view frame);
std::optional<Request> decode_request(std::string_view frame);
std::optional<Response> decode_response(std::string_view frame);

}  // namespace tubed::cluster
