#include "tubectl/body_json.h"

#include <array>
#include <cstdint>

namespace tubed::tubectl {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr const char* kBody = "body";
constexpr const char* kBodyBase64 = "body_base64";

// What dump() takes as text.
bool is_utf8(std::string_view text) {
  std::size_t at = 0;
  const auto continues = [&](std::size_t place, unsigned least, unsigned most) {
    if (place >= text.size()) return false;
    const auto byte = static_cast<unsigned char>(text[place]);
    return byte >= least && byte <= most;
  };
  while (at < text.size()) {
    const auto first = static_cast<unsigned char>(text[at]);
    // [RFC 3629, section 4]
    std::size_t length = 1;
    unsigned least = 0x80;
    unsigned most = 0xbf;
    if (first >= 0xf0 && first <= 0xf4) {
      length = 4;
      if (first == 0xf0) least = 0x90;
      if (first == 0xf4) most = 0x8f;
    } else if (first >= 0xe0 && first < 0xf0) {
      length = 3;
      if (first == 0xe0) least = 0xa0;
      if (first == 0xed) most = 0x9f;
    } else if (first >= 0xc2 && first < 0xe0) {
      length = 2;
    } else if (first >= 0x80) {
      return false;
    }
    for (std::size_t i = 1; i < length; ++i) {
      if (!continues(at + i, i == 1 ? least : 0x80, i == 1 ? most : 0xbf)) return false;
    }
    at += length;
  }
  return true;
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
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
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
