#include "tubectl/options.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include "client/address.h"
#include "options/value.h"
#include "protocol/arguments.h"
#include "tubectl/jobs/ids.h"

namespace tubed::tubectl {

Result<void> check_addresses(std::string_view text) {
  TRY(client::parse_addresses(text));
  return {};
}

Result<void> check_unix_socket(std::string_view text) {
  const auto address = TRY(client::parse_address(text));
  if (address.family == AF_UNIX) return {};
  return options::not_a_value(text, "a unix socket: unix:PATH or an absolute path");
}

Result<void> check_tube(std::string_view text) {
  if (is_tube_name(text)) return {};
  return Error{fmt::format("\"{}\" is not a tube's name", text)};
}

Result<void> check_job_id(std::string_view text) {
  if (is_id_or_stdin(text)) return {};
  Error error = not_an_id(text);
  if (is_tube_name(text)) {
    error.message += fmt::format("; the jobs of a tube: tubectl list {}", text);
  }
  return error;
}

Result<void> check_job_or_tube(std::string_view text) {
  return is_tube_name(text) ? Result<void>() : check_job_id(text);
}

}  // namespace tubed::tubectl
