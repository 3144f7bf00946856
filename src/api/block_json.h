// Blocks as JSON: members are an object, items an array of texts, and a table is an object with its
// members, `next` and the rows. Keys and columns have the names of the protocol.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "protocol/block.h"

namespace tubed::api {

// Appends a block to a text.
class JsonBlock final : public protocol::BlockSink {
 public:
  // `rows`: the name of the rows of a table. `json` outlives the object. Only the object changes it
  // until finish().
  explicit JsonBlock(std::string& json, std::string_view rows = {})
      : json_(json), begin_(json.size()), rows_(rows) {}

  void member(std::string_view key, const protocol::Value& value) override;
  void item(std::string_view name) override;
  void begin_table(const protocol::Columns& columns) override;
  void row(std::span<const protocol::Value> values) override;
  void looked_at(std::uint64_t items) override { looked_ = items; }
  // O(block): `next`, and `looked` of a filtered list, are inserted before the rows.
  void end_table(std::uint64_t next) override;
  // Completes the block, which is an empty object if it has no values.
  void finish();

 private:
  // `from`: where the object or the array begins.
  void append_separator(char begin, std::size_t from);

  std::string& json_;
  std::size_t begin_;
  std::size_t table_ = 0;  // where the rows begin
  char end_ = '}';
  std::string_view rows_;
  protocol::Columns columns_;
  std::optional<std::uint64_t> looked_;
};

// One value. O(block).
std::string json_of(const protocol::Block& block, std::string_view rows = {});

}  // namespace tubed::api
