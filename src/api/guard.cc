#include "api/guard.h"

#include <algorithm>

#include "base/planted.h"
#include "text/ascii.h"

namespace tubed::api {

namespace {

bool has_only(std::string_view text, std::string_view bytes) {
  return !text.empty() && text.find_first_not_of(bytes) == std::string_view::npos;
}

// Without the port. Empty: malformed.
std::string_view name_in(std::string_view host) {
  const std::size_t bracket = host.starts_with('[') ? host.find(']') : 0;
  if (bracket == std::string_view::npos) return {};
  const std::size_t end = std::min(host.find_first_of(":", bracket), host.size());
  const std::string_view port = host.substr(end);
  if (!port.empty() && !has_only(port.substr(1), "0123456789")) return {};
  return host.substr(0, end);
}

// An IPv4 address, or an IPv6 address in brackets. A name of the DNS that consists of digits and
// points alone does not exist: the last label has a letter. [RFC 3696, section 2]
bool is_numeric(std::string_view name) {
  if (!name.starts_with('[')) return has_only(name, "0123456789.");
  return name.ends_with(']') &&
         has_only(name.substr(1, name.size() - 2), "0123456789abcdefABCDEF:.");
}

bool is_own_name(std::string_view host, const std::vector<std::string>& hosts) {
  std::string_view name = name_in(host);
  if (name.ends_with('.')) name.remove_suffix(1);
  return is_numeric(name) || equal_but_for_case(name, "localhost") ||
         std::ranges::any_of(hosts,
                             [&](const std::string& own) { return equal_but_for_case(name, own); });
}

bool is_of_host(std::string_view origin, std::string_view host) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme)) return equal_but_for_case(origin.substr(scheme.size()), host);
  }
  return false;
}

// "same-site" is a page of another port, or of another name in the same domain. [Fetch Metadata]
bool is_own_page(std::string_view fetch_site) {
  return fetch_site == "same-origin" || fetch_site == "none";
}

}  // namespace

std::optional<Problem> check_origin(const RequestHeaders& headers, bool may_change,
                                    const std::vector<std::string>& hosts) {
  if (!headers.host || !is_own_name(*headers.host, hosts)) {
    return Problem{.status = 421,
                   .kind = "foreign-host",
                   .title = "Misdirected request",
                   .detail =
                       "The Host of the request is no numeric address, not localhost and not "
                       "in http.hosts."};
  }
  const bool is_of_other_page = headers.fetch_site && !is_own_page(*headers.fetch_site) &&
                                !TUBED_PLANTED(api_ignores_fetch_site);
  if (is_of_other_page || (headers.origin && !is_of_host(*headers.origin, *headers.host)))
    return forbidden("The request comes from a page of another site.");
  if (may_change && (!headers.requested_by || headers.requested_by->empty()))
    return forbidden("A request that may change something needs the header X-Requested-By.");
  return std::nullopt;
}

}  // namespace tubed::api
