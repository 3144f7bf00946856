// Fuzzes the token file: for any text, each token that was read is found by its hash, or the error
// is one line that shows no hash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "access/tokens.h"
#include "base/assert.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tubed;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tokens = access::parse_tokens(text, "tokens");
  if (!tokens) {
    TUBED_ASSERT(tokens.error().message.starts_with("tokens:"));
    TUBED_ASSERT(tokens.error().message.size() < 100);
    TUBED_ASSERT(tokens.error().message.find('\n') == std::string::npos);
    return 0;
  }
  for (const access::Token& token : *tokens) {
    TUBED_ASSERT(!token.name.empty() && text.find(token.name) != std::string_view::npos);
    const access::Token* found = access::find_token(*tokens, token.hash);
    TUBED_ASSERT(found != nullptr && found->hash == token.hash);
  }
  return 0;
}
