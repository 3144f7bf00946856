#include "commands/tube_list_cache.h"

#include <cstring>

#include "protocol/yaml.h"

namespace tubed::commands {

TubeListCache::Part::Part(Bytes text, std::shared_ptr<std::uint64_t> existing_bytes)
    : text_(std::move(text)), existing_bytes_(std::move(existing_bytes)) {
  *existing_bytes_ += text_.size();
}

std::shared_ptr<const TubeListCache::Part> TubeListCache::make(const engine::Engine& engine,
                                                               std::size_t part) const {
  std::string yaml(part == 0 ? protocol::kYamlBegin : std::string_view());
  engine.tube_list().for_each(
      part, [&](std::string_view name) { protocol::append_yaml_item(name, yaml); });
  return std::make_shared<const Part>(Bytes::copy_of(yaml), existing_bytes_);
}

void TubeListCache::resize(std::size_t parts) {
  while (current_.size() > parts) {
    if (current_.back().part != nullptr) current_bytes_ -= current_.back().part->text().size();
    current_.pop_back();
  }
  current_.resize(parts);
}

bool TubeListCache::refresh(const engine::Engine& engine) {
  resize(engine.tube_list().parts());
  std::size_t made = 0;
  for (std::size_t i = 0; i < current_.size(); ++i) {
    Current& current = current_[i];
    const std::uint64_t change = engine.tube_list().change(i);
    if (current.change == change) continue;
    if (made++ == kPartsPerSlice) return false;
    if (current.part != nullptr) current_bytes_ -= current.part->text().size();
    current = {change, make(engine, i)};
    current_bytes_ += current.part->text().size();
  }
  return true;
}

std::shared_ptr<const TubeListCache::Snapshot> TubeListCache::snapshot(
    const engine::Engine& engine) {
  if (newest_change_ == engine.tube_list().change()) {
    if (auto newest = newest_.lock()) return newest;
  }
  while (!refresh(engine)) {
  }
  auto made = std::make_shared<Snapshot>();
  made->parts.reserve(current_.size());
  for (const Current& current : current_) {
    made->parts.push_back(current.part);
    made->bytes += current.part->text().size();
  }
  newest_ = made;
  newest_change_ = engine.tube_list().change();
  return made;
}

}  // namespace tubed::commands
