// Storage: the files of one directory, as the journal needs them.
//
// Blocking operations serve start-up and tools. Background operations run concurrently and call
// `done` later on the caller's thread, never within the call. disk/file_storage implements the
// interface; tests have an implementation that tears, loses and refuses.
//
// Durability: an effect described as durable survives a power loss once the operation has
// succeeded. Anything else may be lost, in whole or in part and in any order, until a sync of its
// file has succeeded.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tubed::journal {

// An open file. A storage never reuses an id.
using FileId = std::uint32_t;

struct FileInfo {
  std::string name;
  std::uint64_t bytes = 0;
};

// How a background operation ended.
struct Outcome {
  enum class Kind : std::uint8_t {
    done,
    // The disk, a quota or a limit of the process has no room. A write may have been partial and
    // can be repeated unchanged. For other operations the effects are described below; by default
    // nothing has changed.
    no_space,
    failed,
  };
  Kind kind = Kind::done;
  std::string reason;  // the operation, the file and the reason

  bool ok() const { return kind == Kind::done; }
};

// Converts an outcome to the result of a blocking operation.
inline Result<void> as_result(Outcome outcome) {
  if (outcome.ok()) return {};
  const bool no_space = outcome.kind == Outcome::Kind::no_space;
  return Error{.message = std::move(outcome.reason),
               .kind = no_space ? Error::Kind::no_space : Error::Kind::other};
}

using Done = std::function<void(const Outcome&)>;
using Created = std::function<void(const Outcome&, FileId)>;

enum class Sync : std::uint8_t { no, yes };

// Reads the files of a directory. Blocks.
class FileReader {
 public:
  // Lists the regular files of the directory, in no order.
  virtual Result<std::vector<FileInfo>> list() = 0;
  // Opens a file for reading and writing, or only for reading if the storage is read-only.
  virtual Result<FileId> open(const std::string& name) = 0;
  // Precondition: no operation on the file is pending.
  virtual void close(FileId file) = 0;
  // Returns the whole contents.
  virtual Result<std::string> read(FileId file) = 0;

 protected:
  ~FileReader() = default;
};

// Writes whole files of a directory. Blocks.
class FileWriter {
 public:
  // Creates a file with these contents, durably; after a crash it is complete or absent.
  virtual Result<void> store(const std::string& name, std::string_view contents) = 0;
  // Removes a file, durably. no_space: it may be removed, but not durably.
  virtual Result<void> remove_now(const std::string& name) = 0;

 protected:
  ~FileWriter() = default;
};

class Storage : public FileReader, public FileWriter {
 public:
  virtual ~Storage() = default;

  // --- Blocking, in addition to reading and writing whole files

  // Sets the length of the file, and makes it durable with everything written to it. no_space: the
  // length is unchanged.
  virtual Result<void> truncate(FileId file, std::uint64_t bytes) = 0;
  // Makes the contents and the name of the file durable. A killed process may have left a file
  // whose name was not durable.
  virtual Result<void> sync_now(FileId file) = 0;
  // Renames a file, durably. `to` may begin with one folder, which is created if necessary:
  // "imported/binlog.1". Fails if `to` exists.
  virtual Result<void> move(const std::string& from, const std::string& to) = 0;

  // --- In the background

  // Creates a file of `bytes` bytes that begins with `head`; the rest reads as zeros and is
  // allocated on disk. Durable; complete or absent.
  virtual void create(const std::string& name, std::string head, std::uint64_t bytes,
                      Created done) = 0;
  // Extends the file from `from`, its end, to `to`. The new part reads as zeros and is allocated on
  // disk: writes to it do not run out of space.
  virtual void allocate(FileId file, std::uint64_t from, std::uint64_t to, Done done) = 0;
  // Writes all pieces in order, starting at `offset`. The pieces must not change until `done`.
  // Sync::yes: the bytes, and everything written before, are then durable.
  virtual void write(FileId file, std::uint64_t offset, std::vector<std::string_view> pieces,
                     Sync sync, Done done) = 0;
  // Makes durable the bytes of all writes that ended before the call.
  virtual void sync(FileId file, Done done) = 0;
  // Cuts the file to `bytes` and makes it durable with everything written to it. no_space: the
  // length is unchanged, but the file is durable.
  virtual void trim(FileId file, std::uint64_t bytes, Done done) = 0;
  // Removes a file, durably. Precondition: it is closed. no_space: it may be removed, but not
  // durably, and the removal can be repeated.
  virtual void remove(const std::string& name, Done done) = 0;
  // Turns the closed file `from`, of at least `bytes` bytes, into the file `to` of exactly `bytes`
  // bytes: it begins with `head`, and the rest reads as zeros. Takes no further space. `to` is
  // durable and complete or absent; `from` is durably removed before any of its bytes change.
  // no_space: `from` is as after a remove() without space, or nothing has changed; `to` does not
  // exist.
  virtual void reuse(const std::string& from, const std::string& to, std::string head,
                     std::uint64_t bytes, Created done) = 0;
};

}  // namespace tubed::journal
