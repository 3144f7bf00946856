// Document: a tree of values, written as YAML or as JSON.
//
// The YAML is plain enough for any parser: a text is in double quotes, with the escapes of JSON,
// unless it is letters, digits and spaces that no version of YAML takes for anything else.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tubed::docs {

class Document {
 public:
  using Member = std::pair<std::string, Document>;

  Document() : value_(Map()) {}
  Document(std::string text) : value_(std::move(text)) {}
  Document(std::string_view text) : value_(std::string(text)) {}
  Document(const char* text) : value_(std::string(text)) {}
  Document(std::same_as<bool> auto value) : value_(value) {}
  template <std::integral Number>
  requires(!std::same_as<Number, bool>) Document(Number number)
      : value_(static_cast<std::uint64_t>(number)) {}
  // A map, in this order.
  Document(std::initializer_list<Member> members) : value_(Map(members)) {}

  static Document list(std::vector<Document> values) { return Document(List(std::move(values))); }
  static Document texts(const std::vector<std::string>& values) {
    return list(std::vector<Document>(values.begin(), values.end()));
  }

  // The value of the key; adds an empty map for a new key. Precondition: a map.
  Document& operator[](std::string_view key);
  // Precondition: a list.
  void append(Document value) { std::get<List>(value_).push_back(std::move(value)); }
  // An empty map or list.
  bool empty() const;

  std::string to_yaml() const;
  std::string to_json() const;

 private:
  using Map = std::vector<Member>;
  using List = std::vector<Document>;

  explicit Document(List values) : value_(std::move(values)) {}

  bool is_nested() const { return !empty() && value_.index() >= 3; }
  void append_yaml(std::size_t indent, std::string& text) const;
  void append_scalar(std::string& text) const;
  void append_json(std::string& text) const;

  std::variant<std::string, std::uint64_t, bool, Map, List> value_;
};

}  // namespace tubed::docs
