// The filters of list-jobs: a word each, such as `body:error`, `age>3600` and `tag:grp:import`.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "protocol/arguments.h"
#include "text/numbers.h"
#include "text/percent.h"

namespace tubed::protocol {

namespace {

// False, and the word as it was: it does not begin with the prefix.
bool take_prefix(std::string_view& word, std::string_view prefix) {
  if (!word.starts_with(prefix)) return false;
  word.remove_prefix(prefix.size());
  return true;
}

bool is_control(char c) {
  constexpr unsigned char kDelete = 0x7f;
  const auto byte = static_cast<unsigned char>(c);
  return byte < ' ' || byte == kDelete;
}

bool parse_text(std::string_view encoded, JobFilter& filter) {
  if (filter.texts.size() == JobFilter::kMaxTexts) return false;
  auto text = percent_decoded(encoded);
  if (!text || text->empty() || text->size() > JobFilter::kMaxTextBytes) return false;
  filter.texts.push_back(*std::move(text));
  return std::ranges::none_of(encoded, is_control);
}

bool parse_tag(std::string_view tag, JobFilter& filter) {
  JobTags tags;
  if (!parse_tags(tag, tags)) return false;
  filter.tags.push_back(tag);
  return true;
}

// `age>5`, `pri<1024`. Of several filters with one bound the narrowest counts.
bool parse_bound(std::string_view word, JobFilter& filter) {
  struct Bound {
    std::string_view prefix;
    NumberRange JobFilter::*range;
    bool is_above;
  };
  static constexpr std::array<Bound, 5> kBounds = {{{"age>", &JobFilter::age, true},
                                                    {"age<", &JobFilter::age, false},
                                                    {"pri>", &JobFilter::priority, true},
                                                    {"pri<", &JobFilter::priority, false},
                                                    {"failures>", &JobFilter::failures, true}}};
  for (const auto& [prefix, member, is_above] : kBounds) {
    if (!take_prefix(word, prefix)) continue;
    const auto number = parse_number<std::uint32_t>(word);
    if (!number) return false;
    NumberRange& range = filter.*member;
    std::int64_t& bound = is_above ? range.above : range.below;
    bound =
        is_above ? std::max<std::int64_t>(bound, *number) : std::min<std::int64_t>(bound, *number);
    return true;
  }
  return false;
}

bool parse_filter(std::string_view word, JobFilter& filter) {
  if (take_prefix(word, "body:")) return parse_text(word, filter);
  if (take_prefix(word, "tag:")) return parse_tag(word, filter);
  return parse_bound(word, filter);
}

}  // namespace

bool parse_filters(std::string_view text, JobFilter& filter) {
  for (;;) {
    const std::size_t end = text.find(' ');
    if (!parse_filter(text.substr(0, end), filter)) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
}

JobFilter filter_of(const FilterText& filters) {
  JobFilter filter;
  parse_filters(filters.text, filter);
  return filter;
}

}  // namespace tubed::protocol
