// Guard: checks the origin of a request. A web page of another site must not use the API through
// the browser of an operator.
//
// - The Host is a numeric address, localhost or a name of http.hosts: a page cannot reach the
//   server by a name of its own that it lets point here (DNS rebinding).
// - The Origin, which browsers add to requests of pages, is that Host: no page of another site.
// - Sec-Fetch-Site, in which browsers say whose page sends the request, names this server's pages
//   or the user: a page of another site can send a GET without an Origin, and though it does not
//   see the answer, it would use up places of others.
// - A request that may change something has a header that no page of another site can add without
//   asking first: X-Requested-By, with any value.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/problem.h"

namespace tubed::api {

inline constexpr const char* kRequestedBy = "X-Requested-By";

// The headers of a request; nothing: the request lacks the header.
struct RequestHeaders {
  std::optional<std::string_view> host;
  std::optional<std::string_view> origin;
  std::optional<std::string_view> fetch_site;
  std::optional<std::string_view> requested_by;
};

// Nothing: the request is accepted. `hosts`: of the settings. O(headers + hosts).
std::optional<Problem> check_origin(const RequestHeaders& headers, bool may_change,
                                    const std::vector<std::string>& hosts);

}  // namespace tubed::api
