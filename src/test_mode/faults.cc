#include "test_mode/faults.h"

#include <algorithm>
#include <array>

#include "protocol/reply.h"

namespace tubed::test_mode {

namespace {

namespace word = protocol::word;

constexpr std::array kErrorWords = {word::kOutOfMemory,    word::kInternalError, word::kBadFormat,
                                    word::kUnknownCommand, word::kDraining,      word::kJobTooBig,
                                    word::kExpectedCrlf,   word::kNotFound,      word::kNotIgnored,
                                    word::kTimedOut,       word::kDeadlineSoon};

template <class Rules>
auto find_rule(Rules& rules, std::string_view verb) {
  return std::ranges::find_if(
      rules, [&](const auto& rule) { return rule.verb == verb || rule.verb == Faults::kAny; });
}

}  // namespace

std::optional<Faults::Fault> Faults::named(std::string_view reply) {
  if (reply == "CLOSE") return Fault{Kind::close, {}};
  if (reply == "HANG") return Fault{Kind::hang, {}};
  const auto found = std::ranges::find(kErrorWords, reply);
  if (found == kErrorWords.end()) return std::nullopt;
  return Fault{Kind::reply, *found};
}

bool Faults::add(std::string_view verb, std::uint64_t count, Fault fault) {
  if (rules_.size() >= kMost) return false;
  if (count > 0) rules_.push_back({std::string(verb), count, fault});
  return true;
}

std::optional<Faults::Fault> Faults::take(std::string_view verb) {
  const auto rule = find_rule(rules_, verb);
  if (rule == rules_.end()) return std::nullopt;
  const Fault fault = rule->fault;
  if (--rule->left == 0) rules_.erase(rule);
  return fault;
}

std::optional<Faults::Fault> Faults::peek(std::string_view verb) const {
  const auto rule = find_rule(rules_, verb);
  if (rule == rules_.end()) return std::nullopt;
  return rule->fault;
}

}  // namespace tubed::test_mode
