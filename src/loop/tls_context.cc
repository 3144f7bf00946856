// Each certificate has an SSL_CTX. A connection starts with the first; the SNI callback switches to
// the others. All share one set of ticket keys: the newest key encrypts, and the previous key still
// decrypts, so a ticket is valid for one to two lifetimes of a key. The first handshake after a
// lifetime replaces the keys; no timer is needed.
//
// OpenSSL's error queue is empty outside these functions and TlsSession: each failure clears its
// own errors. SSL_get_error() depends on that.
#include "loop/tls_context.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/assert.h"
#include "base/planted.h"
#include "os/clock.h"
#include "os/secret_file.h"
#include "os/secret_memory.h"

namespace tubed::loop {

struct TlsState {
  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  using Context = std::unique_ptr<SSL_CTX, FreeContext>;

  struct TicketKey {
    std::array<unsigned char, 16> name;
    std::array<unsigned char, 32> cipher_key;
    std::array<unsigned char, 32> mac_key;
  };

  class TicketKeys {
   public:
    TicketKeys()
        : memory_(sizeof(Keys)),
          keys_(*new (memory_.bytes().data()) Keys{random_key(), random_key()}),
          made_(os::monotonic_now()) {}
    TicketKeys(const TicketKeys&) = delete;
    TicketKeys& operator=(const TicketKeys&) = delete;

    const TicketKey& newest() {
      if (const Time now = os::monotonic_now(); now - made_ >= kTicketKeyLife) replace(now);
      return keys_[0];
    }
    // Returns null for an unknown or expired key.
    const TicketKey* find(const unsigned char* name) {
      newest();
      const auto found = std::ranges::find_if(keys_, [&](const TicketKey& key) {
        return CRYPTO_memcmp(key.name.data(), name, key.name.size()) == 0;
      });
      return found == keys_.end() ? nullptr : &*found;
    }

   private:
    void replace(Time now) {
      const bool is_late = now - made_ >= 2 * kTicketKeyLife;  // the previous key has expired too
      keys_[1] = is_late ? random_key() : keys_[0];
      keys_[0] = random_key();
      made_ = now;
    }
    static TicketKey random_key() {
      TicketKey key;
      TUBED_ASSERT(RAND_priv_bytes(reinterpret_cast<unsigned char*>(&key), sizeof key) == 1);
      return key;
    }

    using Keys = std::array<TicketKey, 2>;
    os::SecretMemory memory_;
    Keys& keys_;  // in memory_
    Time made_;
  };

  struct Certificate {
    std::string file;
    Duration not_before;
    Duration not_after;
    std::string digest;
  };

  std::vector<Context> contexts;  // in the order of the options
  std::vector<Certificate> certificates;
  std::vector<std::string> authorities;  // digests, in order
  bool mutual = false;
  std::vector<unsigned char> alpn;  // the length and the name of the protocol, as on the wire
  TicketKeys tickets;
};

namespace {

using Context = TlsState::Context;
using Certificate = TlsState::Certificate;
using TicketKey = TlsState::TicketKey;
using TicketKeys = TlsState::TicketKeys;

// All have forward secrecy and authenticated encryption. Only TLS 1.2 uses this list.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
// For TLS 1.3. The first costs the least on processors with AES instructions, as servers have.
constexpr const char* kSuites =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr std::string_view kGroups = "X25519:P-256:P-384";
// The longest chain of a client: its certificate and a few intermediates.
constexpr int kMaxChain = 4;

std::string openssl_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_error());  // the first error is the cause
  std::string text = reason != nullptr ? reason : "unknown error";
  ERR_clear_error();
  return text;
}

// Describes a file that OpenSSL could not use: with the system's reason if it cannot be opened,
// otherwise with OpenSSL's.
Error file_error(const std::string& file, std::string_view what) {
  std::FILE* const stream = std::fopen(file.c_str(), "re");
  if (stream == nullptr) {
    ERR_clear_error();
    return Error{fmt::format("{}: cannot read: {}", file, std::strerror(errno))};
  }
  std::fclose(stream);
  const unsigned long code = ERR_peek_error();
  // The decoder's reason says nothing about the file.
  const bool is_other_file =
      ERR_GET_LIB(code) == ERR_LIB_OSSL_DECODER ||
      (ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE);
  const std::string reason = openssl_reason();
  return Error{fmt::format("{}: no {} in PEM{}", file, what,
                           is_other_file ? "" : fmt::format(" ({})", reason))};
}

