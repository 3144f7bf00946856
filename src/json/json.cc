// The only file that includes nlohmann-json. It parses, renders numbers with a fraction, and
// repairs text that is not UTF-8; the writer here renders everything else, without a copy of the
// value.
//
// Reading: Reader receives the events of the SAX parser and keeps a stack of open objects and
// arrays. When a value ends, it is added to the value below it. A value that is nested too deep for
// the stack is an error, or is parsed and dropped.
//
// Writing: append() renders a value recursively into one line; text is escaped byte by byte, and
// text that is not UTF-8 is repaired first. Bodies are the large values: they are checked once for
// UTF-8 and copied once into the line.
#include "json/json.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "text/utf8.h"

namespace tubed::json {

// Collects values from the events of the parser.
class Reader : public nlohmann::json_sax<nlohmann::json> {
 public:
  enum class Deeper : std::uint8_t {
    refused,
    dropped,  // it becomes an empty object
  };
  // `depth`: of the objects and arrays that are kept. `deeper`: what becomes of others.
  Reader(std::size_t depth, Deeper deeper) : depth_(depth), deeper_(deeper) {}

  bool null() override { return take(Json()); }
  bool boolean(bool value) override { return take(value); }
  // Negative numbers are not whole numbers here.
  bool number_integer(number_integer_t value) override { return take(static_cast<double>(value)); }
  bool number_unsigned(number_unsigned_t value) override { return take(value); }
  bool number_float(number_float_t value, const string_t&) override { return take(value); }
  bool string(string_t& value) override { return take(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool key(string_t& value) override {
    if (dropped_ == 0) open_.back().key = std::move(value);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array({})); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

  // Precondition: the parser has succeeded.
  Json result() && { return std::move(result_); }

 private:
  struct Open {
    Json value;
    std::string key;  // of the member that comes next, if the value is an object
  };

  bool take(Json value) {
    if (dropped_ > 0) return true;
    if (open_.empty()) {
      result_ = std::move(value);
    } else if (open_.back().value.is_object()) {
      open_.back().value[open_.back().key] = std::move(value);
    } else {
      std::get<Json::Array>(open_.back().value.value_).push_back(std::move(value));
    }
    return true;
  }
  bool open(Json value) {
    if (open_.size() < depth_) {
      open_.push_back({std::move(value), {}});
      return true;
    }
    if (deeper_ == Deeper::refused) return false;
    if (dropped_ == 0) take(Json::object());
    ++dropped_;
    return true;
  }
  bool close() {
    if (dropped_ > 0) {
      --dropped_;
      return true;
    }
    Json value = std::move(open_.back().value);
    open_.pop_back();
    return take(std::move(value));
  }

  const std::size_t depth_;
  const Deeper deeper_;
  std::vector<Open> open_;
  std::size_t dropped_ = 0;  // objects and arrays that are open and not kept
  Json result_;
};

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kBody = "body";
constexpr std::string_view kBodyBase64 = "body_base64";

// --- Writing

// The second byte of U+0080 to U+009F, whose first byte is 0xC2, is in this range.
bool is_c1_control(unsigned char byte) {
  return byte >= 0x80 && byte < 0xa0;
}

// Escapes one byte, or the second byte of a C1 control character, whose code point equals that
// byte.
void append_escape(char byte, std::string& line) {
  switch (byte) {
    case '"':
      line += "\\\"";
      return;
    case '\\':
      line += "\\\\";
      return;
    case '\b':
      line += "\\b";
      return;
    case '\f':
      line += "\\f";
      return;
    case '\n':
      line += "\\n";
      return;
    case '\r':
      line += "\\r";
      return;
    case '\t':
      line += "\\t";
      return;
    default:
      fmt::format_to(std::back_inserter(line), "\\u00{:02x}", static_cast<unsigned char>(byte));
  }
}

// Precondition: UTF-8.
void append_utf8(std::string_view text, std::string& line) {
  line.push_back('"');
  std::size_t copied = 0;  // of text
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    const bool c1 = byte == 0xc2 && is_c1_control(static_cast<unsigned char>(text[at + 1]));
    if (byte >= 0x20 && byte != '"' && byte != '\\' && byte != 0x7f && !c1) continue;
    line.append(text.substr(copied, at - copied));
    if (c1) ++at;
    append_escape(text[at], line);
    copied = at + 1;
  }
  line.append(text.substr(copied)).push_back('"');
}

// With U+FFFD in place of what is not UTF-8.
std::string repaired(std::string_view text) {
  using Value = nlohmann::json;
  const auto repaired = Value(text).dump(-1, ' ', false, Value::error_handler_t::replace);
  return Value::parse(repaired).get<std::string>();
}

}  // namespace

std::optional<Json> Json::parse(std::string_view line) {
  Reader reader(1, Reader::Deeper::dropped);
  if (!nlohmann::json::sax_parse(line.begin(), line.end(), &reader)) return std::nullopt;
  Json value = std::move(reader).result();
  return value.is_object() ? std::optional(std::move(value)) : std::nullopt;
}

std::optional<Json> Json::parse_document(std::string_view text) {
  Reader reader(kMaxDepth, Reader::Deeper::refused);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader)) return std::nullopt;
  return std::move(reader).result();
}

