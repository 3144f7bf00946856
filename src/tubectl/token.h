// Tokens: a client shows its role by a token. The server keeps only the SHA-256 of each, in a file
// of lines "NAME sha256:HEX".
//
// A token is a secret. It is read from a file and sent to the server; it never appears in messages,
// arguments or the environment.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tubed::tubectl {

// The longest token that fits into a command: "auth ", the token, CR LF.
inline constexpr std::size_t kMaxTokenBytes = 217;

// "tbd_" and 43 letters, digits, - and _: 32 random bytes of the kernel. Fails if the kernel has
// none.
Result<std::string> make_token();
// The same with "tbc_": a secret for cluster.secret_file.
Result<std::string> make_cluster_secret();

// Reads the token from a file of one line, or from standard input if the path is "-". Fails if the
// file cannot be read, other users may read it, or it has no token.
Result<std::string> read_token(const std::string& path);
// Creates a file with the token, readable only by its owner. Fails if the file exists or cannot be
// written; a partial file is removed.
Result<void> write_token(const std::string& path, const std::string& token);

// 1 to 64 letters, digits, - _ . and @.
bool is_token_name(std::string_view name);
// "sha256:" and 64 hexadecimal digits.
std::string token_hash(std::string_view token);

}  // namespace tubed::tubectl