Duration since_1970(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return std::chrono::seconds(timegm(&parts));
}

// Empty for a name that is not plain text.
std::string text_of(const ASN1_STRING* string) {
  const auto* data = reinterpret_cast<const char*>(ASN1_STRING_get0_data(string));
  std::string text(data, static_cast<std::size_t>(ASN1_STRING_length(string)));
  const bool printable = std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
  return printable ? text : std::string();
}

std::string digest_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned bytes = 0;
  TUBED_ASSERT(X509_digest(certificate, EVP_sha256(), digest.data(), &bytes) == 1);
  return {digest.begin(), digest.begin() + bytes};
}

TicketKeys& tickets_of(SSL* ssl) {
  auto* state = static_cast<TlsState*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
  return state->tickets;
}

bool set_mac(EVP_MAC_CTX* mac, const TicketKey& key) {
  char digest[] = "SHA256";
  const std::array<OSSL_PARAM, 2> parameters = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_end()};
  return EVP_MAC_init(mac, key.mac_key.data(), key.mac_key.size(), parameters.data()) == 1;
}

// [SSL_CTX_set_tlsext_ticket_key_evp_cb(3)] Returns 0: no key, a full handshake follows; 1: the
// ticket is valid; 2: it is valid, and the client gets a new ticket; -1: error.
int on_ticket(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
              EVP_MAC_CTX* mac, int encrypts) {
  TicketKeys& keys = tickets_of(ssl);
  if (encrypts != 0) {
    const TicketKey& key = keys.newest();
    std::ranges::copy(key.name, name);
    const bool made =
        RAND_bytes(iv, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) == 1 &&
        EVP_EncryptInit_ex(cipher, EVP_aes_256_cbc(), nullptr, key.cipher_key.data(), iv) == 1;
    return made && set_mac(mac, key) ? 1 : -1;
  }
  const TicketKey* key = keys.find(name);
  if (key == nullptr) return 0;
  if (EVP_DecryptInit_ex(cipher, EVP_aes_256_cbc(), nullptr, key->cipher_key.data(), iv) != 1 ||
      !set_mac(mac, *key)) {
    return -1;
  }
  return key == &keys.newest() ? 1 : 2;
}

int on_server_name(SSL* ssl, int*, void* argument) {
  const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  if (name == nullptr) return SSL_TLSEXT_ERR_OK;
  auto& state = *static_cast<TlsState*>(argument);
  for (const Context& context : state.contexts) {
    X509* const certificate = SSL_CTX_get0_certificate(context.get());
    if (X509_check_host(certificate, name, 0, 0, nullptr) != 1) continue;
    SSL_set_SSL_CTX(ssl, context.get());
    break;
  }
  return SSL_TLSEXT_ERR_OK;
}

// A client that offers only other protocols is at the wrong port. [RFC 7301, section 3.2]
int on_alpn(SSL*, const unsigned char** out, unsigned char* out_length, const unsigned char* in,
            unsigned in_length, void* argument) {
  const auto& ours = static_cast<TlsState*>(argument)->alpn;
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_length, ours.data(), static_cast<unsigned>(ours.size()),
                            in, in_length) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

void add_dates(const std::string& file, SSL_CTX* context, std::vector<Certificate>& out) {
  const auto add = [&](X509* certificate) {
    out.push_back({file, since_1970(X509_get0_notBefore(certificate)),
                   since_1970(X509_get0_notAfter(certificate)), digest_of(certificate)});
  };
  add(SSL_CTX_get0_certificate(context));
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context, &chain);
  for (int i = 0; i < sk_X509_num(chain); ++i) add(sk_X509_value(chain, i));
}

