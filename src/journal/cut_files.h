// Cut files: what recovery has cut from a journal, kept in its directory.
//
// Bytes that a crash has left look like damaged bytes that no later batch names as durable. So that
// a start loses nothing that salvage could read, the cut is kept:
//
//   cut.NUMBER.SEGMENT.OFFSET   the bytes of that segment from that offset to the zeros at its end
//
// The files of one cut have the same number. The number of the next cut is greater; the files of
// the newest kKeptCuts cuts stay, and older files are removed. A server never reads them.
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

// Nothing: not the name of such a file.
std::optional<CutFile> cut_file_of(std::string_view name);

// In the order in which they were cut.
Result<std::vector<CutFile>> list_cut_files(FileReader& storage);

// The image of the segment, with zeros in place of what is before the offset. Zeros follow, because
// the last record may end with zeros that were not kept.
Result<std::string> read_cut_file(FileReader& storage, const CutFile& file);

// Bytes for which the disk has no room as long as the journal is not cut.
struct UnkeptBytes {
  CutFile file;
  std::string bytes;
};

// Keeps the records after the end of the log, and sets `cut->kept`. Of the segments among the
// leftovers, those with records are kept too, and the others removed, newest first, so that a crash
// leaves no gap; then it can be repeated. Precondition: there is a cut.
Result<std::optional<UnkeptBytes>> keep_cut(Storage& storage, Examined& examined);

// After the cut, which has given back their place. The disk may have no room for them all the same.
Result<void> keep_after_cut(Storage& storage, const UnkeptBytes& unkept, Cut& cut);

}  // namespace tubed::journal
