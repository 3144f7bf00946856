// Implements disk/file_storage.h and disk/directory_tree.h on the disk of the current machine: one
// directory, whatever its name.
#include <utility>

#include "base/assert.h"
#include "disk/directory_tree.h"
#include "disk/file_storage.h"
#include "tests/simulation/machine.h"

namespace tubed::disk {

using namespace journal;
using simulation::DiskEvent;
using simulation::Machine;

namespace {

Machine& machine() {
  return Machine::current();
}

TestDisk& disk() {
  return machine().disk();
}

}  // namespace

// --- FileStorage

Result<std::unique_ptr<FileStorage>> FileStorage::open(loop::Loop& loop,
                                                       const std::string& directory, Mode mode) {
  return std::unique_ptr<FileStorage>(
      new FileStorage(loop, directory, os::Descriptor(), os::Descriptor(), mode));
}

FileStorage::FileStorage(loop::Loop& loop, std::string path, os::Descriptor directory,
                         os::Descriptor lock, Mode mode)
    : loop_(loop),
      path_(std::move(path)),
      directory_(std::move(directory)),
      lock_(std::move(lock)),
      mode_(mode) {}

FileStorage::~FileStorage() = default;

bool FileStorage::is_copy() const {
  return false;
}

bool FileStorage::first_of_boot() const {
  return machine().first_of_boot();
}

void FileStorage::record_boot() {
  machine().record_boot();
}

Result<std::vector<FileInfo>> FileStorage::list() {
  return disk().list();
}

Result<FileId> FileStorage::open(const std::string& name) {
  return disk().open(name);
}

void FileStorage::close(FileId file) {
  disk().close(file);
}

Result<std::string> FileStorage::read(FileId file) {
  return disk().read(file);
}

Result<void> FileStorage::truncate(FileId file, std::uint64_t bytes) {
  return disk().truncate(file, bytes);
}

Result<void> FileStorage::sync_now(FileId file) {
  return disk().sync_now(file);
}

Result<void> FileStorage::store(const std::string& name, std::string_view contents) {
  return disk().store(name, contents);
}

Result<void> FileStorage::remove_now(const std::string& name) {
  return disk().remove_now(name);
}

Result<void> FileStorage::move(const std::string& from, const std::string& to) {
  return disk().move(from, to);
}

void FileStorage::create(const std::string& name, std::string head, std::uint64_t bytes,
                         Created done) {
  ++operations_;
  disk().create(name, std::move(head), bytes,
                [this, done = std::move(done)](const Outcome& outcome, FileId file) {
                  --operations_;
                  done(outcome, file);
                });
  machine().schedule();
  machine().report(DiskEvent::change_name);
}

void FileStorage::reuse(const std::string& from, const std::string& to, std::string head,
                        std::uint64_t bytes, Created done) {
  ++operations_;
  disk().reuse(from, to, std::move(head), bytes,
               [this, done = std::move(done)](const Outcome& outcome, FileId file) {
                 --operations_;
                 done(outcome, file);
               });
  machine().schedule();
  machine().report(DiskEvent::change_name);
}

template <class Work, class Finish>
void FileStorage::run_in_pool(Work work, Finish finish) {
  ++operations_;
  work([this, finish = std::move(finish)](const Outcome& outcome) {
    --operations_;
    finish(outcome);
  });
  machine().schedule();
}

void FileStorage::allocate(FileId file, std::uint64_t from, std::uint64_t to, Done done) {
  run_in_pool([&](Done counted) { disk().allocate(file, from, to, std::move(counted)); },
              std::move(done));
}

void FileStorage::write(FileId file, std::uint64_t offset, std::vector<std::string_view> pieces,
                        Sync sync, Done done) {
  run_in_pool(
      [&](Done counted) {
        disk().write(file, offset, std::move(pieces), sync, std::move(counted));
      },
      std::move(done));
  machine().report_write(file);
}

void FileStorage::sync(FileId file, Done done) {
  run_in_pool([&](Done counted) { disk().sync(file, std::move(counted)); }, std::move(done));
  machine().report(DiskEvent::sync);
}

void FileStorage::trim(FileId file, std::uint64_t bytes, Done done) {
  run_in_pool([&](Done counted) { disk().trim(file, bytes, std::move(counted)); }, std::move(done));
}

void FileStorage::remove(const std::string& name, Done done) {
  run_in_pool([&](Done counted) { disk().remove(name, std::move(counted)); }, std::move(done));
  machine().report(DiskEvent::change_name);
}

// --- DirectoryTree

Result<bool> DirectoryTree::exists(const std::string& name) const {
  return disk().has(name);
}

Result<std::optional<std::string>> DirectoryTree::read(const std::string& name,
                                                       std::size_t /*most*/) const {
  if (!disk().has(name)) return std::optional<std::string>();
  return std::optional(disk().contents(name));
}

Result<void> DirectoryTree::store(const std::string& name, std::string_view contents) {
  if (disk().has(name)) TRY(disk().remove_now(name));
  return disk().store(name, contents);
}

Result<void> DirectoryTree::move(const std::string& from, const std::string& to) {
  return disk().move(from, to);
}

Result<void> DirectoryTree::remove(const std::string& name) {
  return disk().remove_now(name);
}

Result<std::vector<std::string>> DirectoryTree::names(const std::string& folder) const {
  if (!folder.empty()) return std::vector<std::string>();
  return disk().names();
}

}  // namespace tubed::disk
