// The members and columns of blocks whose values are texts, whatever they look like: a tube may
// have the name 5. A client that reads the text of a block needs them, because a list has no
// quotes, and not every server quotes the texts of its statistics.
//
// Words that never look like a number, such as states, are not listed.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace tubed::protocol {

// `id` is the id of the server; the id of a job is a number.
inline constexpr auto kTextMembers = std::to_array<std::string_view>(
    {"id", "name", "version", "hostname", "os", "platform", "tube", "cluster-name",
     "cluster-leader", "cluster-nodes", "idempotency-key", "concurrency-key", "group",
     "after-group", "dead", "dead-from", "expired"});

inline constexpr auto kTextColumns = std::to_array<std::string_view>(
    {"name", "address", "role", "used", "watched", "dead-from", "tls-name"});

constexpr bool is_text_member(std::string_view key) {
  return std::ranges::find(kTextMembers, key) != kTextMembers.end();
}

constexpr bool is_text_column(std::string_view name) {
  return std::ranges::find(kTextColumns, name) != kTextColumns.end();
}

}  // namespace tubed::protocol
