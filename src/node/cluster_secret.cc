#include "node/cluster_secret.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "os/secret_file.h"

namespace tubed::node {

namespace {

constexpr std::size_t kMostFileBytes = 4096;
constexpr std::string_view kPrefix = "tbc_";
// Of base64 without padding.
constexpr std::size_t kTextBytes = 43;
constexpr std::string_view kBlankBytes = " \t\r";

std::string_view trimmed(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlankBytes), line.size()));
  return line.substr(0, line.find_last_not_of(kBlankBytes) + 1);
}

// Returns nothing if the text is no secret.
std::optional<ClusterSecret> decode(std::string_view text) {
  if (!text.starts_with(kPrefix) || text.size() != kPrefix.size() + kTextBytes) return std::nullopt;
  std::string base64(text.substr(kPrefix.size()));
  const auto is_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  if (!std::ranges::all_of(base64, is_digit)) return std::nullopt;
  std::ranges::replace(base64, '-', '+');
  std::ranges::replace(base64, '_', '/');
  base64 += '=';
  std::array<unsigned char, 33> bytes{};  // with a byte for the padding
  if (EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(base64.data()),
                      static_cast<int>(base64.size())) != static_cast<int>(bytes.size()))
    return std::nullopt;
  ClusterSecret secret{};
  std::copy_n(bytes.begin(), secret.size(), secret.begin());
  return secret;
}

}  // namespace

Result<ClusterSecrets> ClusterSecrets::parse(std::string_view text, const std::string& file) {
  ClusterSecrets result;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(whole.size() + 1, text.size()));
    const std::string_view line = trimmed(whole);
    if (line.empty() || line.starts_with('#')) continue;
    const auto secret = decode(line);
    // The reason leaves out the text of the line.
    std::string_view reason;
    if (!secret) reason = "not a secret as tubectl cluster secret prints it";
    if (secret && result.contains(*secret)) reason = "another line has this secret";
    if (secret && result.secrets_.size() == kMost) reason = "more than two secrets";
    if (!reason.empty()) return Error{fmt::format("{}:{}: {}", file, number, reason)};
    result.secrets_.push_back(*secret);
  }
  if (result.empty()) return Error{fmt::format("{}: it has no secret", file)};
  return result;
}

Result<ClusterSecrets> ClusterSecrets::read(const std::string& file) {
  if (file.empty()) return ClusterSecrets();
  const std::string text = TRY(os::read_own_secret(file, kMostFileBytes));
  return parse(text, file);
}

bool ClusterSecrets::contains(const ClusterSecret& secret) const {
  return std::ranges::find(secrets_, secret) != secrets_.end();
}

}  // namespace tubed::node
