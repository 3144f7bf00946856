// How the bytes of a header are checked
//
// libmicrohttpd 0.9.75, the version of Debian 12, passes on texts that end with a zero byte. It
// drops whatever follows a zero byte from the client, joins a folded line to the field before, and
// accepts LF as CR LF; the texts do not show this. But it splits the header in place: `method`
// points to the first byte of the header, whose size is known, and each separator, CR and LF has
// become a zero byte. has_plain_lines() walks over these bytes and compares their layout with that
// of a regular header. Other versions check these bytes themselves and split the header
// differently, so they need no walk.
#include "loop/http_framing.h"

#include <cstring>

#include <microhttpd.h>

#include "base/planted.h"
#include "text/ascii.h"

namespace tubed::loop {

namespace {

constexpr std::string_view kSplitsInPlace = "0.9.75";
// CR LF, as libmicrohttpd leaves it after splitting.
constexpr std::string_view kSplitLineEnd{"\0\0", 2};

// [RFC 9110, section 5.6.2]
bool is_header_name(std::string_view name) {
  constexpr std::string_view kTokens =
      "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return !name.empty() && name.find_first_not_of(kTokens) == std::string_view::npos;
}

// [RFC 9110, section 5.5]
bool is_header_value(std::string_view value) {
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && byte != '\t') || byte == 0x7f) return false;
  }
  return true;
}

MHD_Result check_texts(void* are_texts, MHD_ValueKind, const char* name, const char* value) {
  const bool is_text = is_header_name(name) && is_header_value(value == nullptr ? "" : value);
  if (!is_text) *static_cast<bool*>(are_texts) = false;
  return is_text ? MHD_YES : MHD_NO;
}

bool has_texts(MHD_Connection* connection) {
  bool are_texts = true;
  MHD_get_connection_values(connection, MHD_HEADER_KIND, &check_texts, &are_texts);
  return are_texts;
}

// Removes and returns the text up to the next zero byte, and removes that byte. No value: no
// further zero byte.
std::optional<std::string_view> take_text(std::string_view& header) {
  const std::size_t end = header.find('\0');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view text = header.substr(0, end);
  header.remove_prefix(end + 1);
  return text;
}

bool take_line_end(std::string_view& header) {
  if (!header.starts_with(kSplitLineEnd)) return false;
  header.remove_prefix(kSplitLineEnd.size());
  return true;
}

// Removes "name: value" and the end of the line.
bool take_line(std::string_view& header) {
  const auto name = take_text(header);
  if (!name || !is_header_name(*name)) return false;
  const std::size_t end = header.find('\0');
  if (end == std::string_view::npos || !is_header_value(header.substr(0, end))) return false;
  header.remove_prefix(end);
  return take_line_end(header);
}

// Precondition: libmicrohttpd splits in place.
bool has_plain_lines(std::string_view target, MHD_Connection* connection, const char* method,
                     const char* version) {
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  if (info == nullptr) return false;
  std::string_view header(method, info->header_size);
  if (take_text(header) != std::string_view(method)) return false;
  // The target has been unescaped in place; the version must follow it.
  if (header.size() < target.size() + 1) return false;
  header.remove_prefix(target.size() + 1);
  if (header.data() != version) return false;
  header.remove_prefix(std::strlen(version));
  if (!take_line_end(header)) return false;
  while (header.size() > kSplitLineEnd.size()) {
    if (!take_line(header)) return false;
  }
  return header == kSplitLineEnd;
}

HttpResponse bad_framing(const char* text) {
  return {.status = 400, .text = text};
}

}  // namespace

std::optional<HttpResponse> refuse_framing(const HttpRequest& request, MHD_Connection* connection,
                                           const char* method, const char* version) {
  const std::size_t lengths = request.count_headers(MHD_HTTP_HEADER_CONTENT_LENGTH);
  const std::size_t encodings = request.count_headers(MHD_HTTP_HEADER_TRANSFER_ENCODING);
  // libmicrohttpd would use the first header.
  if (lengths + encodings > 1) return bad_framing("the length of the body is ambiguous\n");
  if (!TUBED_PLANTED(http_lenient_header)) {
    if (request.count_headers(MHD_HTTP_HEADER_HOST) > 1)
      return bad_framing("there is more than one Host\n");
    if (!has_texts(connection) || (MHD_get_version() == kSplitsInPlace &&
                                   !has_plain_lines(request.target(), connection, method, version)))
      return bad_framing("the header is malformed\n");
  }
  if (encodings == 0) return std::nullopt;
  // [RFC 9112, section 6.1]
  if (std::string_view(version) != MHD_HTTP_VERSION_1_1)
    return bad_framing("only HTTP/1.1 has Transfer-Encoding\n");
  if (equal_but_for_case(*request.header(MHD_HTTP_HEADER_TRANSFER_ENCODING), "chunked"))
    return std::nullopt;
  return HttpResponse{.status = 501, .text = "unknown Transfer-Encoding\n"};
}

}  // namespace tubed::loop
