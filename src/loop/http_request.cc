#include "loop/http_request.h"

#include <algorithm>

#include <microhttpd.h>
#include <strings.h>

#include "text/numbers.h"

namespace tubed::loop {

namespace {

struct Count {
  std::string_view name;
  std::size_t found = 0;
};

MHD_Result count_if_equal(void* context, MHD_ValueKind, const char* name, const char*) {
  auto& count = *static_cast<Count*>(context);
  const std::string_view text = name;
  if (text.size() == count.name.size() &&
      ::strncasecmp(text.data(), count.name.data(), text.size()) == 0)
    ++count.found;
  return MHD_YES;
}

}  // namespace

std::optional<std::string_view> HttpRequest::header(std::string_view name) const {
  const char* value = nullptr;
  std::size_t bytes = 0;
  if (MHD_lookup_connection_value_n(connection_, MHD_HEADER_KIND, name.data(), name.size(), &value,
                                    &bytes) != MHD_YES) {
    return std::nullopt;
  }
  return std::string_view(value, bytes);
}

std::size_t HttpRequest::count_headers(std::string_view name) const {
  Count count{.name = name};
  MHD_get_connection_values(connection_, MHD_HEADER_KIND, &count_if_equal, &count);
  return count.found;
}

std::optional<std::uint64_t> HttpRequest::body_bytes() const {
  if (header(MHD_HTTP_HEADER_TRANSFER_ENCODING)) return std::nullopt;
  const auto length = header(MHD_HTTP_HEADER_CONTENT_LENGTH);
  if (!length) return 0;
  return leading_number<std::uint64_t>(*length);
}

}  // namespace tubed::loop
