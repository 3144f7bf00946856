#include "journal/cut_files.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/zeros.h"
#include "journal/segment.h"
#include "text/numbered_name.h"
#include "text/numbers.h"

namespace tubed::journal {

namespace {

constexpr std::string_view kCutPrefix = "cut.";
// Zeros added after the bytes of a file.
constexpr std::size_t kZerosAfterCut = 1U << 20;

std::string prefix_of(std::uint64_t number) {
  return numbered_name(kCutPrefix, number) + ".";
}

std::string without_zeros_at_end(std::string bytes) {
  const std::size_t last = bytes.find_last_not_of('\0');
  bytes.resize(last == std::string::npos ? 0 : last + 1);
  return bytes;
}

Result<std::string> contents_of(FileReader& storage, const std::string& name) {
  const FileId file = TRY(storage.open(name));
  auto bytes = storage.read(file);
  storage.close(file);
  return bytes;
}

// True if anything is written after the header.
Result<bool> holds_records(FileReader& storage, const std::string& segment) {
  const std::string image = TRY(contents_of(storage, segment));
  return image.size() > kSegmentHeaderBytes &&
         !all_zeros(std::string_view(image).substr(kSegmentHeaderBytes));
}

// Returns the number of the cut to which these bytes belong: the newest cut, if it was interrupted
// by a crash.
Result<std::uint64_t> number_for(FileReader& storage, const std::vector<CutFile>& files,
                                 const CutFile& wanted, std::string_view bytes) {
  if (files.empty()) return std::uint64_t{1};
  const std::uint64_t newest = files.back().number;
  const CutFile same{.number = newest, .segment = wanted.segment, .offset = wanted.offset};
  const bool is_there =
      std::ranges::any_of(files, [&](const CutFile& file) { return file.name() == same.name(); });
  if (is_there && TRY(contents_of(storage, same.name())) == bytes) return newest;
  return newest + 1;
}

}  // namespace

std::string CutFile::name() const {
  return fmt::format("{}.{}", numbered_name(prefix_of(number), segment), offset);
}

std::optional<CutFile> cut_file_of(std::string_view name) {
  if (!name.starts_with(kCutPrefix)) return {};
  std::array<std::uint64_t, 3> numbers{};
  std::string_view rest = name.substr(kCutPrefix.size());
  for (std::uint64_t& number : numbers) {
    const auto read = take_number<std::uint64_t>(rest);
    if (!read) return {};
    number = *read;
    rest.remove_prefix(rest.starts_with('.') ? 1 : 0);
  }
  const CutFile file{.number = numbers[0], .segment = numbers[1], .offset = numbers[2]};
  // Rejects other spellings: each file has exactly one name.
  if (file.name() != name) return {};
  return file;
}

Result<std::vector<CutFile>> list_cut_files(FileReader& storage) {
  auto files = TRY(storage.list());
  std::vector<CutFile> cuts;
  for (const FileInfo& file : files) {
    if (const auto cut = cut_file_of(file.name)) cuts.push_back(*cut);
  }
  std::ranges::sort(cuts, {},
                    [](const CutFile& cut) { return std::pair(cut.number, cut.segment); });
  return cuts;
}

Result<std::string> read_cut_file(FileReader& storage, const CutFile& file) {
  const std::string bytes = TRY(contents_of(storage, file.name()));
  std::string image(file.offset, '\0');
  image.reserve(file.offset + bytes.size() + kZerosAfterCut);
  image += bytes;
  image.append(kZerosAfterCut, '\0');
  return image;
}

Result<std::optional<UnkeptBytes>> keep_cut(Storage& storage, Examined& examined) {
  const auto files = TRY(list_cut_files(storage));
  const FoundSegment& current = examined.segments[examined.current];
  std::string image = TRY(contents_of(storage, segment_name(current.sequence)));
  std::string bytes =
      without_zeros_at_end(image.substr(std::min<std::size_t>(current.used_bytes, image.size())));
  CutFile file{.segment = current.sequence, .offset = current.used_bytes};
  file.number = TRY(number_for(storage, files, file, bytes));
  const bool is_there = !files.empty() && files.back().number == file.number;
  bool keeps = is_there;
  std::optional<UnkeptBytes> unkept;
  if (!bytes.empty() && !is_there) {
    const auto stored = storage.store(file.name(), bytes);
    keeps = stored.ok();
    if (!stored && stored.error().kind != Error::Kind::no_space) return stored.error();
    if (!stored) unkept = UnkeptBytes{file, std::move(bytes)};
  }
  std::vector<std::string> others;
  for (std::string& name : examined.leftovers) {
    const auto segment = sequence_of(name);
    if (!segment) {
      others.push_back(std::move(name));
    } else if (TRY(holds_records(storage, name))) {
      const CutFile kept{.number = file.number, .segment = *segment, .offset = 0};
      TRY(storage.move(name, kept.name()));
      keeps = true;
    } else {
      TRY(storage.remove_now(name));
    }
  }
  examined.leftovers = std::move(others);
  if (keeps) examined.cut->kept = prefix_of(file.number) + "*";
  for (const CutFile& old : files) {
    if (old.number + kKeptCuts <= file.number) TRY(storage.remove_now(old.name()));
  }
  return unkept;
}

Result<void> keep_after_cut(Storage& storage, const UnkeptBytes& unkept, Cut& cut) {
  const auto stored = storage.store(unkept.file.name(), unkept.bytes);
  if (stored) cut.kept = prefix_of(unkept.file.number) + "*";
  if (!stored && stored.error().kind != Error::Kind::no_space) return stored;
  return {};
}

}  // namespace tubed::journal
