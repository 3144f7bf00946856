#include "access/tokens.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "base/planted.h"
#include "os/secret_file.h"

namespace tubed::access {

namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxNameBytes = 64;
constexpr std::string_view kHashPrefix = "sha256:";
constexpr std::string_view kBlanks = " \t\r";

// Removes the next word from the line and returns it.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(kBlanks));
  line.remove_prefix(word.size());
  return word;
}

bool is_name(std::string_view text) {
  const auto allowed = [](char c) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    return is_letter || (c >= '0' && c <= '9') ||
           std::string_view("-_.@").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= kMaxNameBytes && std::ranges::all_of(text, allowed);
}

// Returns -1 if it is no hexadecimal digit.
int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool read_hash(std::string_view text, serving::TokenHash& hash) {
  if (!text.starts_with(kHashPrefix)) return false;
  text.remove_prefix(kHashPrefix.size());
  if (text.size() != 2 * hash.size()) return false;
  for (std::size_t i = 0; i < hash.size(); ++i) {
    const int high = digit(text[2 * i]);
    const int low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    hash[i] = static_cast<unsigned char>(high << 4 | low);
  }
  return true;
}

// The reason leaves out the text of the line, which may be a token by mistake.
std::string_view read_line(std::string_view line, Token& token) {
  const std::string_view name = take_word(line);
  const std::string_view hash = take_word(line);
  if (!is_name(name)) return "the name of a token has 1 to 64 letters, digits and -_.@";
  if (!read_hash(hash, token.hash)) return "expected NAME sha256: and 64 hexadecimal digits";
  if (!take_word(line).empty()) return "unexpected text after the hash";
  token.name = name;
  return {};
}

}  // namespace

serving::TokenHash hash_of(std::string_view token) {
  serving::TokenHash hash;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), hash.data());
  return hash;
}

Result<std::vector<Token>> parse_tokens(std::string_view text, const std::string& file) {
  std::vector<Token> tokens;
  std::set<std::string, std::less<>> names;
  std::set<serving::TokenHash> hashes;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto first = line.find_first_not_of(kBlanks);
    if (first == std::string_view::npos || line[first] == '#') continue;
    Token token;
    std::string_view reason = read_line(line, token);
    if (reason.empty() && !names.insert(token.name).second) reason = "another token has this name";
    // One token with two names could have two roles.
    if (reason.empty() && !hashes.insert(token.hash).second && !TUBED_PLANTED(token_with_two_names))
      reason = "another token has this hash";
    if (!reason.empty()) return Error{fmt::format("{}:{}: {}", file, number, reason)};
    tokens.push_back(std::move(token));
  }
  return tokens;
}

Result<std::vector<Token>> read_tokens(const std::string& file) {
  const std::string text = TRY(os::read_secret(file, kMaxFileBytes));
  return parse_tokens(text, file);
}

const Token* find_token(const std::vector<Token>& tokens, const serving::TokenHash& hash) {
  const Token* found = nullptr;
  for (const Token& token : tokens) {
    if (CRYPTO_memcmp(token.hash.data(), hash.data(), hash.size()) == 0) found = &token;
  }
  return found;
}

}  // namespace tubed::access
