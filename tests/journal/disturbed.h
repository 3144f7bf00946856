// A disk that changes while a tool reads it.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "tests/journal/test_disk.h"

namespace tubed::journal {

// Calls a function while a journal is read: before each read, and after each listing of names.
class Disturbed final : public Storage {
 public:
  Disturbed(TestDisk& disk, std::function<void()> disturb)
      : disk_(disk), disturb_(std::move(disturb)) {}

  Result<std::vector<FileInfo>> list() override {
    auto files = disk_.list();
    disturb_();
    return files;
  }
  Result<FileId> open(const std::string& name) override { return disk_.open(name); }
  // The file stays open, because the disk closes no files while the server writes.
  void close(FileId) override {}
  Result<std::string> read(FileId file) override {
    disturb_();
    return disk_.read(file);
  }
  Result<void> truncate(FileId, std::uint64_t) override { return refuse(); }
  Result<void> sync_now(FileId) override { return refuse(); }
  Result<void> store(const std::string&, std::string_view) override { return refuse(); }
  Result<void> remove_now(const std::string&) override { return refuse(); }
  Result<void> move(const std::string&, const std::string&) override { return refuse(); }
  void create(const std::string&, std::string, std::uint64_t, Created) override { refuse_change(); }
  void allocate(FileId, std::uint64_t, std::uint64_t, Done) override { refuse_change(); }
  void write(FileId, std::uint64_t, std::vector<std::string_view>, Sync, Done) override {
    refuse_change();
  }
  void sync(FileId, Done) override { refuse_change(); }
  void trim(FileId, std::uint64_t, Done) override { refuse_change(); }
  void remove(const std::string&, Done) override { refuse_change(); }
  void reuse(const std::string&, const std::string&, std::string, std::uint64_t, Created) override {
    refuse_change();
  }

 private:
  static Error refuse() { return Error{"it is only read"}; }
  static void refuse_change() { TUBED_ASSERT(false); }

  TestDisk& disk_;
  std::function<void()> disturb_;
};

}  // namespace tubed::journal
