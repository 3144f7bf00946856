// Cut files: bytes that recovery has cut from a journal, kept in its directory.
//
// Bytes left by a crash look the same as damaged bytes that no later batch calls durable. A start
// must not lose anything that salvage could read, so the cut bytes are kept:
//
//   cut.NUMBER.SEGMENT.OFFSET   the bytes of that segment from that offset to the zeros at its end
//
// The files of one cut have the same number; numbers increase. The files of the newest kKeptCuts
// cuts are kept, older files are removed. A server never reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "journal/recovery.h"
#include "journal/storage.h"

namespace tubed::journal {

inline constexpr std::uint64_t kKeptCuts = 4;

struct CutFile {
  std::uint64_t number = 0;
  std::uint64_t segment = 0;
  std::uint64_t offset = 0;

  std::string name() const;
};

// Returns nothing if it is not the name of a cut file.
std::optional<CutFile> cut_file_of(std::string_view name);

// Lists the files in the order in which they were cut.
Result<std::vector<CutFile>> list_cut_files(FileReader& storage);

// Returns the image of the segment, with zeros in place of the bytes before the offset. Zeros
// follow, because the last record may end with zeros that were not kept.
Result<std::string> read_cut_file(FileReader& storage, const CutFile& file);

// Bytes for which the disk has no room until the journal is cut.
struct UnkeptBytes {
  CutFile file;
  std::string bytes;
};

// Keeps the records after the end of the log, and sets `cut->kept`. Leftover segments with records
// are kept too; the others are removed, newest first, so a crash leaves no gap and the call can be
// repeated. Precondition: the journal has a cut.
Result<std::optional<UnkeptBytes>> keep_cut(Storage& storage, Examined& examined);

// Keeps the bytes after the cut, which has freed their space. The disk may still have no room.
Result<void> keep_after_cut(Storage& storage, const UnkeptBytes& unkept, Cut& cut);

}  // namespace tubed::journal
