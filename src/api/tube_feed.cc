// A tube is known by its name: its place among all tubes changes when another tube is removed. For
// the same reason a walk may miss a tube, so a tube counts as removed only if the engine does not
// know its name.
#include "api/tube_feed.h"

#include <algorithm>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "json/json.h"

namespace tubed::api {

namespace {

bool may_show(const Role* role, std::string_view tube) {
  return role == nullptr || may_use(*role, tube);
}

void append_comma(std::string& text) {
  if (!text.empty() && text.back() != '[') text += ',';
}

}  // namespace

std::string TubeFeed::columns() {
  std::string text = "[";
  for (const stats::TubeColumn& column : stats::kTubeColumns) {
    append_comma(text);
    json::append_text(column.name, text);
  }
  return text + ']';
}

TubeFeed::Numbers TubeFeed::numbers_of(const engine::TubeInfo& tube) {
  Numbers numbers;
  std::ranges::transform(std::span(stats::kTubeColumns).subspan<1>(), numbers.begin(),
                         [&](const stats::TubeColumn& column) { return column.number(tube); });
  return numbers;
}

void TubeFeed::begin() {
  ++walk_;
  next_ = 0;
  visited_ = 0;
  oldest_ = {};
  gone_.clear();
}

void TubeFeed::clear() {
  samples_.clear();
  in_slice_.clear();
  gone_.clear();
  oldest_ = {};
}

bool TubeFeed::slice(engine::Engine& engine, Time now) {
  in_slice_.clear();
  next_ = engine.queries().visit_tubes(now, next_, kTubesPerSlice,
                                       [this](const engine::TubeInfo& tube) { visit(tube); });
  if (next_ != 0 && visited_ < kMostTubes) return false;
  if (visited_ != samples_.size()) find_gone(engine, now);
  return true;
}

void TubeFeed::visit(const engine::TubeInfo& tube) {
  const auto [place, is_new] = samples_.try_emplace(std::string(tube.name));
  Sample& sample = place->second;
  if (sample.walk == walk_) return;
  const Numbers numbers = numbers_of(tube);
  // A walk that has missed it may have been the first of a reader.
  const bool was_missed = sample.walk + 1 != walk_;
  sample.changed = is_new || was_missed || sample.numbers != numbers;
  sample.numbers = numbers;
  sample.walk = walk_;
  ++visited_;
  in_slice_.push_back(&*place);
  if (tube.jobs.ready > 0 && (oldest_.tube.empty() || tube.oldest_ready_age > oldest_.age))
    oldest_ = {.tube = std::string(tube.name), .age = tube.oldest_ready_age};
}

void TubeFeed::find_gone(engine::Engine& engine, Time now) {
  for (auto place = samples_.begin(); place != samples_.end();) {
    const bool is_missing = place->second.walk != walk_;
    if (is_missing &&
        (samples_.size() > kMostTubes || !engine.queries().tube_info(now, place->first))) {
      gone_.push_back(place->first);
      place = samples_.erase(place);
    } else {
      ++place;
    }
  }
}

void TubeFeed::append_rows(bool all, const Role* role, std::string& text) const {
  for (const auto* one : in_slice_) {
    const auto& [name, sample] = *one;
    if ((!all && !sample.changed) || !may_show(role, name)) continue;
    append_comma(text);
    fmt::format_to(std::back_inserter(text), "[\"{}\",{}]", name, fmt::join(sample.numbers, ","));
  }
}

void TubeFeed::append_gone(const Role* role, std::string& text) const {
  for (const std::string& name : gone_) {
    if (!may_show(role, name)) continue;
    append_comma(text);
    json::append_text(name, text);
  }
}

}  // namespace tubed::api
