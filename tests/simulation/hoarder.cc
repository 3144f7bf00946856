#include "tests/simulation/hoarder.h"

#include <array>

namespace tubed::simulation {

namespace {

class Hoard final : public Script {
 public:
  Hoard(std::uint64_t seed, const std::string& name) : chance_(seed, name + " commands") {}

  std::vector<MadeCommand> next(std::size_t unanswered) override {
    if (chance_.percent(is_reading_ ? 20 : 3)) is_reading_ = !is_reading_;
    constexpr std::size_t kMostUnanswered = 400;
    static constexpr std::array<std::string_view, 3> kLong = {"stats", "capabilities",
                                                              "list-clients"};
    std::vector<MadeCommand> commands;
    if (unanswered >= kMostUnanswered) return commands;
    for (std::uint64_t left = chance_.below(12); left > 0; --left) {
      const std::string_view name = chance_.one_of(kLong);
      const std::string arguments = name == "list-clients" ? " 0" : "";
      commands.push_back(
          {.row = commands::find_command(name), .line = std::string(name) + arguments});
    }
    return commands;
  }
  void answered(const MadeCommand&, std::string_view) override {}
  void lost(const std::deque<MadeCommand>&) override { is_reading_ = true; }
  bool reads() const override { return is_reading_; }
  bool may_skip() const override { return true; }
  unsigned leaves() const override { return 5; }

 private:
  Chance chance_;
  bool is_reading_ = true;
};

}  // namespace

std::unique_ptr<Script> hoard(const World& world, const std::string& name) {
  return std::make_unique<Hoard>(world.seed(), name);
}

}  // namespace tubed::simulation
