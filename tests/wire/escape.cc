#include "tests/wire/escape.h"

#include <cstdio>

#include "text/numbers.h"

namespace tubed::wire {
namespace {

// Returns the byte of a one-letter escape, or -1.
int short_escape(char letter) {
  switch (letter) {
    case 'r':
      return '\r';
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case '0':
      return '\0';
    case '\\':
      return '\\';
    case '{':
      return '{';
    default:
      return -1;
  }
}

void append_shown(std::string& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  switch (c) {
    case '\r':
      out += "\\r";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '"':
      out += "\\\"";
      return;
    default:
      break;
  }
  if (byte >= 0x20 && byte < 0x7f) {
    out += c;
    return;
  }
  char hex[5];
  std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned>(byte));
  out += hex;
}

}  // namespace

Result<std::string> unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return Error{"a backslash at the end of the text"};
    if (text[i] == 'x') {
      const std::string_view digits = text.substr(i + 1, 2);
      const auto value = parse_number<std::uint8_t>(digits, 16);
      if (digits.size() != 2 || !value) return Error{"\\x needs two hexadecimal digits"};
      out += static_cast<char>(*value);
      i += 2;
      continue;
    }
    const int byte = short_escape(text[i]);
    if (byte < 0) return Error{std::string("unknown escape \\") + text[i]};
    out += static_cast<char>(byte);
  }
  return out;
}

std::string shown(std::string_view bytes) {
  constexpr std::size_t kLongest = 240;
  std::string out = "\"";
  const bool cut = bytes.size() > kLongest;
  for (const char c : bytes.substr(0, cut ? kLongest / 2 : bytes.size())) append_shown(out, c);
  if (cut) {
    out += "\" (" + std::to_string(bytes.size() - kLongest) + " bytes) \"";
    for (const char c : bytes.substr(bytes.size() - kLongest / 2)) append_shown(out, c);
  }
  return out + '"';
}

}  // namespace tubed::wire
