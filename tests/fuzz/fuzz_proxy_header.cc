// Fuzzes the header of the PROXY protocol: any bytes are a header, the beginning of one, or none.
// The answer for the whole input and for each of its beginnings agree, so pieces of any size give
// the same result, and what a header names can be shown in one line.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "loop/proxy_header.h"
#include "os/socket.h"
#include "text/utf8.h"

namespace {

using namespace tubed;

bool is_one_line(std::string_view text) {
  return is_utf8(text) && std::ranges::none_of(text, [](char c) {
           return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
         });
}

void check(const loop::ProxyHeader& header, std::string_view received) {
  TUBED_ASSERT(header.bytes > 0 && header.bytes <= received.size());
  TUBED_ASSERT(header.bytes <= loop::kMaxProxyHeader);
  const auto& [address, tls_name] = header.client;
  TUBED_ASSERT(is_one_line(address) && is_one_line(tls_name) && tls_name.size() <= 256);
  TUBED_ASSERT(!address.empty() || tls_name.empty());
  // list-clients shows it as one word.
  TUBED_ASSERT(os::peer_word(address).find(' ') == std::string::npos);
  if (address.empty() || address.starts_with("unix")) return;
  TUBED_ASSERT(os::host_of(address).has_value() && !os::network_of(address).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data),
                               std::min(size, 2 * loop::kMaxProxyHeader));
  const auto whole = loop::parse_proxy_header(input);
  if (whole && whole.value()) check(*whole.value(), input);
  TUBED_ASSERT(input.size() < loop::kMaxProxyHeader || !whole || whole.value());
  // The end of the first beginning that is not incomplete.
  std::size_t decided = 0;
  for (; decided <= input.size(); ++decided) {
    const auto part = loop::parse_proxy_header(input.substr(0, decided));
    if (part && !part.value()) continue;
    TUBED_ASSERT(part.ok() == whole.ok());
    if (!part) {
      TUBED_ASSERT(part.error().message == whole.error().message &&
                   part.error().message.size() < 80);
      return 0;
    }
    TUBED_ASSERT((*part)->bytes == decided && (*whole)->bytes == decided);
    TUBED_ASSERT((*part)->client.address == (*whole)->client.address);
    TUBED_ASSERT((*part)->client.tls_name == (*whole)->client.tls_name);
    return 0;
  }
  TUBED_ASSERT(whole.ok() && !whole.value());
  return 0;
}
