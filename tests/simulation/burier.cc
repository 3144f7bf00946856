#include "tests/simulation/burier.h"

#include <utility>

#include <fmt/format.h>

#include "text/numbers.h"

namespace tubed::simulation {

namespace {

constexpr std::size_t kMostBuried = 800;
constexpr std::size_t kMostBuriedUnanswered = 60;

class BuryMany final : public Script {
 public:
  BuryMany(std::uint64_t seed, Knowledge& known, const std::string& name)
      : known_(known), chance_(seed, name + " commands") {}

  std::vector<MadeCommand> next(std::size_t unanswered) override {
    if (std::exchange(queue_, known_.queue) != known_.queue) {
      fresh_.clear();
      buried_.clear();
    }
    std::vector<MadeCommand> commands;
    if (unanswered >= kMostBuriedUnanswered) return commands;
    for (std::uint64_t left = 1 + chance_.below(16); left > 0; --left) {
      if (!fresh_.empty()) {
        const JobId id = fresh_.front();
        fresh_.pop_front();
        commands.push_back(about("reserve-job", fmt::format("{}", id)));
        commands.push_back(about("bury", fmt::format("{} {}", id, chance_.below(3))));
      } else if (buried_.size() < kMostBuried && chance_.percent(80)) {
        commands.push_back(put());
      } else if (!buried_.empty()) {
        const JobId id = chance_.one_of(buried_);
        commands.push_back(about("reprioritize", fmt::format("{} {}", id, chance_.below(5))));
      }
    }
    return commands;
  }

  void answered(const MadeCommand& command, std::string_view line) override {
    if (line.starts_with("INSERTED "))
      fresh_.push_back(leading_number(line.substr(line.find(' ') + 1)));
    if (line == "BURIED")
      buried_.push_back(
          leading_number(std::string_view(command.line).substr(command.row->name.size() + 1)));
  }
  void lost(const std::deque<MadeCommand>&) override {}
  unsigned leaves() const override { return 1; }

 private:
  static MadeCommand about(std::string_view row, const std::string& arguments) {
    return {.row = commands::find_command(row), .line = fmt::format("{} {}", row, arguments)};
  }
  MadeCommand put() {
    MadeCommand made{.row = commands::find_command("put-in-tube")};
    made.body = fmt::format("buried {} ", known_.puts++);
    known_.bodies.emplace(made.body, 0);
    made.line = fmt::format("put-in-tube graves 0 0 60 {}", made.body.size());
    return made;
  }

  Knowledge& known_;
  Chance chance_;
  std::deque<JobId> fresh_;    // to be buried
  std::vector<JobId> buried_;  // in their order
  std::uint64_t queue_ = 0;    // the queue that has them
};

}  // namespace

std::unique_ptr<Script> bury_many(const World& world, Knowledge& known, const std::string& name) {
  return std::make_unique<BuryMany>(world.seed(), known, name);
}

}  // namespace tubed::simulation
