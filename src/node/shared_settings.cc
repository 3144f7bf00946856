#include "node/shared_settings.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/assert.h"
#include "config/same_settings.h"
#include "journal/little_endian.h"

namespace tubed::node {

namespace {

constexpr std::string_view kValueOfSetting = "tubed 1: value of a setting\n";

// The name is in the text: equal values of two settings have different digests.
std::uint64_t digest_of(const config::SameSetting& setting, std::uint64_t cluster) {
  std::array<char, sizeof cluster> key{};
  journal::store_little(key.data(), cluster);
  const std::string text = fmt::format("{}{}\n{}", kValueOfSetting, setting.name, setting.value);
  std::array<unsigned char, 32> hash{};
  unsigned size = 0;
  TUBED_ASSERT(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                    reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data(),
                    &size) != nullptr);
  return journal::load_little<std::uint64_t>(reinterpret_cast<const char*>(hash.data()));
}

// "limits.job_bytes (a, c / b)": the nodes between two slashes have the same value.
std::string text_of(const std::vector<stats::DifferingSetting>& differing) {
  std::string text;
  for (const auto& setting : differing) {
    std::vector<std::string> groups;
    for (const auto& nodes : setting.nodes)
      groups.push_back(fmt::format("{}", fmt::join(nodes, ", ")));
    text +=
        fmt::format("{}{} ({})", text.empty() ? "" : ", ", setting.name, fmt::join(groups, " / "));
  }
  return text;
}

}  // namespace

SettingDigests digests_of(const Settings& settings, std::uint64_t cluster) {
  SettingDigests digests;
  for (const auto& setting : config::same_settings(settings))
    digests.push_back({std::string(setting.name), digest_of(setting, cluster)});
  TUBED_ASSERT(digests.size() <= cluster::kMostSettingDigests);
  return digests;
}

void SharedSettings::set_own(cluster::NodeId node, const SettingDigests& digests) {
  if (std::exchange(own_, node) != node) digests_.clear();
  digests_[node] = digests;
  compare();
}

void SharedSettings::set_members(const std::vector<cluster::Member>& members) {
  members_ = members;
  std::ranges::sort(members_, {}, &cluster::Member::address);
  std::erase_if(digests_, [&](const auto& known) {
    return known.first != own_ &&
           std::ranges::find(members_, known.first, &cluster::Member::id) == members_.end();
  });
  compare();
}

void SharedSettings::set_of_member(cluster::NodeId node, const SettingDigests& digests) {
  const auto member = std::ranges::find(members_, node, &cluster::Member::id);
  if (member == members_.end() || node == own_ || digests.empty()) return;
  digests_[node] = digests;
  compare();
}

void SharedSettings::compare() {
  std::vector<stats::DifferingSetting> differing;
  for (const auto& [name, own] : digests_[own_]) {
    std::vector<std::pair<std::uint64_t, std::vector<std::string>>> groups;
    for (const cluster::Member& member : members_) {
      const SettingDigests& of_member = digests_[member.id];
      const auto found = std::ranges::find(of_member, name, &cluster::SettingDigest::name);
      if (found == of_member.end()) continue;
      auto group =
          std::ranges::find(groups, found->digest, [](const auto& one) { return one.first; });
      if (group == groups.end()) group = groups.insert(group, {found->digest, {}});
      group->second.emplace_back(cluster::name_in(member.address));
    }
    if (groups.size() < 2) continue;
    differing.push_back({.name = name, .nodes = {}});
    for (auto& group : groups) differing.back().nodes.push_back(std::move(group.second));
  }
  if (differing == differing_) return;
  differing_ = std::move(differing);
  log_change();
}

void SharedSettings::log_change() {
  if (differing_.empty()) return log_.info("the nodes have the same settings again");
  log_.warning("settings differ between nodes", {{"settings", text_of(differing_)}});
}

}  // namespace tubed::node
