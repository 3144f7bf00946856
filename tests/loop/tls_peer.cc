#include "tests/loop/tls_peer.h"

#include <array>
#include <vector>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "base/assert.h"

namespace tubed::loop_test {

namespace {

void add_extension(X509* certificate, int kind, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
  TUBED_ASSERT(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Returns an unsigned certificate whose issuer is its subject.
X509* new_certificate(EVP_PKEY* key, const std::string& name, long from, long until) {
  static long serial = 0;
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), from);
  X509_gmtime_adj(X509_getm_notAfter(certificate), until);
  X509_set_pubkey(certificate, key);
  X509_NAME* subject = X509_get_subject_name(certificate);
  TUBED_ASSERT(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                          reinterpret_cast<const unsigned char*>(name.c_str()), -1,
                                          -1, 0) == 1);
  X509_set_issuer_name(certificate, subject);
  return certificate;
}

template <class Write>
void write_pem(const std::string& file, const Write& write) {
  std::FILE* stream = std::fopen(file.c_str(), "w");
  TUBED_ASSERT(stream != nullptr);
  TUBED_ASSERT(::fchmod(::fileno(stream), 0600) == 0);
  TUBED_ASSERT(write(stream) == 1);
  std::fclose(stream);
}

CertificateFiles write_files(const Directory& directory, const std::string& stem, X509* certificate,
                             EVP_PKEY* key) {
  const CertificateFiles files = {directory.file(stem + ".pem"), directory.file(stem + ".key")};
  write_pem(files.certificate,
            [&](std::FILE* stream) { return PEM_write_X509(stream, certificate); });
  write_pem(files.key, [&](std::FILE* stream) {
    return PEM_write_PrivateKey(stream, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
  return files;
}

}  // namespace

CertificateFiles make_certificate(const Directory& directory, const std::string& name, long from,
                                  long until) {
  EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
  TUBED_ASSERT(key != nullptr);
  X509* certificate = new_certificate(key, name, from, until);
  add_extension(certificate, NID_subject_alt_name, "DNS:" + name);
  TUBED_ASSERT(X509_sign(certificate, key, EVP_sha256()) > 0);
  const CertificateFiles files = write_files(directory, name, certificate, key);
  X509_free(certificate);
  EVP_PKEY_free(key);
  return files;
}

TestAuthority::TestAuthority(const Directory& directory, const std::string& name)
    : file(directory.file(name + ".ca")),
      directory_(directory),
      name_(name),
      key_(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256")),
      certificate_(new_certificate(key_.get(), name, -60, 3600)) {
  add_extension(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
  TUBED_ASSERT(X509_sign(certificate_.get(), key_.get(), EVP_sha256()) > 0);
  write_pem(file, [&](std::FILE* stream) { return PEM_write_X509(stream, certificate_.get()); });
}

CertificateFiles TestAuthority::sign(const std::string& name, long from, long until) const {
  const std::unique_ptr<EVP_PKEY, Free> key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  const std::unique_ptr<X509, Free> certificate(new_certificate(key.get(), name, from, until));
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate_.get()));
  add_extension(certificate.get(), NID_subject_alt_name, "DNS:" + name);
  TUBED_ASSERT(X509_sign(certificate.get(), key_.get(), EVP_sha256()) > 0);
  return write_files(directory_, name_ + "-" + name, certificate.get(), key.get());
}

TlsPeerClient::TlsPeerClient(os::Socket socket, int version)
    : socket_(std::move(socket)), context_(SSL_CTX_new(TLS_client_method())) {
  TUBED_ASSERT(SSL_CTX_set_min_proto_version(context_.get(), version) == 1);
  TUBED_ASSERT(SSL_CTX_set_max_proto_version(context_.get(), version) == 1);
  // Allows versions that the library forbids by default.
  if (version != 0 && version < TLS1_2_VERSION)
    SSL_CTX_set_cipher_list(context_.get(), "ALL:@SECLEVEL=0");
  SSL_CTX_set_mode(context_.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ssl_.reset(SSL_new(context_.get()));
  TUBED_ASSERT(SSL_set_fd(ssl_.get(), socket_.descriptor()) == 1);
  SSL_set_connect_state(ssl_.get());
}

void TlsPeerClient::present(const CertificateFiles& files) {
  TUBED_ASSERT(SSL_use_certificate_file(ssl_.get(), files.certificate.c_str(), SSL_FILETYPE_PEM) ==
               1);
  TUBED_ASSERT(SSL_use_PrivateKey_file(ssl_.get(), files.key.c_str(), SSL_FILETYPE_PEM) == 1);
}

void TlsPeerClient::ask_for(const std::string& server_name) {
  std::string name = server_name;
  TUBED_ASSERT(SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                        name.data()) == 1);
}

void TlsPeerClient::offer(std::string_view alpn) {
  std::vector<unsigned char> wire = {static_cast<unsigned char>(alpn.size())};
  wire.insert(wire.end(), alpn.begin(), alpn.end());
  TUBED_ASSERT(SSL_set_alpn_protos(ssl_.get(), wire.data(), static_cast<unsigned>(wire.size())) ==
               0);
}

void TlsPeerClient::note(int result) {
  const int error = SSL_get_error(ssl_.get(), result);
  failed_ = failed_ || error == SSL_ERROR_SSL || error == SSL_ERROR_SYSCALL;
  ERR_clear_error();
}

bool TlsPeerClient::shake_hands() {
  if (SSL_is_init_finished(ssl_.get())) return true;
  if (failed_) return false;
  const int result = SSL_do_handshake(ssl_.get());
  if (result != 1) note(result);
  return result == 1;
}

bool TlsPeerClient::receive() {
  std::array<char, 16384> buffer;
  std::size_t got = 0;
  int result = 0;
  while (!failed_ && (result = SSL_read_ex(ssl_.get(), buffer.data(), buffer.size(), &got)) == 1) {
    input_.append(buffer.data(), got);
  }
  const bool ended = SSL_get_error(ssl_.get(), result) == SSL_ERROR_ZERO_RETURN;
  note(result);
  return ended;
}

std::size_t TlsPeerClient::send(std::string_view bytes, std::size_t record) {
  std::size_t total = 0;
  while (!bytes.empty() && !failed_) {
    std::size_t sent = 0;
    const int result =
        SSL_write_ex(ssl_.get(), bytes.data(), std::min(record, bytes.size()), &sent);
    if (result != 1) {
      note(result);
      break;
    }
    total += sent;
    bytes.remove_prefix(sent);
  }
  return total;
}

std::string TlsPeerClient::server_name() const {
  X509* certificate = SSL_get0_peer_certificate(ssl_.get());
  if (certificate == nullptr) return {};
  std::array<char, 256> name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(),
                            static_cast<int>(name.size()));
  return name.data();
}

}  // namespace tubed::loop_test
