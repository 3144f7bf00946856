#include "tests/simulation/journal_reader.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "journal/backup.h"
#include "journal/live.h"
#include "journal/segment.h"
#include "tests/journal/disturbed.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

JournalReader::JournalReader(World& world, Machine& machine)
    : world_(world), machine_(machine), chance_(world.seed(), "journal reader") {}

void JournalReader::begin_process() {
  process_ = std::make_shared<int>(0);
  read_later();
}

void JournalReader::read_later() {
  world_.after(chance_.up_to(20ms), [this, process = std::weak_ptr(process_)] {
    if (process.expired()) return;
    if (chance_.percent(80)) {
      check();
    } else {
      back_up_a_damaged_copy();
    }
    read_later();
  });
}

void JournalReader::check() {
  journal::Disturbed disturbed(machine_.disk(), [this] {
    if (chance_.percent(40)) machine_.run_one();
  });
  const std::weak_ptr process(process_);
  const auto found = journal::examine_live(disturbed, {});
  if (process.expired()) return;  // it ended at a step of the disk
  if (!found) {
    world_.fail(fmt::format("the journal is whole, but a reader says: {}", found.error().message));
  } else if (found->cut) {
    world_.fail(fmt::format("the journal is whole, but a reader finds its end torn: {}",
                            found->cut->reason));
  }
}

void JournalReader::back_up_a_damaged_copy() {
  journal::TestDisk from(machine_.disk().files());
  const std::vector<std::string> names = from.names();
  if (names.empty()) return;
  const std::string& name = chance_.percent(50) ? names.front() : chance_.one_of(names);
  if (chance_.percent(50)) {
    from.lose(name);
  } else if (const std::uint64_t bytes = from.contents(name).size(); bytes > 0) {
    from.cut(name, chance_.below(bytes));
  }
  journal::TestDisk to;
  if (!journal::back_up(from, to, &to)) return;
  journal::IgnoreRecords ignore;
  const auto found = journal::examine(to, {}, ignore, nullptr);
  if (!found || found->cut)
    world_.fail(fmt::format("a backup without {} has succeeded, and cannot be recovered: {}", name,
                            found ? found->cut->reason : found.error().message));
}

void JournalReader::check_after_stop() {
  const auto files = machine_.disk().files();
  const auto examined = [](journal::TestDisk& disk) {
    journal::IgnoreRecords ignore;
    return journal::examine(disk, {}, ignore, nullptr);
  };
  journal::TestDisk whole(files);
  const auto expected = examined(whole);
  if (!expected) return world_.fail(fmt::format("after a stop: {}", expected.error().message));
  if (expected->segments.empty()) return;
  constexpr int kFlips = 4;
  for (int i = 0; i < kFlips; ++i) {
    const journal::FoundSegment& segment = chance_.one_of(expected->segments);
    const std::uint64_t offset = chance_.below(segment.used_bytes);
    const auto mask = static_cast<std::uint8_t>(1U << chance_.below(8));
    journal::TestDisk damaged(files);
    damaged.flip(journal::segment_name(segment.sequence), offset, mask);
    const auto found = examined(damaged);
    if (!found || found->next_lsn == expected->next_lsn) continue;
    world_.fail(fmt::format("after a stop a flipped bit of {} at {} leaves {} of {} facts",
                            journal::segment_name(segment.sequence), offset, found->next_lsn,
                            expected->next_lsn));
  }
}

}  // namespace tubed::simulation
