// The file is text. Its first line has the version and the cluster, each further line a node and
// its address, and the last line the CRC-32C of all before:
//
//   tubed 1 0123456789abcdef
//   00000000000000a1 b@10.0.0.9:11302
//   crc 89abcdef
#include "node/learned_addresses.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "disk/directory_tree.h"
#include "node/state_directory.h"
#include "os/clock.h"
#include "text/numbers.h"

namespace tubed::node {

using cluster::MemberAddress;
using disk::DirectoryTree;

namespace {

constexpr std::size_t kMostAddressesBytes = 64 << 10;
constexpr std::size_t kIdDigits = 16;
constexpr std::string_view kFirstWords = "tubed 1 ";
constexpr std::string_view kLastWord = "crc ";
constexpr Duration kStoreInterval = std::chrono::seconds(1);

const Error kDamagedAddresses{"it is damaged", Error::Kind::damaged};

// Takes a line off the text; no value: the rest has no end of a line.
std::optional<std::string_view> next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == text.npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

std::optional<std::uint64_t> hexadecimal(std::string_view text, std::size_t digits) {
  return text.size() == digits ? parse_number<std::uint64_t>(text, 16) : std::nullopt;
}

// "ID ADDRESS"
std::optional<LearnedAddresses::All::value_type> read_line(std::string_view line) {
  if (line.size() <= kIdDigits || line[kIdDigits] != ' ') return std::nullopt;
  const auto node = hexadecimal(line.substr(0, kIdDigits), kIdDigits);
  auto address = cluster::parse_member_address(line.substr(kIdDigits + 1));
  if (!node || !address) return std::nullopt;
  return LearnedAddresses::All::value_type{*node, std::move(*address)};
}

}  // namespace

std::string encode(std::uint64_t cluster, const LearnedAddresses::All& addresses) {
  std::string text = fmt::format("{}{:016x}\n", kFirstWords, cluster);
  for (const auto& [node, address] : addresses)
    text += fmt::format("{:016x} {}\n", node, to_string(address));
  return text + fmt::format("{}{:08x}\n", kLastWord, crc32c(0, text));
}

Result<LearnedAddresses::All> decode_addresses(std::uint64_t cluster, std::string_view file) {
  const std::size_t last = file.rfind(kLastWord);
  if (last == file.npos) return kDamagedAddresses;
  std::string_view end = file.substr(last + kLastWord.size());
  const auto crc = next_line(end);
  if (!crc || !end.empty() || hexadecimal(*crc, 8) != crc32c(0, file.substr(0, last)))
    return kDamagedAddresses;
  std::string_view rest = file.substr(0, last);
  const auto first = next_line(rest);
  if (!first || !first->starts_with(kFirstWords)) return kDamagedAddresses;
  const auto of = hexadecimal(first->substr(kFirstWords.size()), kIdDigits);
  if (!of) return kDamagedAddresses;
  LearnedAddresses::All addresses;
  if (*of != cluster) return addresses;
  while (!rest.empty()) {
    const auto line = next_line(rest);
    auto one = line ? read_line(*line) : std::nullopt;
    if (!one) return kDamagedAddresses;
    addresses.insert(std::move(*one));
  }
  return addresses;
}

Result<void> forget_learned_addresses(const std::string& directory) {
  return DirectoryTree(directory).remove(kAddressesFile);
}

void LearnedAddresses::open(const std::string& directory, std::uint64_t cluster) {
  if (cluster == cluster_) return;
  directory_ = directory;
  cluster_ = cluster;
  all_.clear();
  const auto read = [&]() -> Result<All> {
    const auto text = TRY(DirectoryTree(directory).read(kAddressesFile, kMostAddressesBytes));
    return text ? decode_addresses(cluster, *text) : Result<All>(All());
  }();
  if (read) {
    all_ = *read;
  } else {
    log_.warning("learned addresses of other nodes are lost, and will be learned again",
                 {{"file", fmt::format("{}/{}", directory, kAddressesFile)},
                  {"reason", read.error().message}});
  }
}

bool LearnedAddresses::learn(const cluster::Member& member, std::string_view stated) {
  const auto known = cluster::parse_member_address(member.address);
  const auto address = cluster::parse_member_address(stated);
  if (!address || address->name != cluster::name_in(member.address)) return false;
  const auto learned = all_.find(member.id);
  if (known == address) {
    if (learned == all_.end()) return false;
    all_.erase(learned);
    return changed_ = true;
  }
  if (learned != all_.end() && learned->second == *address) return false;
  all_[member.id] = *address;
  log_.warning("a member listens at another address than the cluster has",
               {{"member", address->name},
                {"address", known ? known->endpoint() : member.address},
                {"learned", address->endpoint()},
                {"to_keep_it", fmt::format("tubectl cluster set-address {} {}", address->name,
                                           address->endpoint())}});
  return changed_ = true;
}

void LearnedAddresses::follow(const std::vector<cluster::Member>& members) {
  const auto is_needed = [&](const All::value_type& learned) {
    const auto member = std::ranges::find(members, learned.first, &cluster::Member::id);
    return member != members.end() && member->address != to_string(learned.second) &&
           cluster::name_in(member->address) == learned.second.name;
  };
  const std::size_t forgotten =
      std::erase_if(all_, [&](const All::value_type& learned) { return !is_needed(learned); });
  changed_ = changed_ || forgotten > 0;
}

void LearnedAddresses::store_when_due(Time now) {
  if (!changed_ || now < next_store_) return;
  next_store_ = now + kStoreInterval;
  const auto stored = all_.empty()
                          ? forget_learned_addresses(directory_)
                          : DirectoryTree(directory_).store(kAddressesFile, encode(cluster_, all_));
  changed_ = !stored;
  if (!stored) {
    log_.limited(os::Log::Level::warning, os::monotonic_now(),
                 "learned addresses of other nodes are not stored",
                 {{"reason", stored.error().message}});
  }
}

}  // namespace tubed::node
