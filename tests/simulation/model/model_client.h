// ModelClient: a client of the model. It makes its commands and remembers the command without a
// reply.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/chance.h"
#include "tests/simulation/client.h"
#include "tests/simulation/model/model.h"
#include "tests/simulation/model/model_command.h"

namespace tubed::simulation {

class ModelClient final : public Script {
 public:
  ModelClient(Model& model, std::uint64_t seed, const std::string& name);
  ~ModelClient() override;
  ModelClient(const ModelClient&) = delete;
  ModelClient& operator=(const ModelClient&) = delete;

  std::vector<MadeCommand> first(Chance&) override;
  std::vector<MadeCommand> next(std::size_t unanswered) override;
  void answered(const MadeCommand&, std::string_view) override {}
  void answered_with(const MadeCommand& made, std::string_view line,
                     std::string_view content) override;
  void took_of_batch(std::string_view line, std::string_view body) override {
    batch_.push_back({std::string(line), std::string(body)});
  }
  void lost(const std::deque<MadeCommand>&) override { forget(); }
  unsigned leaves() const override { return is_ready_ ? 4 : 100; }
  bool reads_at_once() const override { return true; }

  // The process or the connection has ended.
  void forget();

  const Consumer& consumer() const { return consumer_; }
  const std::optional<ModelCommand>& sent() const { return sent_; }
  bool waits() const { return sent_ && sent_->waits(); }

 private:
  Duration a_delay();
  std::string a_tube();
  // A null row means that nothing is sent.
  MadeCommand make(ModelCommand& command);
  MadeCommand put(ModelCommand& command);
  MadeCommand reserve(ModelCommand& command);
  MadeCommand pause(ModelCommand& command);
  MadeCommand many(ModelCommand& command);
  MadeCommand list(ModelCommand& command);
  MadeCommand about_a_job(ModelCommand& command);

  Model& model_;
  Chance chance_;
  Consumer consumer_;
  bool is_ready_ = true;              // false: could not watch its tubes
  std::vector<GivenJob> batch_;       // received so far
  std::optional<ModelCommand> sent_;  // without a reply so far
};

}  // namespace tubed::simulation
