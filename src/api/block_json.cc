#include "api/block_json.h"

#include <fmt/format.h>

#include "base/assert.h"
#include "base/overloaded.h"
#include "json/json.h"

namespace tubed::api {

using namespace protocol;

namespace {

void append_name(std::string_view name, std::string& json) {
  json::append_text(name, json);
  json += ':';
}

void append_list(List list, std::string& json) {
  json += '[';
  for (std::size_t i = 0; i < list.texts.size(); ++i) {
    if (i > 0) json += ',';
    json::append_text(list.texts[i], json);
  }
  json += ']';
}

void append_value(const Value& value, std::string& json) {
  std::visit(Overloaded{[&](std::uint64_t number) { json += fmt::to_string(number); },
                        [&](bool truth) { json += truth ? "true" : "false"; },
                        [&](Duration seconds) { json += seconds_text(seconds); },
                        [&](Decimal decimal) { json += decimal.digits; },
                        [&](Plain plain) { json::append_text(plain.text, json); },
                        [&](Text text) { json::append_text(text.text, json); },
                        [&](List list) { append_list(list, json); }},
             value);
}

}  // namespace

void JsonBlock::append_separator(char begin, std::size_t from) {
  json_ += json_.size() == from ? begin : ',';
}

void JsonBlock::member(std::string_view key, const Value& value) {
  append_separator('{', begin_);
  append_name(key, json_);
  append_value(value, json_);
}

void JsonBlock::item(std::string_view name) {
  append_separator('[', begin_);
  end_ = ']';
  json::append_text(name, json_);
}

void JsonBlock::begin_table(const Columns& columns) {
  columns_ = columns;
  table_ = json_.size();
}

void JsonBlock::row(std::span<const Value> values) {
  TUBED_ASSERT(values.size() <= columns_.names.size() + (columns_.rest.empty() ? 0 : 1));
  append_separator('[', table_);
  for (std::size_t i = 0; i < values.size(); ++i) {
    json_ += i == 0 ? '{' : ',';
    append_name(i < columns_.names.size() ? columns_.names[i] : columns_.rest, json_);
    append_value(values[i], json_);
  }
  json_ += '}';
}

void JsonBlock::end_table(std::uint64_t next) {
  if (json_.size() == table_) json_ += '[';
  json_ += ']';
  const std::string looked = looked_ ? fmt::format("\"looked\":{},", *looked_) : "";
  json_.insert(table_, fmt::format("{}\"next\":{},{}\"{}\":", table_ == begin_ ? '{' : ',', next,
                                   looked, rows_));
}

void JsonBlock::finish() {
  if (json_.size() == begin_) json_ += '{';
  json_ += end_;
}

std::string json_of(const Block& block, std::string_view rows) {
  std::string json;
  JsonBlock sink(json, rows);
  block.write(sink);
  sink.finish();
  return json;
}

}  // namespace tubed::api
