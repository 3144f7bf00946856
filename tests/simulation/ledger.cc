#include "tests/simulation/ledger.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "text/numbers.h"

namespace tubed::simulation {

namespace {

JobId id_in(std::string_view line) {
  return leading_number(line.substr(line.find(' ') + 1));
}

template <class Container>
const auto& one_of(const Container& container, Chance& chance) {
  const auto index = static_cast<std::ptrdiff_t>(chance.below(container.size()));
  return *std::next(container.begin(), index);
}

class KeepLedger final : public Script {
 public:
  KeepLedger(World& world, Knowledge& known, Ledger& ledger, const std::string& name)
      : world_(world),
        known_(known),
        ledger_(ledger),
        chance_(world.seed(), name + " ledger"),
        name_(name.substr(name.find(' ') + 1)) {}

  std::vector<MadeCommand> next(std::size_t unanswered) override {
    if (unanswered > 0) return {};
    key_.clear();
    deleted_ = 0;
    loss_count_ = ledger_.loss_count;
    if (!doubtful_.empty()) return {put_with_key(std::exchange(doubtful_, {}))};
    const auto choice = chance_.below(10);
    if (choice < 2) return {put("")};
    if (choice < 5 || ledger_.keys.empty()) return {put_with_key(new_key())};
    if (choice < 6) return {put_with_key(one_of(ledger_.keys, chance_).first)};
    if (choice < 9) {
      const auto& [key, id] = one_of(ledger_.keys, chance_);
      MadeCommand made = remove(id);
      key_ = key;
      return {std::move(made)};
    }
    if (ledger_.there.empty()) return {};
    return {remove(one_of(ledger_.there, chance_))};
  }

  void answered(const MadeCommand& command, std::string_view line) override {
    // The reply was under way when its process lost its last changes with the power, as the sync
    // mode allows.
    if (loss_count_ != ledger_.loss_count) return lost({command});
    if (line == "DELETED") {
      ledger_.deleted(deleted_, world_.now());
    } else if (command.row->name == "delete" && was_there_) {
      world_.fail(fmt::format("job {} was acknowledged: {}", deleted_, line));
    }
    if (!line.starts_with("INSERTED ") || command.row->begin_body == nullptr) return;
    const JobId id = id_in(line);
    const auto known = ledger_.keys.find(key_);
    if (known != ledger_.keys.end() && known->second != id)
      return world_.fail(fmt::format("the key {} is free: it was job {}", key_, known->second));
    if (known != ledger_.keys.end()) return;  // and the job may have been deleted
    if (!key_.empty()) ledger_.keys.emplace(key_, id);
    // A missing job was either deleted or lost with the power.
    if (line.ends_with(" DELETED") && ledger_.loss_count != 0)
      return ledger_.deleted(id, world_.now());
    ledger_.added(id, world_.now());
    known_.add_kept(id);
  }

  void lost(const std::deque<MadeCommand>& unanswered) override {
    if (!unanswered.empty() && deleted_ != 0) doubtful_ = key_;
  }

  unsigned leaves() const override { return 3; }

 private:
  std::string new_key() { return fmt::format("{}-{}", name_, ledger_.made++); }

  MadeCommand put(const std::string& tags) {
    std::string body = fmt::format("kept {} ", known_.puts++);
    if (chance_.percent(20)) body.append(chance_.below(8000), 'x');
    known_.bodies.emplace(body, 0);
    MadeCommand made{.row = commands::find_command("put-in-tube")};
    made.line = fmt::format("put-in-tube kept 0 0 60 {}{}", body.size(), tags);
    made.body = std::move(body);
    return made;
  }
  MadeCommand put_with_key(std::string key) {
    key_ = std::move(key);
    return put(fmt::format(" idp:{}:1000000", key_));
  }
  MadeCommand remove(JobId id) {
    deleted_ = id;
    was_there_ = ledger_.there.contains(id);
    ledger_.doubt(id, world_.now());
    return {.row = commands::find_command("delete"), .line = fmt::format("delete {}", id)};
  }

  World& world_;
  Knowledge& known_;
  Ledger& ledger_;
  Chance chance_;
  const std::string name_;
  unsigned loss_count_ = 0;  // the ledger's, when the command was sent
  std::string key_;          // of the last command; empty: no key
  std::string doubtful_;     // body of a job that may have been deleted; queried first
  JobId deleted_ = 0;        // by the last command; 0: it was a put
  bool was_there_ = false;   // and acknowledged
};

}  // namespace

std::string LedgerEntries::missing_in(const engine::Engine& engine, Time now) const {
  for (const JobId id : there) {
    if (!engine.queries().job_info(now, id))
      return fmt::format("job {} was acknowledged and is lost", id);
  }
  for (const JobId id : gone) {
    if (engine.queries().job_info(now, id))
      return fmt::format("job {} was deleted and is back", id);
  }
  return {};
}

bool LedgerEntries::fits(const engine::Engine& engine, Time now, const LedgerEntries& later) const {
  const auto is_later = [&](JobId id) { return id > last && engine.queries().job_info(now, id); };
  return missing_in(engine, now).empty() && std::ranges::none_of(later.there, is_later) &&
         std::ranges::none_of(later.gone, is_later);
}

std::string Ledger::recover(const engine::Engine& engine, Time now, const Losses& losses) {
  const std::string missing = missing_in(engine, now);
  if (!losses.may_be) return missing;
  ++loss_count;
  past.forget_until(losses.safe_until);
  // Matching moments differ in jobs that were deleted later. The oldest of them has the keys that
  // are certain.
  const LedgerEntries* earlier =
      past.oldest([&](const LedgerEntries& state) { return state.fits(engine, now, *this); });
  if (earlier != nullptr) {
    static_cast<LedgerEntries&>(*this) = LedgerEntries(*earlier);
  } else if (!missing.empty()) {
    return fmt::format("{}, and no earlier moment fits", missing);
  }
  return {};
}

std::unique_ptr<Script> keep_ledger(World& world, Knowledge& known, Ledger& ledger,
                                    const std::string& name) {
  return std::make_unique<KeepLedger>(world, known, ledger, name);
}

}  // namespace tubed::simulation
