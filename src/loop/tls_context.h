// TlsContext: the certificates of a listener and the rules of its TLS, by OpenSSL.
//
// The protocol is TLS 1.2 or 1.3 with forward secrecy and authenticated encryption alone; the
// server's preference decides. A client that resumes a session presents a ticket; the keys of
// tickets are made by the context, are replaced every kTicketKeyLife and are never stored, so that
// recorded traffic cannot be decrypted with what the server has later. Clients with certificates
// get no tickets: each connection verifies its certificate. There is no renegotiation and no
// compression.
//
// A context does not change. A reload makes another for the connections to come, and so the
// tickets of the former end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

struct ssl_ctx_st;

namespace tubed::loop {

struct TlsState;

struct TlsOptions {
  // Files in PEM. A certificate file has the chain, the server's own certificate first.
  struct Pair {
    std::string certificate;
    std::string key;
  };
  // Not empty. The first is for clients that name no server, or one that no certificate has. [SNI]
  std::vector<Pair> certificates;
  std::string client_ca;  // clients present a certificate that one of these has signed; or empty
  bool only_1_3 = false;
  std::string alpn;  // "beanstalk": the protocol that a client which negotiates one has to offer
};

inline constexpr Duration kTicketKeyLife = std::chrono::hours(12);

class TlsContext {
 public:
  // Reads the files. The error is one line with the file and what is wrong: it cannot be read, is
  // no PEM, others can read a key, or a key is not that of its certificate.
  static Result<std::shared_ptr<const TlsContext>> load(const TlsOptions& options);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // True if `other` has the same certificates in the same order, chains included; their keys are
  // then the same too.
  bool has_certificates_of(const TlsContext& other) const;
  // True if clients of both present certificates of the same authorities, or none.
  bool has_authorities_of(const TlsContext& other) const;

  // When the first of its certificates expires, chains included: since 1970.
  Duration expires() const;
  // Warnings at the time `now` (since 1970): one line for each certificate that is not valid yet,
  // or that has expired.
  std::vector<std::string> complaints(Duration now) const;

  // For TlsChannel.
  ssl_ctx_st* native() const;

 private:
  explicit TlsContext(std::unique_ptr<TlsState> state);

  std::unique_ptr<TlsState> state_;
};

}  // namespace tubed::loop
