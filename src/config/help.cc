// Lists the flags that are not settings, then beanstalkd's flags, then the settings by section. A
// setting shows its bounds, its default and the first sentence of its documentation; the pages show
// the whole text.
#include "config/help.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/table.h"

namespace tubed::config {
namespace {

constexpr std::size_t kWidth = 100;
constexpr std::size_t kDocColumn = 22;  // of the flags that are not settings

// `text` broken at spaces, each line indented by `indent` spaces.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string result;
  const std::size_t room = kWidth - indent;
  while (!text.empty()) {
    auto end = text.size();
    if (end > room) {
      const auto space = text.rfind(' ', room);
      end = space == std::string_view::npos ? room : space;
    }
    result += fmt::format("{:{}}{}\n", "", indent, text.substr(0, end));
    text.remove_prefix(end);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  }
  return result;
}

std::string setting_help(const Setting& row) {
  const auto names =
      row.short_flag ? fmt::format("-{}, {}", row.short_flag, row.flag()) : row.flag();
  const auto default_text = to_text(row.type, row.default_value());
  const auto limits = bounds(row.type);
  std::string facts = limits;
  if (!default_text.empty())
    facts += fmt::format("{}(default {})", limits.empty() ? "" : " ", default_text);
  auto head = fmt::format("  {:<32}{}", fmt::format("{} {}", names, placeholder(row.type)), facts);
  head.erase(head.find_last_not_of(' ') + 1);
  return fmt::format("{}\n{}", head, wrapped(row.first_sentence(), 6));
}

std::string options_help(bool of_beanstalkd) {
  std::string result;
  for (const auto& row : options_table()) {
    if (row.of_beanstalkd != of_beanstalkd) continue;
    const auto doc = wrapped(row.doc, kDocColumn).substr(kDocColumn);
    result += fmt::format("  {:<{}}{}", row.names(), kDocColumn - 2, doc);
  }
  return result;
}

}  // namespace

std::string help_text() {
  std::string result = "Usage: tubed [FLAGS]\n\nA work-queue daemon that speaks beanstalk.\n\n";
  result += options_help(false);
  result += fmt::format("\nFlags of beanstalkd:\n{}", options_help(true));
  std::string_view section = "-";
  for (const auto& row : settings_table()) {
    if (row.section() != section) {
      section = row.section();
      result += fmt::format("\n{}:\n", section.empty() ? "settings" : section);
    }
    result += setting_help(row);
  }
  return result +
         "\nA SIZE is in bytes or like 64KiB, 1MiB, 2GiB; a TIME in seconds or like 50ms, 30s, "
         "5m, 2h, 1d.\n";
}

}  // namespace tubed::config
