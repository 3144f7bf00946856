// The subset of YAML that stats and lists use. Many clients read it without a YAML parser, so the
// layout is beanstalkd's, byte for byte. Such clients also take quotes for a part of a name, so a
// text has quotes only where a YAML parser would not read it as that text without them.
// [notes: stats, in order]
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "protocol/block.h"

namespace tubed::protocol {

// True if a parser of YAML 1.1 or 1.2 reads `text` without quotes as that text. False if one reads
// a number, a truth value, null or a date, and for every text that is not the name of a tube: an
// empty text, or one with a blank or a colon. O(text).
bool is_plain_yaml(std::string_view text);

// The beginning of every block.
inline constexpr std::string_view kYamlBegin = "---\n";
// `- name`
void append_yaml_item(std::string_view name, std::string& yaml);

// Appends a block to a text:
//   key: value               a member; a Text that is not plain YAML is in quotes and contains no
//                            quote, backslash or line end; a List is [a, b]
//   - name                   an item
//   - next N, - columns, …   a table: a line for `next`, one for the columns, one for each row; of
//                            a filtered list the first line is `- next N looked N`
class YamlBlock final : public BlockSink {
 public:
  // `yaml` outlives the object. Only the object changes it until the block is complete.
  explicit YamlBlock(std::string& yaml) : yaml_(yaml), begin_(yaml.append(kYamlBegin).size()) {}

  void member(std::string_view key, const Value& value) override;
  void item(std::string_view name) override { append_yaml_item(name, yaml_); }
  void begin_table(const Columns& columns) override;
  void row(std::span<const Value> values) override;
  void looked_at(std::uint64_t items) override { looked_ = items; }
  // O(block): the first line is known last.
  void end_table(std::uint64_t next) override;

 private:
  std::string& yaml_;
  std::size_t begin_;  // after kYamlBegin
  std::optional<std::uint64_t> looked_;
};

std::string yaml_of(const Block& block);

}  // namespace tubed::protocol