// True if each certificate has signed the certificate before it; otherwise a client could not
// verify the first.
bool chain_is_in_order(SSL_CTX* context) {
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(context, &chain);
  X509* signed_one = SSL_CTX_get0_certificate(context);
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    X509* const issuer = sk_X509_value(chain, i);
    if (X509_check_issued(issuer, signed_one) != X509_V_OK) return false;
    signed_one = issuer;
  }
  return true;
}

Result<void> use_pair(SSL_CTX* context, const TlsOptions::Pair& pair) {
  if (SSL_CTX_use_certificate_chain_file(context, pair.certificate.c_str()) != 1)
    return file_error(pair.certificate, "certificate");
  if (!chain_is_in_order(context)) {
    return Error{fmt::format(
        "{}: the chain is out of order: after the server's certificate comes that of its issuer",
        pair.certificate)};
  }
  TRY(os::check_secret(pair.key));
  // A key with a passphrase cannot be used: nothing can ask for the passphrase.
  SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return 0; });
  const bool is_key = SSL_CTX_use_PrivateKey_file(context, pair.key.c_str(), SSL_FILETYPE_PEM) == 1;
  // OpenSSL accepts a key of another type than the certificate's, and then has no certificate for
  // it.
  if (is_key && SSL_CTX_check_private_key(context) == 1) return {};
  const unsigned long code = ERR_peek_last_error();
  if (is_key || ERR_GET_REASON(code) == X509_R_KEY_VALUES_MISMATCH ||
      ERR_GET_REASON(code) == X509_R_KEY_TYPE_MISMATCH) {
    ERR_clear_error();
    return Error{fmt::format("{}: not the key of {}", pair.key, pair.certificate)};
  }
  return file_error(pair.key, "private key without a passphrase");
}

Result<void> require_client_certificates(SSL_CTX* context, const std::string& file) {
  STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(file.c_str());
  if (names == nullptr) return file_error(file, "certificate");
  SSL_CTX_set_client_CA_list(context, names);
  if (SSL_CTX_load_verify_file(context, file.c_str()) != 1) return file_error(file, "certificate");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_verify_depth(context, kMaxChain);
  // Any certificate of the file may end a chain, even an intermediate: the file need not contain
  // the root, and may be meant to exclude whatever else the root signs.
  if (!TUBED_PLANTED(chains_end_at_roots_alone))
    X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
  // A resumed session would be accepted although the certificate has expired meanwhile.
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(context, 0);
  return {};
}

std::vector<std::string> authorities_of(SSL_CTX* context) {
  std::vector<std::string> digests;
  STACK_OF(X509_OBJECT)* all = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
  for (int i = 0; i < sk_X509_OBJECT_num(all); ++i) {
    if (const X509* one = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(all, i)); one != nullptr)
      digests.push_back(digest_of(one));
  }
  std::ranges::sort(digests);
  return digests;
}

void set_rules(SSL_CTX* context, const TlsOptions& options) {
  SSL_CTX_set_min_proto_version(
      context, options.only_1_3 || options.mutual ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_RENEGOTIATION |
                                   SSL_OP_NO_COMPRESSION | SSL_OP_IGNORE_UNEXPECTED_EOF |
                                   SSL_OP_ENABLE_KTLS);
  TUBED_ASSERT(SSL_CTX_set_cipher_list(context, kCiphers) == 1);
  TUBED_ASSERT(SSL_CTX_set_ciphersuites(context, kSuites) == 1);
  std::string groups(kGroups);  // the macro casts to char*
  TUBED_ASSERT(SSL_CTX_set1_groups_list(context, groups.data()) == 1);
  // After a partial write the caller may pass the remaining replies at another address. An idle
  // connection needs no buffers.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  // One system call for a record, or for all small records that have arrived.
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 1);
  SSL_CTX_set_timeout(context,
                      std::chrono::duration_cast<std::chrono::seconds>(kTicketKeyLife).count());
  constexpr std::string_view kSessions = "tubed";
  SSL_CTX_set_session_id_context(context, reinterpret_cast<const unsigned char*>(kSessions.data()),
                                 static_cast<unsigned>(kSessions.size()));
}

