#include "commands/foreign_protocol.h"

#include "base/planted.h"
#include "commands/conversation.h"
#include "text/ascii.h"

namespace tubed::commands {

namespace {

constexpr std::string_view kCapitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view kHost = "host:";
// A record of a handshake, of version 3.x. [RFC 8446, section 5.1]
constexpr std::string_view kTlsHandshake = "\x16\x03";

// [RFC 9112, section 3]
bool is_request_line(std::string_view line) {
  const std::size_t method = line.find_first_not_of(kCapitals);
  if (method == 0 || method == std::string_view::npos || line[method] != ' ') return false;
  const std::size_t target = line.find(' ', method + 1);
  if (target == std::string_view::npos || target == method + 1) return false;
  return line.substr(target + 1).starts_with("HTTP/");
}

}  // namespace

bool is_foreign_protocol(std::string_view line) {
  if (TUBED_PLANTED(http_is_run_as_commands)) return false;
  return is_request_line(line) || line.starts_with(kTlsHandshake) ||
         equal_but_for_case(line.substr(0, kHost.size()), kHost);
}

// True if the connection ends after the reply to this line. The rest of the input is not read.
bool Conversation::end_foreign_protocol(std::string_view line) {
  if (!is_foreign_protocol(line)) return false;
  service_.counters().count(stats::Counter::client_foreign);
  end_ = End::foreign;
  return true;
}

}  // namespace tubed::commands
