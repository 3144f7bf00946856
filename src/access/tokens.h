// Tokens: the file of the tokens with which clients may authenticate. [extension: authentication]
//
// The file has only the SHA-256 of each token: a stolen copy admits no client. A token is as random
// as a key, so a hash without salt and stretching is enough. [tubectl token new]
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "serving/client_identity.h"

namespace tubed::access {

struct Token {
  std::string name;
  serving::TokenHash hash{};
  friend bool operator==(const Token&, const Token&) = default;
};

serving::TokenHash hash_of(std::string_view token);

// Reads lines "NAME sha256:HEX"; empty lines and those that begin with # are comments. `file` is
// the name of the file in errors, which are one line with file and line, without hashes. No two
// tokens have the same name or hash. O(text).
Result<std::vector<Token>> parse_tokens(std::string_view text, const std::string& file);
// Reads a file of at most 1 MiB, which other users must not be able to read or change.
Result<std::vector<Token>> read_tokens(const std::string& file);

// Returns the token with this hash, or null. The time does not depend on the hashes. O(tokens).
const Token* find_token(const std::vector<Token>& tokens, const serving::TokenHash& hash);

}  // namespace tubed::access
