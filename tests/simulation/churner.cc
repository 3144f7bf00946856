#include "tests/simulation/churner.h"

#include <utility>

#include <fmt/format.h>

#include "text/numbers.h"

namespace tubed::simulation {

namespace {

constexpr std::size_t kMostChurnedUnanswered = 40;

class Churn final : public Script {
 public:
  Churn(std::uint64_t seed, Knowledge& known, const std::string& name)
      : known_(known), chance_(seed, name + " commands"), tube_(Reductions::word_for(name)) {}

  std::vector<MadeCommand> next(std::size_t unanswered) override {
    if (std::exchange(queue_, known_.queue) != known_.queue) jobs_.clear();
    std::vector<MadeCommand> commands;
    if (unanswered >= kMostChurnedUnanswered) return commands;
    for (std::uint64_t left = 1 + chance_.below(12); left > 0; --left) {
      const bool grows = chance_.percent(jobs_.size() < wanted_ ? 90 : 25);
      if (grows) {
        commands.push_back(put());
      } else if (jobs_.size() >= wanted_ && chance_.percent(10)) {
        commands.push_back(about("flush-tube", tube_));
        begin_phase();
      } else if (!jobs_.empty()) {
        std::swap(jobs_[chance_.below(jobs_.size())], jobs_.back());
        commands.push_back(about("delete", fmt::format("{}", jobs_.back())));
        jobs_.pop_back();
      }
    }
    return commands;
  }

  void answered(const MadeCommand&, std::string_view line) override {
    if (line.starts_with("INSERTED "))
      jobs_.push_back(leading_number(line.substr(line.find(' ') + 1)));
  }
  void lost(const std::deque<MadeCommand>&) override {}
  unsigned leaves() const override { return 2; }

 private:
  void begin_phase() {
    jobs_.clear();
    wanted_ = chance_.percent(50) ? chance_.below(10) : chance_.below(1500);
  }
  static MadeCommand about(std::string_view row, const std::string& arguments) {
    return {.row = commands::find_command(row), .line = fmt::format("{} {}", row, arguments)};
  }
  MadeCommand put() {
    MadeCommand made{.row = commands::find_command("put-in-tube")};
    made.body = fmt::format("churned {} ", known_.puts++);
    made.body.append(chance_.below(chance_.percent(50) ? 8'000 : 1'000), 'x');
    known_.bodies.emplace(made.body, 0);
    made.line = fmt::format("put-in-tube {} 0 0 60 {}", tube_, made.body.size());
    return made;
  }

  Knowledge& known_;
  Chance chance_;
  const std::string tube_;
  std::vector<JobId> jobs_;
  std::size_t wanted_ = 300;
  std::uint64_t queue_ = 0;  // the queue that has the jobs
};

}  // namespace

std::unique_ptr<Script> churn(const World& world, Knowledge& known, const std::string& name) {
  return std::make_unique<Churn>(world.seed(), known, name);
}

}  // namespace tubed::simulation
