// Block: an answer of many values, as a view. A command passes its values with their types to a
// sink; the renderers of YAML (protocol/yaml.h) and of JSON (api/block_json.h) are sinks, and so is
// a part of the server that needs some of the values.
//
// A block has one of three forms: members, each with a key; items, which are names; or a table.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/time.h"

namespace tubed::protocol {

// A number that is not whole, as text.
struct Decimal {
  std::string_view digits;
};
// A text that never has quotes in YAML. In a table it has no space.
struct Plain {
  std::string_view text;
};
// A text that has quotes in YAML where a parser would not read it as that text.
struct Text {
  std::string_view text;
};

// A list of texts that never have quotes in YAML, and no comma. Not in a table.
struct List {
  std::span<const std::string> texts;
};

// A time is shown in seconds.
using Value = std::variant<std::uint64_t, bool, Duration, Decimal, Plain, Text, List>;

// `seconds.microseconds`, in YAML and in JSON.
std::string seconds_text(Duration value);

struct Columns {
  std::span<const std::string_view> names;
  std::string_view rest = {};  // the name of a last value that a row may have, with spaces
};

// Takes the values of one block, in order. Texts are valid during the call. Each function does
// nothing unless the sink overrides it.
class BlockSink {
 public:
  virtual void member([[maybe_unused]] std::string_view key, [[maybe_unused]] const Value& value) {}
  virtual void item([[maybe_unused]] std::string_view name) {}

  // A table: begin_table(), then its rows, then end_table(), which ends the block. `next`: where
  // the next page of the list begins; 0: this page is the last.
  virtual void begin_table([[maybe_unused]] const Columns& columns) {}
  virtual void row([[maybe_unused]] std::span<const Value> values) {}
  // Of a filtered list, before end_table(): how many items it has looked at for this page.
  virtual void looked_at([[maybe_unused]] std::uint64_t items) {}
  virtual void end_table([[maybe_unused]] std::uint64_t next) {}

 protected:
  ~BlockSink() = default;
};

// OK 100, and the values as YAML. The view refers to what the engine, the service and the command's
// line own.
struct Block {
  std::function<void(BlockSink&)> write;

  // True if the blocks are the same YAML. O(blocks).
  friend bool operator==(const Block& a, const Block& b);
};

}  // namespace tubed::protocol
