#include "cluster/node_state.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "journal/little_endian.h"
#include "text/numbered_name.h"

namespace tubed::cluster {

namespace {

using journal::load_little;
using journal::store_little;

constexpr std::string_view kStatePrefix = "state.";
constexpr const char* kSpareName = "state.spare";

// The layout of a file: the header, the configuration, and the checksum of both. Version 2 has the
// level at the end of the header. A node uses it only when its cluster has risen above the first
// level, so an earlier version reads the file until then.
namespace state_file {
constexpr std::string_view kMagic = "tubednod";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kVersionWithLevel = 2;
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kConfigurationBytesAt = 12;
constexpr std::size_t kNumberAt = 16;
constexpr std::size_t kClusterAt = 24;
constexpr std::size_t kNodeAt = 32;
constexpr std::size_t kTermAt = 40;
constexpr std::size_t kVotedForAt = 48;
constexpr std::size_t kConfigurationIndexAt = 56;
constexpr std::size_t kHeaderBytes = 64;
constexpr std::size_t kLevelAt = 64;
constexpr std::size_t kHeaderBytesWithLevel = 72;
constexpr std::size_t kChecksumBytes = 4;
}  // namespace state_file

// A spare file is as large on disk as a typical state.
constexpr std::size_t kSpareBytes = 4096;

std::string state_name(std::uint64_t number) {
  return numbered_name(kStatePrefix, number);
}

struct StateFiles {
  std::vector<std::uint64_t> numbers;  // oldest first
  bool spare = false;
};

Result<StateFiles> list_states(journal::FileReader& storage) {
  StateFiles files;
  auto listed = TRY(storage.list());
  for (const journal::FileInfo& file : listed) {
    if (const auto number = number_of_name(kStatePrefix, file.name))
      files.numbers.push_back(*number);
    if (file.name == kSpareName) files.spare = true;
  }
  std::ranges::sort(files.numbers);
  return files;
}

std::string encode_state(const NodeState& state, std::uint64_t number) {
  using namespace state_file;
  const bool has_level = state.level > kFirstLevel;
  std::string image(has_level ? kHeaderBytesWithLevel : kHeaderBytes, '\0');
  char* const at = image.data();
  std::ranges::copy(kMagic, at);
  store_little(at + kVersionAt, has_level ? kVersionWithLevel : kVersion);
  store_little(at + kConfigurationBytesAt, static_cast<std::uint32_t>(state.configuration.size()));
  store_little(at + kNumberAt, number);
  store_little(at + kClusterAt, state.cluster);
  store_little(at + kNodeAt, state.node);
  store_little(at + kTermAt, state.term);
  store_little(at + kVotedForAt, state.voted_for);
  store_little(at + kConfigurationIndexAt, state.configuration_index);
  if (has_level) store_little(at + kLevelAt, std::uint64_t{state.level});
  image += state.configuration;
  char checksum[kChecksumBytes];
  store_little(checksum, crc32c(0, image));
  image.append(checksum, sizeof checksum);
  return image;
}

Result<NodeState> decode_state(std::string_view image, std::uint64_t number) {
  using namespace state_file;
  const auto damaged = [](std::string message) {
    return Error{.message = std::move(message), .kind = Error::Kind::damaged};
  };
  if (!image.starts_with(kMagic)) return damaged("is not the state of a node");
  if (image.size() < kHeaderBytes + kChecksumBytes) return damaged("is damaged: it is too short");
  const std::size_t checked = image.size() - kChecksumBytes;
  const char* const at = image.data();
  if (crc32c(0, image.substr(0, checked)) != load_little<std::uint32_t>(at + checked)) {
    return damaged("is damaged: its checksum is wrong");
  }
  const auto version = load_little<std::uint32_t>(at + kVersionAt);
  if (version != kVersion && version != kVersionWithLevel) {
    return Error{fmt::format("has format version {}; this tubed reads versions up to {}", version,
                             kVersionWithLevel)};
  }
  const bool has_level = version == kVersionWithLevel;
  const std::size_t header = has_level ? kHeaderBytesWithLevel : kHeaderBytes;
  if (checked < header) return damaged("is damaged: it is too short");
  if (load_little<std::uint64_t>(at + kNumberAt) != number) {
    return damaged("is damaged: it has the number of another file");
  }
  if (load_little<std::uint32_t>(at + kConfigurationBytesAt) != checked - header) {
    return damaged("is damaged: its length is wrong");
  }
  return NodeState{.cluster = load_little<std::uint64_t>(at + kClusterAt),
                   .node = load_little<std::uint64_t>(at + kNodeAt),
                   .term = load_little<std::uint64_t>(at + kTermAt),
                   .voted_for = load_little<std::uint64_t>(at + kVotedForAt),
                   .configuration = std::string(image.substr(header, checked - header)),
                   .configuration_index = load_little<std::uint64_t>(at + kConfigurationIndexAt),
                   .level = has_level ? load_little<Level>(at + kLevelAt) : kFirstLevel};
}

// Reads the whole file. If `syncing`, the same storage, is not null, also makes the file durable.
Result<std::string> read_file(journal::FileReader& storage, const std::string& name,
                              journal::Storage* syncing) {
  auto file = TRY(storage.open(name));
  auto image = storage.read(file);
  const auto synced = image && syncing != nullptr ? syncing->sync_now(file) : Result<void>();
  storage.close(file);
  if (!synced) return synced.error();
  return image;
}

Result<std::optional<NodeState>> load(journal::FileReader& storage, journal::Storage* syncing) {
  auto files = TRY(list_states(storage));
  if (files.numbers.empty()) return std::optional<NodeState>();
  const std::uint64_t number = files.numbers.back();
  const std::string name = state_name(number);
  const auto image = read_file(storage, name, syncing);
  if (!image) return image.error();
  auto state = decode_state(image.value(), number);
  if (!state) {
    return Error{.message = fmt::format("{} {}", name, state.error().message),
                 .kind = state.error().kind};
  }
  return std::optional(std::move(*state));
}

bool lacks_space(const Result<void>& result) {
  return !result && result.error().kind == Error::Kind::no_space;
}

}  // namespace

Result<std::optional<NodeState>> load_node_state(journal::Storage& storage) {
  return load(storage, &storage);
}

Result<std::optional<NodeState>> read_node_state(journal::FileReader& storage) {
  return load(storage, nullptr);
}

Result<void> store_node_state(journal::Storage& storage, const NodeState& state) {
  auto files = TRY(list_states(storage));
  const std::uint64_t number = files.numbers.empty() ? 1 : files.numbers.back() + 1;
  const std::string image = encode_state(state, number);
  auto stored = storage.store(state_name(number), image);
  if (lacks_space(stored) && files.spare) {
    TRY(storage.remove_now(kSpareName));
    files.spare = false;
    stored = storage.store(state_name(number), image);
  }
  if (!stored) return stored;
  // The state is stored. The following steps may fail; the next call repeats them.
  for (const std::uint64_t older : files.numbers) {
    static_cast<void>(storage.remove_now(state_name(older)).ok());
  }
  if (!files.spare) {
    static_cast<void>(storage.store(kSpareName, std::string(kSpareBytes, '\0')).ok());
  }
  return {};
}

}  // namespace tubed::cluster
