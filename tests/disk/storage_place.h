// Helpers for the tests of FileStorage: a directory with its storage, and access to its files that
// does not use the storage.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "disk/file_storage.h"
#include "tests/loop/loopback.h"

namespace tubed::disk_test {

using loop_test::Directory;
using loop_test::run_until;

inline constexpr auto kOwner = disk::FileStorage::Mode::owner;
inline constexpr auto kCreate = disk::FileStorage::Mode::create;
inline constexpr auto kReadOnly = disk::FileStorage::Mode::read_only;

inline std::string contents_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.good());
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void put_file(const std::string& path, std::string_view contents) {
  std::ofstream(path, std::ios::binary) << contents;
}

inline struct stat status_of(const std::string& path) {
  struct stat status {};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status;
}

inline unsigned mode_of(const std::string& path) {
  return status_of(path).st_mode & 07777U;
}

// Returns the bytes allocated on disk.
inline std::uint64_t allocated_bytes_of(const std::string& path) {
  return static_cast<std::uint64_t>(status_of(path).st_blocks) * 512;
}

template <class T>
std::string failure_of(const Result<T>& result) {
  REQUIRE_FALSE(result.ok());
  return result.error().message;
}

// A directory, its storage and a loop, and operations that wait for their completion.
struct Place {
  explicit Place(disk::FileStorage::Mode mode = kOwner) { open(mode); }

  void open(disk::FileStorage::Mode mode = kOwner) {
    auto opened = disk::FileStorage::open(loop, path, mode);
    REQUIRE_MESSAGE(opened.ok(), failure_text(opened));
    storage = std::move(*opened);
  }
  static std::string failure_text(const Result<std::unique_ptr<disk::FileStorage>>& result) {
    return result.ok() ? std::string() : result.error().message;
  }

  std::string file(std::string_view name) const { return fmt::format("{}/{}", path, name); }
  std::vector<std::string> names() {
    auto files = storage->list();
    REQUIRE(files.ok());
    std::vector<std::string> names;
    for (const auto& info : *files) names.push_back(info.name);
    std::sort(names.begin(), names.end());
    return names;
  }
  journal::FileId opened(const std::string& name) {
    const auto id = storage->open(name);
    REQUIRE(id.ok());
    return id.value();
  }

  // Starts an operation and runs the loop until it is complete.
  journal::Outcome wait(const std::function<void(journal::Done)>& start) {
    std::optional<journal::Outcome> outcome;
    start([&](const journal::Outcome& result) { outcome = result; });
    CHECK_FALSE(outcome.has_value());  // never completes within the call
    CHECK(storage->busy());
    REQUIRE(run_until(loop, [&] { return outcome.has_value(); }));
    return *outcome;
  }
  journal::Outcome write(journal::FileId id, std::uint64_t offset,
                         std::vector<std::string_view> pieces,
                         journal::Sync sync = journal::Sync::yes) {
    return wait([&](journal::Done done) {
      storage->write(id, offset, std::move(pieces), sync, std::move(done));
    });
  }
  journal::Outcome create(const std::string& name, const std::string& head, std::uint64_t bytes,
                          journal::FileId* id = nullptr) {
    return wait([&](const journal::Done& done) {
      storage->create(name, head, bytes,
                      [done, id](const journal::Outcome& outcome, journal::FileId file) {
                        if (id != nullptr) *id = file;
                        done(outcome);
                      });
    });
  }
  journal::Outcome allocate(journal::FileId id, std::uint64_t from, std::uint64_t to) {
    return wait([&](const journal::Done& done) { storage->allocate(id, from, to, done); });
  }

  Directory directory;
  std::string path = directory.file("journal");
  const bool made = std::filesystem::create_directory(path);
  loop::Loop loop;
  std::unique_ptr<disk::FileStorage> storage;
};

// While it exists, the files of this process cannot grow beyond `bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace tubed::disk_test
