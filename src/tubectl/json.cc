#include "tubectl/json.h"

#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "tubectl/terminal.h"

namespace tubed::tubectl {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr const char* kBody = "body";
constexpr const char* kBodyBase64 = "body_base64";

// What dump() takes as text.
bool is_utf8(std::string_view text) {
  while (const std::size_t bytes = character_bytes(text)) text.remove_prefix(bytes);
  return text.empty();
}

}  // namespace

void set_body(Json& object, std::string_view body) {
  if (is_utf8(body)) {
    object[kBody] = body;
  } else {
    object[kBodyBase64] = to_base64(body);
  }
}

Result<std::string> body_of(const Json& object) {
  const auto text = object.find(kBody);
  const auto base64 = object.find(kBodyBase64);
  if ((text == object.end()) == (base64 == object.end())) {
    return Error{"it has neither or both of \"body\" and \"body_base64\""};
  }
  const Json& value = text != object.end() ? *text : *base64;
  if (!value.is_string()) return Error{"its body is not text"};
  if (text != object.end()) return value.get<std::string>();
  return from_base64(value.get_ref<const std::string&>());
}

std::string to_line(const Json& value) {
  const std::string line = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  // dump() leaves DEL and U+0080 to U+009F as they are, and a terminal may obey them.
  if (line.find_first_of("\x7f\xc2") == line.npos) return line;
  std::string result;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const bool second_kind = line[at] == '\xc2' && at + 1 < line.size() &&
                             static_cast<unsigned char>(line[at + 1]) < 0xa0;
    if (line[at] != '\x7f' && !second_kind) {
      result.push_back(line[at]);
      continue;
    }
    if (second_kind) ++at;
    result += fmt::format("\\u00{:02x}", static_cast<unsigned char>(line[at]));
  }
  return result;
}

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view group = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      bits = bits << 8 | (i < group.size() ? static_cast<unsigned char>(group[i]) : 0U);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      text.push_back(i <= group.size() ? kAlphabet[bits >> (18 - 6 * i) & 63U] : '=');
    }
  }
  return text;
}

Result<std::string> from_base64(std::string_view text) {
  const Error damaged{"its base64 is damaged"};
  if (text.size() % 4 != 0) return damaged;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::string_view group = text.substr(at, 4);
    const bool last = at + 4 == text.size();
    while (last && group.size() > 2 && group.back() == '=') group.remove_suffix(1);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const auto value = i < group.size() ? kAlphabet.find(group[i]) : 0;
      if (value == kAlphabet.npos) return damaged;
      bits = bits << 6 | static_cast<std::uint32_t>(value);
    }
    for (std::size_t i = 0; i + 1 < group.size(); ++i) {
      bytes.push_back(static_cast<char>(bits >> (16 - 8 * i) & 255U));
    }
  }
  return bytes;
}

}  // namespace tubed::tubectl
