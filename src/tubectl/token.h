// Tokens: with a token a client shows which role it has. The server keeps only the SHA-256 of each,
// in a file of lines "NAME sha256:HEX".
//
// A token is a secret. It is read from a file and sent to the server, and is in no message, no
// argument and no environment.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tubed::tubectl {

// The longest that fits into a command: "auth ", the token, CR LF.
inline constexpr std::size_t kMaxTokenBytes = 217;

// "tbd_" and 43 letters, digits, - and _: 32 random bytes of the kernel. An Error: it has none.
Result<std::string> make_token();

// The token in a file of one line, or on standard input if the path is "-". An Error: the file
// cannot be read, other users may read it, or it has no token.
Result<std::string> read_token(const std::string& path);
// Creates a file, for its owner only, with the token in it. An Error: it exists, or cannot be
// written; then it is not there.
Result<void> write_token(const std::string& path, const std::string& token);

// 1 to 64 letters, digits, - _ . and @.
bool is_token_name(std::string_view name);
// "sha256:" and 64 hexadecimal digits.
std::string token_hash(std::string_view token);

}  // namespace tubed::tubectl
