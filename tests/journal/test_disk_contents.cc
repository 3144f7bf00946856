// The names and contents of the files of a TestDisk: the current files, the durable files, and the
// damage that tests cause.
#include <utility>

#include "base/assert.h"
#include "tests/journal/test_disk.h"

namespace tubed::journal {

// --- Names

TestDisk::FilePointer TestDisk::file_called(const std::string& name) const {
  const auto found = names_.find(name);
  TUBED_ASSERT(found != names_.end());
  return found->second;
}

void TestDisk::apply(const NameChange& change, Names& names) {
  const auto from = names.find(change.from);
  if (from != names.end() && from->second == change.file) names.erase(from);
  if (!change.to.empty()) names[change.to] = change.file;
}

void TestDisk::change_name(NameChange change) {
  apply(change, names_);
  name_changes_.push_back(std::move(change));
}

void TestDisk::sync_names() {
  durable_names_ = names_;
  name_changes_.clear();
}

// --- Contents

const std::string& TestDisk::contents(const std::string& name) const {
  return file_called(name)->contents();
}

TestDisk::Contents TestDisk::files() const {
  Contents all;
  for (const auto& [name, file] : names_) all[name] = file->contents();
  return all;
}

TestDisk::Contents TestDisk::durable_files() const {
  Contents all;
  for (const auto& [name, file] : durable_names_) all[name] = file->durable();
  return all;
}

std::vector<std::string> TestDisk::names() const {
  std::vector<std::string> all;
  for (const auto& [name, file] : names_) all.push_back(name);
  return all;
}

std::uint64_t TestDisk::total_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [name, file] : names_) bytes += file->contents().size();
  return bytes;
}

void TestDisk::flip(const std::string& name, std::uint64_t offset, std::uint8_t mask) {
  std::string image = contents(name);
  TUBED_ASSERT(offset < image.size());
  image[offset] = static_cast<char>(static_cast<std::uint8_t>(image[offset]) ^ mask);
  file_called(name)->settle(std::move(image));
}

void TestDisk::cut(const std::string& name, std::uint64_t bytes) {
  TUBED_ASSERT(bytes <= contents(name).size());
  file_called(name)->settle(contents(name).substr(0, bytes));
}

void TestDisk::lose(const std::string& name) {
  change_name({.from = name, .to = {}, .file = file_called(name)});
  sync_names();
}

void TestDisk::place(const std::string& name, std::string contents) {
  const auto file = std::make_shared<TestFile>();
  file->settle(std::move(contents));
  change_name({.from = {}, .to = name, .file = file});
  sync_names();
}

}  // namespace tubed::journal
