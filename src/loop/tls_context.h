// TlsContext: the certificates of a listener and its rules for TLS, by OpenSSL.
//
// Only TLS 1.2 and 1.3 with forward secrecy and authenticated encryption are allowed, and the
// server's preferences decide. A client resumes a session with a ticket. The context makes the keys
// of tickets, replaces them every kTicketKeyLife and never stores them, so recorded traffic cannot
// be decrypted with what the server has later. Clients with certificates get no tickets: each
// connection verifies its certificate. Renegotiation and compression are disabled.
//
// A mutual context is for connections between equals, the nodes of a cluster: either end may have
// begun the connection, and each verifies the certificate of the other. Only TLS 1.3, without
// tickets.
//
// A context does not change. A reload makes a new context for later connections, and the tickets of
// the old context become invalid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

struct ssl_ctx_st;
struct x509_st;

namespace tubed::loop {

struct TlsState;

struct TlsOptions {
  // Files in PEM. A certificate file has the chain, starting with the server's own certificate.
  struct Pair {
    std::string certificate;
    std::string key;
  };
  // Not empty. The first is for clients that name no server, or a server that no certificate has.
  // [SNI]
  std::vector<Pair> certificates;
  std::string client_ca;  // CAs of client certificates, which are then required; or empty
  bool only_1_3 = false;
  std::string alpn;  // "beanstalk": the protocol that a client must offer if it negotiates one
  // For both ends of a connection: `client_ca` has the CAs of all, `certificates` is one, `alpn`
  // is empty.
  bool mutual = false;
};

inline constexpr Duration kTicketKeyLife = std::chrono::hours(12);
// With a mutual context, how many bytes a peer may send before the handshake is done, apart from a
// message that OpenSSL has begun to read: a ClientHello has at most 128 KiB, certificates half of
// this.
inline constexpr std::size_t kMostMutualHandshake = std::size_t{32} << 10;

// Returns the alternative names of a certificate: "DNS:…", "email:…", "URI:…". Without those that
// are not plain text, because they could be displayed as different names.
std::vector<std::string> alternative_names(const x509_st& certificate);

class TlsContext {
 public:
  // Reads the files. The error is one line with the file and the reason: it is unreadable or not
  // PEM, others can read a key, or a key does not belong to its certificate.
  static Result<std::shared_ptr<const TlsContext>> load(const TlsOptions& options);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // True if `other` has the same certificates in the same order, chains included, and therefore the
  // same keys.
  bool has_certificates_of(const TlsContext& other) const;
  // True if both require client certificates of the same authorities, or neither requires any.
  bool has_authorities_of(const TlsContext& other) const;

  // True if the first certificate has this alternative name: "DNS:…".
  bool has_name(std::string_view name) const;
  bool is_mutual() const;

  // Returns when the first of its certificates expires, chains included, since 1970.
  Duration expires() const;
  // Returns one warning line for each certificate that is not yet valid or has expired at `now`
  // (since 1970).
  std::vector<std::string> complaints(Duration now) const;

  // For TlsSession.
  ssl_ctx_st* native() const;

 private:
  explicit TlsContext(std::unique_ptr<TlsState> state);

  std::unique_ptr<TlsState> state_;
};

}  // namespace tubed::loop
