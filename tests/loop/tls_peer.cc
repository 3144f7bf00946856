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

void add_name(X509* certificate, const std::string& name) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  TUBED_ASSERT(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                                          reinterpret_cast<const unsigned char*>(name.c_str()), -1,
                                          -1, 0) == 1);
  X509_set_issuer_name(certificate, subject);
  X509_EXTENSION* names =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, ("DNS:" + name).c_str());
  TUBED_ASSERT(names != nullptr);
  X509_add_ext(certificate, names, -1);
  X509_EXTENSION_free(names);
}

template <class Write>
void write_pem(const std::string& file, const Write& write) {
  std::FILE* stream = std::fopen(file.c_str(), "w");
  TUBED_ASSERT(stream != nullptr);
  TUBED_ASSERT(::fchmod(::fileno(stream), 0600) == 0);
  TUBED_ASSERT(write(stream) == 1);
  std::fclose(stream);
}

}  // namespace

CertificateFiles make_certificate(const Directory& directory, const std::string& name, long from,
                                  long until) {
  EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
  X509* certificate = X509_new();
  TUBED_ASSERT(key != nullptr);
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), from);
  X509_gmtime_adj(X509_getm_notAfter(certificate), until);
  X509_set_pubkey(certificate, key);
  add_name(certificate, name);
  TUBED_ASSERT(X509_sign(certificate, key, EVP_sha256()) > 0);
  const CertificateFiles files = {directory.file(name + ".pem"), directory.file(name + ".key")};
  write_pem(files.certificate,
            [&](std::FILE* stream) { return PEM_write_X509(stream, certificate); });
  write_pem(files.key, [&](std::FILE* stream) {
    return PEM_write_PrivateKey(stream, key, nullptr, nullptr, 0, nullptr, nullptr);
  });
  X509_free(certificate);
  EVP_PKEY_free(key);
  return files;
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
