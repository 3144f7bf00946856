#include "node/log_writer.h"

#include <fmt/format.h>

#include "os/clock.h"

namespace tubed::node {

LogWriter::~LogWriter() {
  while (storage_ && storage_->busy()) loop_.run();
}

Result<void> LogWriter::open(cluster::Index first) {
  storage_ = TRY(disk::FileStorage::open(loop_, directory_, disk::FileStorage::Mode::create_part));
  log_ = TRY(cluster::RaftLog::open(*storage_, *this, options_));
  return log_->reset(first - 1);
}

Result<void> LogWriter::append(std::span<const cluster::Entry> entries) {
  cluster::Index index = next();
  for (const cluster::Entry& entry : entries) {
    if (!take_chain(index++, entry)) {
      return Error{fmt::format("entry {} does not follow the entries before it", index - 1),
                   Error::Kind::damaged};
    }
  }
  log_->append(next(), entries);
  return settle();
}

// Returns false if the entry was made after other entries.
bool LogWriter::take_chain(cluster::Index index, const cluster::Entry& entry) {
  if (entry.type == cluster::EntryType::facts) {
    const auto header = cluster::read_entry_header(entry.data.view());
    if (!header || (chain_ && header->chain != *chain_)) return false;
    chain_ = header->chain;
  }
  if (chain_) chain_ = cluster::chain_after(*chain_, index, entry);
  return true;
}

// Stores all appended entries.
Result<void> LogWriter::settle() {
  for (;;) {
    log_->flush();
    if (error_) return *error_;
    if (!storage_->busy()) break;
    loop_.run();
  }
  if (log_->stored() == log_->last()) return {};
  return Error{"the raft log cannot be stored"};
}

Result<void> LogWriter::finish(const Applied& position) {
  const cluster::Index last = log_->last();
  const bool differs = (last >= log_->first() && log_->term_of(last) != position.term) ||
                       (chain_ && *chain_ != position.chain);
  if (last != position.index || differs) {
    return Error{fmt::format("the raft log and the journal differ at entry {}", position.index),
                 Error::Kind::damaged};
  }
  bool closed = false;
  log_->close([&closed] { closed = true; });
  while (!closed && !error_) {
    log_->flush();
    if (storage_->busy()) loop_.run();
  }
  if (error_) return *error_;
  log_.reset();
  storage_.reset();
  return {};
}

void LogWriter::report_full(bool full, const std::string& reason) {
  if (full) error_ = Error{.message = reason, .kind = Error::Kind::no_space};
}

Time LogWriter::now() const {
  return os::monotonic_now();
}

}  // namespace tubed::node
