#include "cluster/raft_files.h"

#include <algorithm>

#include "base/assert.h"
#include "cluster/raft_file.h"

// The steps are numbered in raft_files.h.
namespace tubed::cluster {

namespace {

using journal::FileId;
using journal::Outcome;

constexpr std::size_t kSpareFiles = 2;

}  // namespace

Result<void> RaftFiles::adopt(const FoundRaftLog& found) {
  for (const FoundRaftFile& file : found.files) {
    add({.number = file.number, .bytes = file.bytes, .used = file.used, .id = {}});
  }
  head_ = found.head;
  places_ = found.places;
  for (std::size_t i = head_; i < files_.size(); ++i) {
    files_[i].id = TRY(context_.storage.open(raft_file_name(files_[i].number)));
  }
  return {};
}

// --- Step 1

std::optional<RaftFiles::Place> RaftFiles::place_for(std::uint64_t bytes) const {
  for (std::size_t i = head_; i < files_.size(); ++i) {
    const File& file = files_[i];
    const std::uint64_t room = file.bytes - file.used;
    if (file.id && room >= bytes) return Place{*file.id, file.number, file.used, room};
  }
  return {};
}

void RaftFiles::written(std::uint64_t number, std::uint64_t end, Index first,
                        std::uint64_t entries) {
  while (files_[head_].number != number) ++head_;
  files_[head_].used = end;
  places_.replace(first, entries, number);
  close_before_head();
}

void RaftFiles::close_before_head() {
  for (std::size_t i = head_; i-- > 0 && files_[i].id;) {
    context_.storage.close(*files_[i].id);
    files_[i].id.reset();
  }
}

Result<void> RaftFiles::reset(RaftBatchHeader batch) {
  TUBED_ASSERT(!busy_);
  const std::uint64_t number = next_number();
  const std::uint64_t bytes = kRaftFileHeaderBytes + kRaftBatchHeaderBytes;
  batch.offset = kRaftFileHeaderBytes;
  batch.reset = true;
  RaftBatch empty;
  empty.finish(batch, number);
  std::string image =
      encode_header({.cluster = context_.options.cluster, .number = number, .bytes = bytes});
  for (const std::string_view piece : empty.pieces()) image += piece;
  TRY(context_.storage.store(raft_file_name(number), image));
  add({.number = number, .bytes = bytes, .used = bytes, .id = {}});
  head_ = files_.size() - 1;
  places_.clear();
  close_before_head();
  return {};
}

// --- Files

void RaftFiles::add(const File& file) {
  files_.push_back(file);
  file_bytes_ += file.bytes;
}

void RaftFiles::drop_oldest() {
  file_bytes_ -= files_.front().bytes;
  files_.pop_front();
  --head_;
  half_removed_ = false;
}

std::uint64_t RaftFiles::next_number() const {
  return files_.empty() ? 1 : files_.back().number + 1;
}

std::size_t RaftFiles::spares() const {
  std::size_t count = 0;
  for (std::size_t i = head_ + 1; i < files_.size(); ++i) {
    if (files_[i].bytes >= context_.options.file_bytes) ++count;
  }
  return count;
}

std::uint64_t RaftFiles::free_bytes() const {
  std::uint64_t free = 0;
  for (std::size_t i = head_; i < files_.size(); ++i) free += files_[i].bytes - files_[i].used;
  return free;
}

bool RaftFiles::has_room(std::uint64_t bytes) const {
  if (!full_) return true;
  if (write_refused_) return false;
  return free_bytes() >= bytes + kSpareFiles * context_.options.file_bytes;
}

bool RaftFiles::oldest_is_dead() const {
  return head_ > 0 && !places_.any_up_to(files_.front().number);
}

// --- Steps 2 to 4

void RaftFiles::go_on(Time now, std::uint64_t wanted) {
  if (busy_ || context_.failed) return;
  const bool starved = wanted > 0 && !place_for(wanted);
  const std::uint64_t bytes =
      std::max(context_.options.file_bytes, starved ? kRaftFileHeaderBytes + wanted : 0);
  if (context_.closing) {
    if (starved && !refused_) make_spare(bytes);
    return;
  }
  const bool waits = refused_ && now < retry_at_;
  if (oldest_is_dead() && !(waits && half_removed_)) return drop_dead();
  if (waits) return;
  if (starved || spares() < kSpareFiles) return make_spare(bytes);
  refused_ = false;
  note_room();
}

void RaftFiles::make_spare(std::uint64_t bytes) {
  busy_ = true;
  const std::uint64_t number = next_number();
  context_.storage.create(
      raft_file_name(number),
      encode_header({.cluster = context_.options.cluster, .number = number, .bytes = bytes}), bytes,
      [this, number, bytes](const Outcome& outcome, FileId id) {
        if (!ended(outcome)) return;
        if (!outcome.ok()) return refuse(outcome.reason);
        refused_ = false;
        add({.number = number, .bytes = bytes, .used = kRaftFileHeaderBytes, .id = id});
      });
}

// Step 3.
void RaftFiles::drop_dead() {
  const File oldest = files_.front();
  const std::uint64_t bytes = context_.options.file_bytes;
  if (half_removed_ || oldest.bytes < bytes || spares() >= kSpareFiles) return remove_dead();
  busy_ = true;
  const std::uint64_t number = next_number();
  context_.storage.reuse(
      raft_file_name(oldest.number), raft_file_name(number),
      encode_header({.cluster = context_.options.cluster, .number = number, .bytes = bytes}), bytes,
      [this, number, bytes](const Outcome& outcome, FileId id) {
        if (!ended(outcome)) return;
        if (!outcome.ok()) return remove_dead();
        drop_oldest();
        add({.number = number, .bytes = bytes, .used = kRaftFileHeaderBytes, .id = id});
      });
}

void RaftFiles::remove_dead() {
  busy_ = true;
  context_.storage.remove(raft_file_name(files_.front().number), [this](const Outcome& outcome) {
    if (!ended(outcome)) return;
    if (!outcome.ok()) {
      half_removed_ = true;
      return refuse(outcome.reason);
    }
    drop_oldest();
    refused_ = false;
  });
}

// An operation has ended. Returns false if the log has failed.
bool RaftFiles::ended(const Outcome& outcome) {
  busy_ = false;
  context_.host.request_flush();
  return context_.continues_after(outcome);
}

// --- The full disk

void RaftFiles::refuse(const std::string& reason) {
  refused_ = true;
  retry_at_ = context_.host.now() + kRaftLogRetry;
  note_full(reason);
}

void RaftFiles::refuse_write(const std::string& reason) {
  write_refused_ = true;
  note_full(reason);
}

void RaftFiles::accept_write() {
  write_refused_ = false;
}

void RaftFiles::note_full(const std::string& reason) {
  if (!full_) context_.host.report_full(full_ = true, reason);
}

void RaftFiles::note_room() {
  if (full_ && !write_refused_) context_.host.report_full(full_ = false, {});
}

}  // namespace tubed::cluster
