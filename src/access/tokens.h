// Tokens: the file of the tokens that clients may authenticate with. [extension: authentication]
//
// The file has no token, only the SHA-256 of each, so that a stolen copy admits no client. A token
// is as random as a key, so that a hash without salt and stretching is enough. [tubectl token new]
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
// its name in errors, which are one line with file and line; they show no hash. No two tokens have
// a name or a hash in common. O(text).
Result<std::vector<Token>> parse_tokens(std::string_view text, const std::string& file);
// The same for a file, which others cannot read or change, of 1 MiB at most.
Result<std::vector<Token>> read_tokens(const std::string& file);

// The token with this hash; null: none. The time that it takes shows nothing of the hashes.
// O(tokens).
const Token* find_token(const std::vector<Token>& tokens, const serving::TokenHash& hash);

}  // namespace tubed::access
