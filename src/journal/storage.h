// Storage: the files of one directory, as the journal needs them.
//
// Two kinds of operations. Those of the first kind block: they serve start-up and tools. Those of
// the second kind run in the background, beside each other, and call `done` later on the caller's
// thread, never from within the call. loop/file_storage implements it; tests have an
// implementation that tears, loses and refuses.
//
// Durability: an effect that is described as durable survives a power loss once the operation has
// succeeded. Everything else may be lost, whole or in part and in any order, until a sync of its
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

// A file that is open. Never reused by one storage.
using FileId = std::uint32_t;

struct FileInfo {
  std::string name;
  std::uint64_t bytes = 0;
};

// How a background operation ended.
struct Outcome {
  enum class Kind : std::uint8_t {
    done,
    // The disk, a quota or a limit of the process. A write may have written a part and can be
    // repeated as it was. For other operations the effects are described below; by default nothing
    // has changed.
    no_space,
    failed,
  };
  Kind kind = Kind::done;
  std::string reason;  // the operation, the file, and why it failed

  bool ok() const { return kind == Kind::done; }
};

// The same, as the result of a blocking operation.
inline Result<void> as_result(Outcome outcome) {
  if (outcome.ok()) return {};
  const bool no_space = outcome.kind == Outcome::Kind::no_space;
  return Error{.message = std::move(outcome.reason),
               .kind = no_space ? Error::Kind::no_space : Error::Kind::other};
}

using Done = std::function<void(const Outcome&)>;
using Created = std::function<void(const Outcome&, FileId)>;

enum class Sync : std::uint8_t { no, yes };

// Reading the files of a directory. Blocks.
class FileReader {
 public:
  // The directory's regular files, in no order.
  virtual Result<std::vector<FileInfo>> list() = 0;
  // For reading and writing; for reading only where the storage itself is.
  virtual Result<FileId> open(const std::string& name) = 0;
  // Precondition: no operation on it is under way.
  virtual void close(FileId file) = 0;
  // All bytes of it.
  virtual Result<std::string> read(FileId file) = 0;

 protected:
  ~FileReader() = default;
};

// Writing whole files of a directory. Blocks.
class FileWriter {
 public:
  // A new file with these contents, durable; after a crash it is there whole or not at all.
  virtual Result<void> store(const std::string& name, std::string_view contents) = 0;
  // Durable. no_space: it may be gone, though not durably.
  virtual Result<void> remove_now(const std::string& name) = 0;

 protected:
  ~FileWriter() = default;
};

class Storage : public FileReader, public FileWriter {
 public:
  virtual ~Storage() = default;

  // --- Blocking, besides reading and writing whole files

  // Makes it that long, and durable with all that was written to it. no_space: it has kept its
  // length.
  virtual Result<void> truncate(FileId file, std::uint64_t bytes) = 0;
  // Makes the contents and the name of the file durable. A process that was killed may have left a
  // file whose name was not.
  virtual Result<void> sync_now(FileId file) = 0;
  // Durable. `to` may begin with one folder, which is made if need be: "imported/binlog.1". It
  // refuses to replace a file.
  virtual Result<void> move(const std::string& from, const std::string& to) = 0;

  // --- In the background

  // A new file of `bytes` bytes that begins with `head`; the rest reads as zeros and has its place
  // on the disk. Durable, whole or not at all.
  virtual void create(const std::string& name, std::string head, std::uint64_t bytes,
                      Created done) = 0;
  // Makes the file longer: from `from`, its end, to `to`. The new part reads as zeros and has its
  // place on the disk: writes to it do not run out of space.
  virtual void allocate(FileId file, std::uint64_t from, std::uint64_t to, Done done) = 0;
  // Writes all pieces, one after the other, from `offset` on. The pieces stay where they are until
  // `done`. Sync::yes: with what was written before, it is then durable.
  virtual void write(FileId file, std::uint64_t offset, std::vector<std::string_view> pieces,
                     Sync sync, Done done) = 0;
  // Makes durable what was written by writes that ended before the call.
  virtual void sync(FileId file, Done done) = 0;
  // Cuts the file to `bytes` and makes it durable with all that was written to it. no_space: it has
  // kept its length, and is durable all the same.
  virtual void trim(FileId file, std::uint64_t bytes, Done done) = 0;
  // Durable. Precondition: it is closed. no_space: it may be gone, though not durably, and can be
  // removed again.
  virtual void remove(const std::string& name, Done done) = 0;
  // The file `from`, which is closed and has at least `bytes` bytes, becomes the file `to` with
  // exactly `bytes` bytes: it begins with `head`, and the rest reads as zeros. It takes no space
  // but its own. Durable, `to` whole or not at all; `from` is removed, durably, before a byte of it
  // changes. no_space: `from` is as after a remove() without space, or nothing has changed, and
  // `to` is not there.
  virtual void reuse(const std::string& from, const std::string& to, std::string head,
                     std::uint64_t bytes, Created done) = 0;
};

}  // namespace tubed::journal
