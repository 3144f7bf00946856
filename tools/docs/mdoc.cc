// mdoc is a language of lines: a line that begins with a dot is a request, a backslash begins an
// escape, and a sentence should end its line, as the formatter then sets the right space after it.
// mdoc_text() breaks the prose into such lines and escapes what needs it.
#include "tools/docs/mdoc.h"

#include <algorithm>

namespace tubed::docs {
namespace {

constexpr std::size_t kWidth = 78;

// A hyphen at the beginning of a word, or after another, is a minus sign: it marks a flag and must
// be searchable as one.
std::string escaped(std::string_view word) {
  std::string result;
  for (const char c : word) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-' && (result.empty() || result.back() == '-')) {
      result += "\\-";  // a flag, not a hyphen
    } else {
      result += c;
    }
  }
  return result;
}

// Whether the word at the beginning of a line would be a request; "\&" before it prevents that.
bool starts_request(const std::string& word) {
  return word.front() == '.' || word.front() == '\'';
}

bool ends_sentence(std::string_view word) {
  return word.back() == '.' || word.back() == '?' || word.back() == '!';
}

}  // namespace

std::string mdoc_text(std::string_view prose) {
  std::string result;
  std::string line;
  const auto end_line = [&] {
    if (!line.empty()) result += line + '\n';
    line.clear();
  };
  while (!prose.empty()) {
    auto word = escaped(prose.substr(0, prose.find(' ')));
    prose.remove_prefix(std::min(prose.find(' '), prose.size() - 1) + 1);
    if (word.empty()) continue;
    if (line.size() + word.size() + 1 > kWidth) end_line();
    if (line.empty() && starts_request(word)) word.insert(0, "\\&");
    line += line.empty() ? word : ' ' + word;
    if (ends_sentence(word)) end_line();
  }
  end_line();
  return result;
}

}  // namespace tubed::docs
