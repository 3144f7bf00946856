#include "cluster/raft_recovery.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/zeros.h"
#include "cluster/raft_file.h"

// RaftLogExaminer takes steps 1 to 5 of raft_recovery.h. It reads one file at a time.
namespace tubed::cluster {

namespace {

Error damage(std::string message) {
  return {.message = std::move(message), .kind = Error::Kind::damaged};
}

Error damaged(std::uint64_t file, std::uint64_t offset, std::string_view reason) {
  return damage(
      fmt::format("{} is damaged at offset {}: {}", raft_file_name(file), offset, reason));
}

class RaftLogExaminer {
 public:
  RaftLogExaminer(journal::FileReader& storage, std::uint64_t cluster)
      : storage_(storage), cluster_(cluster) {}

  Result<FoundRaftLog> run() {
    TRY(list());
    for (std::size_t i = 0; i < found_.files.size(); ++i) TRY(read_file(i));
    // A file is removed only after a later file has a batch.
    if (!begun_ && !found_.files.empty() && found_.files.front().number > 1) {
      return damaged(found_.files.front().number, kRaftFileHeaderBytes,
                     "older files are missing, and no batch is whole");
    }
    return std::move(found_);
  }

 private:
  Result<void> list() {
    auto listed = TRY(storage_.list());
    for (const journal::FileInfo& file : listed) {
      if (const auto number = raft_file_number(file.name)) {
        found_.files.push_back({.number = *number, .bytes = file.bytes, .used = 0});
      } else if (is_unfinished_raft_file(file.name)) {
        found_.leftovers.push_back(file.name);
      }
    }
    std::ranges::sort(found_.files, {}, &FoundRaftFile::number);
    std::ranges::sort(found_.leftovers);
    for (std::size_t i = 1; i < found_.files.size(); ++i) {
      const std::uint64_t expected = found_.files[i - 1].number + 1;
      if (found_.files[i].number != expected) {
        return damage(fmt::format("{} is missing", raft_file_name(expected)));
      }
    }
    return {};
  }

  Result<void> read_file(std::size_t index) {
    FoundRaftFile& file = found_.files[index];
    const std::string name = raft_file_name(file.number);
    auto id = TRY(storage_.open(name));
    auto read = storage_.read(id);
    storage_.close(id);
    const std::string image = TRY(std::move(read));
    auto header = decode_header(image, file.number);
    if (!header) {
      return Error{.message = fmt::format("{} {}", name, header.error().message),
                   .kind = header.error().kind};
    }
    if (header->cluster != cluster_) {
      return Error{fmt::format("{} belongs to another cluster", name)};
    }
    file.bytes = image.size();
    file.used = kRaftFileHeaderBytes;
    if (found_.cut) return check_unused(image);
    TRY(read_batches(index, image));
    if (image.size() != header->bytes && (image.size() != file.used || found_.cut)) {
      return damaged(
          file.number, file.used,
          fmt::format("the file has {} bytes and should have {}", image.size(), header->bytes));
    }
    return {};
  }

  // Step 3.
  Result<void> read_batches(std::size_t index, std::string_view image) {
    FoundRaftFile& file = found_.files[index];
    for (;;) {
      ParsedBatch batch = parse_batch(image, file.used, file.number, cluster_);
      switch (batch.kind) {
        case ParsedBatch::Kind::end:
          return {};
        case ParsedBatch::Kind::bad:
          return damaged(file.number, file.used, batch.reason);
        case ParsedBatch::Kind::torn:
          return end_log(file, image, batch);
        case ParsedBatch::Kind::whole:
          TRY(take(index, batch));
      }
    }
  }

  Result<void> take(std::size_t index, ParsedBatch& batch) {
    FoundRaftFile& file = found_.files[index];
    const RaftBatchHeader& header = batch.header;
    if (!may_follow(header.number)) {
      return damaged(file.number, file.used,
                     fmt::format("batch {} should follow, and batch {} does", found_.next_batch,
                                 header.number));
    }
    const Index next = found_.last() + 1;
    if (begun_ && !header.reset && header.first > next) {
      return damaged(file.number, file.used,
                     fmt::format("entry {} should follow, and entry {} does", next, header.first));
    }
    // Entries before `first` may have been in files that were removed after the entries were
    // replaced.
    if (!begun_ || header.reset || header.first < found_.first) {
      found_.entries.clear();
      found_.places.clear();
      found_.first = header.first;
    }
    found_.entries.resize(header.first - found_.first);
    for (Entry& entry : batch.entries) found_.entries.push_back(std::move(entry));
    found_.places.replace(header.first, header.entries, file.number);
    begun_ = true;
    found_.head = index;
    found_.next_batch = header.number + 1;
    found_.sealed = header.entries == 0;
    file.used = batch.end_offset();
    return {};
  }

  // The very first batch has number 1; if older files were removed, any batch may be the first.
  bool may_follow(std::uint64_t number) const {
    const bool any = !begun_ && found_.files.front().number > 1;
    return any || number == found_.next_batch;
  }

  // Step 4. `batch` does not continue the log. If its header is valid, it is the torn batch.
  Result<void> end_log(const FoundRaftFile& file, std::string_view image,
                       const ParsedBatch& batch) {
    std::uint64_t search = file.used;
    if (batch.header_whole) {
      if (!may_follow(batch.header.number)) return damaged(file.number, file.used, batch.reason);
      search += kRaftBatchHeaderBytes;
    }
    if (const auto later = find_batch(image, search, file.number, cluster_)) {
      return damaged(file.number, file.used,
                     fmt::format("{}; batch {} at {} was written later", batch.reason,
                                 later->number, later->offset));
    }
    found_.cut = RaftLogCut{.file = file.number, .offset = file.used, .reason = batch.reason};
    return {};
  }

  // Step 4 for a file after the end of the log.
  Result<void> check_unused(std::string_view image) const {
    if (all_zeros(image.substr(kRaftFileHeaderBytes))) return {};
    return damaged(found_.cut->file, found_.cut->offset,
                   fmt::format("{}; a later file has batches", found_.cut->reason));
  }

  journal::FileReader& storage_;
  std::uint64_t cluster_;
  FoundRaftLog found_;
  bool begun_ = false;  // a whole batch was read
};

}  // namespace

Result<FoundRaftLog> examine_raft_log(journal::FileReader& storage, std::uint64_t cluster) {
  return RaftLogExaminer(storage, cluster).run();
}

Result<void> repair_raft_log(journal::Storage& storage, FoundRaftLog& found) {
  for (const std::string& name : found.leftovers) {
    const auto removed = storage.remove_now(name);
    // The file may remain until the next start.
    if (!removed && removed.error().kind != Error::Kind::no_space) return removed;
  }
  // Older files were synced before a batch was written to a later file.
  for (std::size_t i = found.head; i < found.files.size(); ++i) {
    FoundRaftFile& file = found.files[i];
    auto id = TRY(storage.open(raft_file_name(file.number)));
    Result<void> result;
    if (found.cut && found.cut->file == file.number) {
      result = storage.truncate(id, found.cut->offset);
      if (result) file.bytes = found.cut->offset;
    }
    if (result) result = storage.sync_now(id);
    storage.close(id);
    if (!result) return result;
  }
  return {};
}

}  // namespace tubed::cluster