void set_callbacks(SSL_CTX* context, TlsState& state) {
  SSL_CTX_set_app_data(context, &state);
  SSL_CTX_set_tlsext_ticket_key_evp_cb(context, &on_ticket);
  // Written out because the macro SSL_CTX_set_tlsext_servername_callback contains a C cast.
  SSL_CTX_callback_ctrl(context, SSL_CTRL_SET_TLSEXT_SERVERNAME_CB,
                        reinterpret_cast<void (*)()>(&on_server_name));
  SSL_CTX_set_tlsext_servername_arg(context, &state);
  SSL_CTX_set_alpn_select_cb(context, &on_alpn, &state);
}

}  // namespace

std::vector<std::string> alternative_names(const x509_st& certificate) {
  std::vector<std::string> result;
  auto* names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    int type = 0;
    const void* value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);
    const char* prefix = type == GEN_DNS     ? "DNS:"
                         : type == GEN_EMAIL ? "email:"
                         : type == GEN_URI   ? "URI:"
                                             : nullptr;
    if (prefix == nullptr) continue;
    const std::string text = text_of(static_cast<const ASN1_STRING*>(value));
    if (!text.empty()) result.push_back(prefix + text);
  }
  GENERAL_NAMES_free(names);
  return result;
}

TlsContext::TlsContext(std::unique_ptr<TlsState> state) : state_(std::move(state)) {}

TlsContext::~TlsContext() = default;

Result<std::shared_ptr<const TlsContext>> TlsContext::load(const TlsOptions& options) {
  TUBED_ASSERT(!options.mutual || !options.client_ca.empty());
  auto state = std::make_unique<TlsState>();
  state->mutual = options.mutual;
  state->alpn.push_back(static_cast<unsigned char>(options.alpn.size()));
  state->alpn.insert(state->alpn.end(), options.alpn.begin(), options.alpn.end());
  for (const TlsOptions::Pair& pair : options.certificates) {
    Context context(SSL_CTX_new(options.mutual ? TLS_method() : TLS_server_method()));
    TUBED_ASSERT(context != nullptr);
    set_rules(context.get(), options);
    TRY(use_pair(context.get(), pair));
    if (!options.client_ca.empty())
      TRY(require_client_certificates(context.get(), options.client_ca));
    state->authorities = authorities_of(context.get());
    if (options.mutual) {
      SSL_CTX_set_max_cert_list(context.get(), kMostMutualHandshake / 2);
    } else {
      set_callbacks(context.get(), *state);
    }
    add_dates(pair.certificate, context.get(), state->certificates);
    state->contexts.push_back(std::move(context));
  }
  ERR_clear_error();
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(state)));
}

bool TlsContext::has_certificates_of(const TlsContext& other) const {
  return std::ranges::equal(state_->certificates, other.state_->certificates, {},
                            &Certificate::digest, &Certificate::digest);
}

bool TlsContext::has_authorities_of(const TlsContext& other) const {
  return state_->authorities == other.state_->authorities;
}

bool TlsContext::has_name(std::string_view name) const {
  const X509* const certificate = SSL_CTX_get0_certificate(native());
  return std::ranges::count(alternative_names(*certificate), name) != 0;
}

bool TlsContext::is_mutual() const {
  return state_->mutual;
}

Duration TlsContext::expires() const {
  return std::ranges::min(state_->certificates, {}, &Certificate::not_after).not_after;
}

std::vector<std::string> TlsContext::complaints(Duration now) const {
  const auto date = [](Duration time) {
    return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC",
                       fmt::gmtime(std::chrono::duration_cast<std::chrono::seconds>(time).count()));
  };
  std::vector<std::string> lines;
  for (const Certificate& one : state_->certificates) {
    if (now < one.not_before) {
      lines.push_back(fmt::format("{}: not valid before {}", one.file, date(one.not_before)));
    } else if (now >= one.not_after) {
      lines.push_back(fmt::format("{}: expired on {}", one.file, date(one.not_after)));
    }
  }
  return lines;
}

ssl_ctx_st* TlsContext::native() const {
  return state_->contexts.front().get();
}

}  // namespace tubed::loop
