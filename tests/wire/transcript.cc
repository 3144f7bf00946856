#include "tests/wire/transcript.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <system_error>

#include "tests/wire/escape.h"
#include "text/numbers.h"

namespace tubed::wire {
namespace {

// More than any body in a transcript; keeps a mistake from filling the memory.
constexpr std::uint64_t kMostRepeated = 1U << 22;

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Takes the text before an unescaped '{'.
std::string_view take_literal(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && text[end] != '{') end += text[end] == '\\' ? 2 : 1;
  const std::string_view literal = text.substr(0, end);
  text.remove_prefix(literal.size());
  return literal;
}

void append_literal(Pattern& pattern, std::string_view bytes) {
  if (bytes.empty()) return;
  if (pattern.empty() || pattern.back().kind != PatternPiece::Kind::literal) pattern.emplace_back();
  pattern.back().text += bytes;
}

// Parses `repeat TEXT COUNT`, the inside of a placeholder.
Result<std::string> repeated(std::string_view inside) {
  take(inside, "repeat ");
  const std::size_t space = inside.rfind(' ');
  if (space == std::string_view::npos) return Error{"{repeat TEXT COUNT} lacks its count"};
  const auto count = parse_number<std::uint64_t>(inside.substr(space + 1));
  auto unit = unescape(inside.substr(0, space));
  if (!unit) return unit.error();
  if (!count || *count * unit->size() > kMostRepeated) {
    return Error{"{repeat TEXT COUNT}: the count is no number, or too large"};
  }
  std::string out;
  out.reserve(unit->size() * *count);
  for (std::uint64_t i = 0; i < *count; ++i) out += *unit;
  return out;
}

Result<void> append_placeholder(Pattern& pattern, std::string_view inside) {
  using Kind = PatternPiece::Kind;
  if (inside == "int" || inside == "any" || inside == "rest") {
    const Kind kind = inside == "int" ? Kind::integer : inside == "any" ? Kind::any : Kind::rest;
    pattern.push_back({kind, {}});
    return {};
  }
  if (!inside.starts_with("repeat ")) {
    return Error{"unknown placeholder {" + std::string(inside) + "}; a bare brace is \\{"};
  }
  auto text = repeated(inside);
  if (!text) return text.error();
  append_literal(pattern, *text);
  return {};
}

Result<Pattern> parse_pattern(std::string_view text, std::string_view line_end) {
  Pattern pattern;
  while (!text.empty()) {
    auto literal = unescape(take_literal(text));
    if (!literal) return literal.error();
    append_literal(pattern, *literal);
    if (text.empty()) break;
    const std::size_t close = text.find('}');
    if (close == std::string_view::npos) return Error{"a placeholder is not closed"};
    const auto added = append_placeholder(pattern, text.substr(1, close - 1));
    if (!added) return added.error();
    text.remove_prefix(close + 1);
  }
  const bool has_rest = std::ranges::any_of(
      pattern, [](const PatternPiece& p) { return p.kind == PatternPiece::Kind::rest; });
  if (has_rest && pattern.size() != 1) return Error{"{rest} stands alone"};
  if (!has_rest) append_literal(pattern, line_end);
  return pattern;
}

Result<std::string> parse_sent(std::string_view text, std::string_view line_end) {
  auto pattern = parse_pattern(text, line_end);
  if (!pattern) return pattern.error();
  if (pattern->empty()) return Error{"nothing to send"};
  if (pattern->size() != 1 || is_rest(*pattern)) return Error{"only {repeat} can be sent"};
  return pattern->front().text;
}

Result<Duration> parse_duration(std::string_view text) {
  const bool milliseconds = text.ends_with("ms");
  const bool seconds = !milliseconds && text.ends_with("s");
  if (!milliseconds && !seconds) return Error{"a time is written 5s or 500ms"};
  const auto count =
      parse_number<std::uint64_t>(text.substr(0, text.size() - (milliseconds ? 2 : 1)));
  if (!count || *count > 9'000'000'000) return Error{"a time is written 5s or 500ms"};
  const auto signed_count = static_cast<std::int64_t>(*count);
  if (milliseconds) return Duration(std::chrono::milliseconds(signed_count));
  return Duration(std::chrono::seconds(signed_count));
}

class Parser {
 public:
  explicit Parser(std::string_view file) { transcript_.file = file; }

  Result<Transcript> parse(std::string_view text) {
    while (!text.empty()) {
      ++line_;
      const std::size_t end = std::min(text.find('\n'), text.size());
      const auto done = parse_line(text.substr(0, end));
      if (!done) {
        return Error{transcript_.file + ':' + std::to_string(line_) + ": " + done.error().message};
      }
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    if (transcript_.steps.empty()) return Error{transcript_.file + ":1: no statement in it"};
    return std::move(transcript_);
  }

 private:
  Result<void> parse_line(std::string_view line) {
    if (line.empty() || line.starts_with('#')) return {};
    if (line.ends_with(' ')) return Error{"a space at the end of the text is written \\x20"};
    if (is_header(line)) {
      if (!transcript_.steps.empty()) return Error{"headers stand before the first statement"};
      return parse_header(line);
    }
    Step step;
    step.line = line_;
    const auto done = parse_statement(line, step);
    if (done) {
      transcript_.is_timed |= step.kind == StepKind::advance;
      transcript_.steps.push_back(std::move(step));
    }
    return done;
  }

  static bool is_header(std::string_view line) {
    return line == "timed" || line.starts_with("differs:") || line.starts_with("needs:") ||
           line.starts_with("option:");
  }

  Result<void> parse_header(std::string_view line) {
    if (line == "timed") {
      transcript_.is_timed = true;
    } else if (take(line, "differs: ")) {
      transcript_.differs = line;
    } else if (line == "needs: tubed") {
      transcript_.needs_tubed = true;
    } else if (take(line, "option: ")) {
      return parse_option(line);
    } else {
      return Error{"headers are: timed, differs: ROW, needs: tubed, option: NAME=NUMBER"};
    }
    return {};
  }

  Result<void> parse_option(std::string_view text) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const std::string_view name = text.substr(0, equals);
    const auto value = parse_number<std::uint64_t>(text.substr(std::min(equals + 1, text.size())));
    if (!value) return Error{"an option is written NAME=NUMBER"};
    Options& options = transcript_.options;
    if (name == "limits.job_bytes") {
      options.job_bytes = value;
    } else if (name == "limits.tubes") {
      options.tubes = value;
    } else if (name == "limits.job_memory") {
      options.job_memory = value;
    } else if (name == "limits.watches") {
      options.watches = value;
    } else if (name == "limits.policies") {
      options.policies = value;
    } else {
      return Error{"unknown option " + std::string(name)};
    }
    return {};
  }

  Result<void> parse_statement(std::string_view line, Step& step) {
    if (take(line, "advance ")) {
      step.kind = StepKind::advance;
      auto time = parse_duration(line);
      if (!time) return time.error();
      step.time = *time;
      return {};
    }
    if (line == "drain on" || line == "drain off") {
      step.kind = StepKind::drain;
      step.drain = line == "drain on";
      return {};
    }
    const std::size_t name_end = line.find_first_of("<> ");
    const std::string_view name = line.substr(0, name_end);
    if (name_end == std::string_view::npos || name.front() < 'A' || name.front() > 'Z') {
      return Error{"no statement begins like this: " + std::string(line)};
    }
    step.client = client_named(name);
    return parse_client_statement(line.substr(name_end), step);
  }

  Client client_named(std::string_view name) {
    const auto found = std::ranges::find(transcript_.clients, name);
    if (found == transcript_.clients.end()) {
      transcript_.clients.emplace_back(name);
      return transcript_.clients.size() - 1;
    }
    return static_cast<Client>(found - transcript_.clients.begin());
  }

  static Result<void> parse_client_statement(std::string_view text, Step& step) {
    if (text.starts_with('>') || text.starts_with('<')) return parse_exchange(text, step);
    if (text == " silent") {
      step.kind = StepKind::silent;
    } else if (text == " closed") {
      step.kind = StepKind::closed;
    } else if (text == " closes") {
      step.kind = StepKind::closes;
    } else if (text == " half-closes") {
      step.kind = StepKind::half_closes;
    } else {
      return Error{"a client is followed by > >- < <| silent closed closes half-closes"};
    }
    return {};
  }

  // Parses `> text`, `>- text`, `< text` or `<| text`.
  static Result<void> parse_exchange(std::string_view text, Step& step) {
    const bool sends = take(text, ">");
    if (!sends) take(text, "<");
    const bool bare = take(text, sends ? "-" : "|");
    if (!text.empty() && !take(text, " ")) return Error{"a space belongs before the text"};
    if (sends) {
      step.kind = StepKind::send;
      auto sent = parse_sent(text, bare ? "" : "\r\n");
      if (!sent) return sent.error();
      step.sent = std::move(*sent);
      return {};
    }
    step.kind = StepKind::receive;
    auto expected = parse_pattern(text, bare ? "\n" : "\r\n");
    if (!expected) return expected.error();
    step.expected = std::move(*expected);
    return {};
  }

  Transcript transcript_;
  std::size_t line_ = 0;
};

}  // namespace

Result<Transcript> parse(std::string_view file, std::string_view text) {
  return Parser(file).parse(text);
}

Result<Transcript> load(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || !text) return Error{"cannot read " + path};
  return parse(path, text.view());
}

}  // namespace tubed::wire