Json& Json::operator[](std::string_view key) {
  if (std::holds_alternative<std::monostate>(value_)) value_ = Members();
  auto& members = std::get<Members>(value_);
  const auto found = std::ranges::find(members, key, &Member::first);
  if (found != members.end()) return found->second;
  return members.emplace_back(key, Json()).second;
}

const Json* Json::find(std::string_view key) const {
  const auto found = std::ranges::find(members(), key, &Member::first);
  return found != members().end() ? &found->second : nullptr;
}

std::optional<std::uint64_t> Json::number() const {
  const auto* const number = std::get_if<std::uint64_t>(&value_);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

std::optional<bool> Json::truth() const {
  const auto* const truth = std::get_if<bool>(&value_);
  return truth != nullptr ? std::optional(*truth) : std::nullopt;
}

void append_text(std::string_view text, std::string& line) {
  if (is_utf8(text)) return append_utf8(text, line);
  append_utf8(repaired(text), line);
}

void append(const Json& value, std::string& line) {
  if (const auto* const text = value.text()) {
    append_text(*text, line);
  } else if (const auto number = value.number()) {
    fmt::format_to(std::back_inserter(line), "{}", *number);
  } else if (const auto* const members = std::get_if<Json::Members>(&value.value_)) {
    line.push_back('{');
    for (const auto& [key, member] : *members) {
      if (line.back() != '{') line.push_back(',');
      append_utf8(key, line);
      line.push_back(':');
      append(member, line);
    }
    line.push_back('}');
  } else if (const auto* const values = std::get_if<Json::Array>(&value.value_)) {
    line.push_back('[');
    for (const Json& one : *values) {
      if (line.back() != '[') line.push_back(',');
      append(one, line);
    }
    line.push_back(']');
  } else if (const auto* const truth = std::get_if<bool>(&value.value_)) {
    line += *truth ? "true" : "false";
  } else if (const auto* const fraction = std::get_if<double>(&value.value_)) {
    line += nlohmann::json(*fraction).dump();
  } else {
    line += "null";
  }
}

std::string to_line(const Json& value) {
  std::string line;
  append(value, line);
  return line;
}

std::pair<std::string_view, std::string> body_member(std::string_view body) {
  if (is_utf8(body)) return {kBody, std::string(body)};
  return {kBodyBase64, to_base64(body)};
}

void set_body(Json& object, std::string_view body) {
  auto [key, value] = body_member(body);
  object[key] = std::move(value);
}

Result<std::string> body_of(const Json& object) {
  const Json* const text = object.find(kBody);
  const Json* const base64 = object.find(kBodyBase64);
  if ((text == nullptr) == (base64 == nullptr)) {
    return Error{"it has neither or both of \"body\" and \"body_base64\""};
  }
  const std::string* const body = (text != nullptr ? text : base64)->text();
  if (body == nullptr) return Error{"its body is not text"};
  if (text != nullptr) return *body;
  return from_base64(*body);
}

// Three bytes become four characters; a last group of one or two bytes is padded with "=".
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

// Only the last group may be padded. The bits of the last character that encode no byte are not
// checked.
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

}  // namespace tubed::json
