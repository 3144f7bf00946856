#include "tests/cluster/raft_log_life.h"

#include <algorithm>

#include <fmt/format.h>

#include "text/numbers.h"

namespace tubed::cluster {

namespace {

using namespace std::chrono_literals;
using journal::Fate;
using journal::TestDisk;

constexpr std::size_t kEvents = 60;

// The term, the type and the data of an entry depend only on its number.
Term term_of_id(std::uint64_t id) {
  return id / 16 + 1;
}

EntryType type_of_id(std::uint64_t id) {
  return static_cast<EntryType>(id % 3 + 1);
}

std::string data_of_id(std::uint64_t id, std::uint64_t most_bytes) {
  const std::string number = fmt::format("{} ", id);
  const std::uint64_t bytes = id * 2'654'435'761 % (most_bytes + 1);
  std::string data = number;
  while (data.size() < bytes) data += data;
  data.resize(std::max(bytes, number.size()));
  return data;
}

}  // namespace

RaftLogLife::RaftLogLife(const Nature& nature) : nature_(nature), random_(nature.seed) {
  options_.file_bytes = nature.file_bytes;
  options_.cluster = nature.seed;
  if (nature.shuffled) disk_.shuffle(nature.seed);
}

void RaftLogLife::expect(bool agreed, const std::string& what) {
  if (!agreed && !problem_) problem_ = what;
}

void RaftLogLife::remember(const std::string& event) {
  for (std::string& line : disk_.take_log()) events_.push_back("  " + std::move(line));
  events_.push_back(event);
  while (events_.size() > kEvents) events_.pop_front();
}

std::string RaftLogLife::story() const {
  std::string text = fmt::format("seed {}: {}\n", nature_.seed, problem_.value_or("no problem"));
  for (const std::string& event : events_) text += event + "\n";
  return text;
}

Entry RaftLogLife::make_entry(std::uint64_t id) const {
  return {.term = term_of_id(id),
          .type = type_of_id(id),
          .data = Bytes::copy_of(data_of_id(id, nature_.data_bytes))};
}

// --- A start

bool RaftLogLife::boot() {
  failed_ = full_ = closing_ = false;
  auto opened = RaftLog::open(disk_, *this, options_);
  if (!opened) {
    remember("refused: " + opened.error().message);
    expect(disk_.off() || (nature_.faulty && opened.error().kind != Error::Kind::damaged),
           "a start was refused: " + opened.error().message);
    return false;
  }
  log_ = std::move(opened).value();
  if (log_->cut_at_open()) ++torn_tails_;
  const auto found = read_log();
  remember(fmt::format("boot: {} to {}{}", log_->first(), log_->last(),
                       log_->cut_at_open() ? ", a torn tail" : ""));
  expect(found.has_value(), "an entry has other data, or another term or type");
  if (!found) return false;
  check_found(*found);
  begun_ = model_ = *found;
  changes_.clear();
  cut_ = found->first;
  stored_ = found->last();
  expect(log_->stored() == stored_, "not everything that was found is stored");
  return !problem_;
}

// Returns the numbers of the entries in memory, or nothing if an entry differs from the appended
// one.
std::optional<ModelLog> RaftLogLife::read_log() const {
  ModelLog found;
  found.first = log_->first();
  for (Index index = log_->first(); index <= log_->last(); ++index) {
    const Entry& entry = log_->at(index);
    const std::string_view data = entry.data.view();
    const auto id = leading_number<std::uint64_t>(data);
    if (id == 0 || data != data_of_id(id, nature_.data_bytes)) return {};
    if (entry.term != term_of_id(id) || entry.type != type_of_id(id)) return {};
    found.ids.push_back(id);
  }
  return found;
}

// True if it is the log after some of the changes. Its oldest entries may be cut.
bool RaftLogLife::is_possible(const ModelLog& found) const {
  ModelLog log = begun_;
  const auto agrees = [&] {
    if (log.last() != found.last() || found.first < log.first) return false;
    return std::equal(found.ids.begin(), found.ids.end(),
                      log.ids.end() - static_cast<std::ptrdiff_t>(found.ids.size()));
  };
  if (agrees()) return true;
  for (const Change& change : changes_) {
    if (change.reset) {
      log = {.first = change.first, .ids = {}};
    } else {
      log.truncate(change.first);
    }
    if (agrees()) return true;
    for (const std::uint64_t id : change.ids) {
      log.ids.push_back(id);
      if (agrees()) return true;
    }
  }
  return false;
}

void RaftLogLife::check_found(const ModelLog& found) {
  expect(is_possible(found), "the log was never like this");
  // A reset that was not reported may have happened.
  const bool was_reset = !changes_.empty() && changes_.back().reset && found.ids.empty() &&
                         found.first == changes_.back().first;
  if (was_reset) return;
  expect(found.last() >= stored_, fmt::format("entry {} was stored and is lost", stored_));
  expect(found.first <= cut_, fmt::format("entry {} is needed and is lost", cut_));
  for (Index index = std::max(found.first, cut_); index <= std::min(stored_, found.last());
       ++index) {
    expect(found.at(index) == model_.at(index),
           fmt::format("entry {} was stored and is another", index));
  }
}

// --- A life

void RaftLogLife::entries_stored(Index last, Term term) {
  expect(!failed_, "entries were stored after a failure");
  expect(last > stored_, "the stored index goes back");
  expect(last <= log_->last() && log_->term_of(last) == term, "another term was stored");
  expect(log_->stored() == last, "another index is stored");
  stored_ = last;
  // A leader appends again.
  if (below(8) == 0 && !closing_) append(log_->last() + 1, 1);
}

void RaftLogLife::report_failure(const std::string& reason) {
  remember("failed: " + reason);
  expect(nature_.faulty || disk_.off(), "the log has failed: " + reason);
  expect(!failed_, "two failures were reported");
  failed_ = true;
}

void RaftLogLife::append(Index first, std::uint64_t count) {
  std::vector<Entry> entries;
  Change change{.first = first, .ids = {}};
  for (std::uint64_t i = 0; i < count; ++i) {
    change.ids.push_back(next_id_);
    entries.push_back(make_entry(next_id_++));
  }
  model_.truncate(first);
  model_.ids.insert(model_.ids.end(), change.ids.begin(), change.ids.end());
  stored_ = std::min(stored_, first - 1);
  log_->append(first, entries);
  changes_.push_back(std::move(change));
}

void RaftLogLife::reset() {
  // A fetched state may end before or after the end of the log.
  const Index base = log_->first() + below(2 * (log_->last() - log_->first()) + 10);
  changes_.push_back({.first = base + 1, .ids = {}, .reset = true});
  const auto result = log_->reset(base);
  remember(fmt::format("reset to {}", base));
  if (!result) {
    const bool full = result.error().kind == Error::Kind::no_space;
    expect(full || failed_ || disk_.off(), "a reset was refused: " + result.error().message);
    if (full) changes_.pop_back();
    if (!full) failed_ = true;
    return;
  }
  model_ = {.first = base + 1, .ids = {}};
  cut_ = base + 1;
  stored_ = base;
  // Earlier entries cannot reappear.
  begun_ = model_;
  changes_.clear();
}

void RaftLogLife::change_something() {
  const std::uint64_t choice = below(100);
  const Index first = log_->first();
  const Index last = log_->last();
  if (choice < 60) {
    append(last + 1, 1 + below(6));
  } else if (choice < 75) {
    append(std::max(first, last - std::min(last, below(12))), 1 + below(4));
  } else if (choice < 77) {
    append(first + below(last - first + 2), below(2));
  } else if (choice < 90) {
    const Index to = first + below(last - first + 3);
    log_->cut(to);
    expect(log_->first() <= std::max(to, first), "cut() has dropped more");
    cut_ = log_->first();
  } else if (choice < 94) {
    log_->seal();
  } else if (choice < 95 && log_->idle()) {
    reset();
  }
}

void RaftLogLife::check_memory() {
  expect(log_->last() == model_.last(), "the log has another end");
  const auto log = read_log();
  expect(log.has_value(), "an entry in memory has changed");
  if (!log || log->last() != model_.last()) return;
  expect(std::equal(log->ids.begin(), log->ids.end(),
                    model_.ids.end() - static_cast<std::ptrdiff_t>(log->ids.size())),
         "the log has other entries");
  expect(log_->stored() == stored_, "stored() differs from what was reported");
}

void RaftLogLife::tick() {
  if (!log_ || disk_.off()) return;
  for (std::uint64_t i = below(4); i > 0 && !failed_ && !disk_.off(); --i) change_something();
  if (disk_.off()) return;
  log_->flush();
  for (std::uint64_t i = below(5); i > 0; --i) disk_.run_one();
  if (below(8) == 0) now_ += 1s;
  if (below(4) == 0) check_memory();
}

void RaftLogLife::stop() {
  if (!log_ || disk_.off()) return;
  bool closed = false;
  closing_ = true;
  log_->close([&] { closed = true; });
  for (int i = 0; i < 1000 && !closed && !disk_.off(); ++i) {
    log_->flush();
    disk_.run_all();
  }
  if (disk_.off()) return;
  remember("stopped");
  expect(closed, "the log does not close");
  expect(failed_ || full_ || stored_ == log_->last(), "the log was closed before its end");
}

void RaftLogLife::crash(Fate fate) {
  remember(fate == Fate::kill ? "kill" : "power loss");
  log_.reset();
  disk_ = disk_.after_crash(random_, fate);
  if (nature_.shuffled) disk_.shuffle(random_());
}

}  // namespace tubed::cluster
