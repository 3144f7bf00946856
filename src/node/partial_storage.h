// PartialStorage: the base of a journal::Storage that has some of the operations only. To call
// another operation is a bug.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "journal/storage.h"

namespace tubed::node {

class PartialStorage : public journal::Storage {
 public:
  Result<std::vector<journal::FileInfo>> list() override { return missing(); }
  Result<journal::FileId> open(const std::string& /*name*/) override { return missing(); }
  void close(journal::FileId /*file*/) override { missing(); }
  Result<std::string> read(journal::FileId /*file*/) override { return missing(); }
  Result<void> truncate(journal::FileId /*file*/, std::uint64_t /*bytes*/) override {
    return missing();
  }
  Result<void> sync_now(journal::FileId /*file*/) override { return missing(); }
  Result<void> store(const std::string& /*name*/, std::string_view /*contents*/) override {
    return missing();
  }
  Result<void> remove_now(const std::string& /*name*/) override { return missing(); }
  Result<void> move(const std::string& /*from*/, const std::string& /*to*/) override {
    return missing();
  }
  void create(const std::string& /*name*/, std::string /*head*/, std::uint64_t /*bytes*/,
              journal::Created /*done*/) override {
    missing();
  }
  void allocate(journal::FileId /*file*/, std::uint64_t /*from*/, std::uint64_t /*to*/,
                journal::Done /*done*/) override {
    missing();
  }
  void write(journal::FileId /*file*/, std::uint64_t /*offset*/,
             std::vector<std::string_view> /*pieces*/, journal::Sync /*sync*/,
             journal::Done /*done*/) override {
    missing();
  }
  void sync(journal::FileId /*file*/, journal::Done /*done*/) override { missing(); }
  void trim(journal::FileId /*file*/, std::uint64_t /*bytes*/, journal::Done /*done*/) override {
    missing();
  }
  void remove(const std::string& /*name*/, journal::Done /*done*/) override { missing(); }
  void reuse(const std::string& /*from*/, const std::string& /*to*/, std::string /*head*/,
             std::uint64_t /*bytes*/, journal::Created /*done*/) override {
    missing();
  }

 private:
  static Error missing() {
    TUBED_ASSERT(false);
    return {};
  }
};

}  // namespace tubed::node
