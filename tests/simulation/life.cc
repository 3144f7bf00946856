#include "tests/simulation/life.h"

#include <csignal>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "server/server.h"
#include "tests/simulation/client.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/machine.h"
#include "tests/simulation/net.h"
#include "tests/simulation/uv.h"
#include "tests/simulation/world.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

namespace {

constexpr Duration kInvariants = 1ms;
// Of a process that ends by itself.
constexpr Duration kLongest = 300ms;

class Life {
 public:
  Life(std::uint64_t seed, const LifeOptions& options)
      : options_(options), world_(seed), net_(world_), machine_(world_), chance_(seed, "ends") {
    world_.print_story(options.prints_story);
    settings_.queue.job_bytes = 10'000;
    settings_.journal_segment_bytes = 64 << 10;
    settings_.journal_sync = kSyncAlways;
    if (options.has_journal) settings_.journal_directory = "journal";
    ledgers_.resize(options.ledgers);
    for (unsigned i = 0; i < options.clients; ++i) add_client(i);
  }

  LifeReport run() {
    end_ = world_.now() + options_.duration;
    for (const auto& client : clients_) client->begin();
    while (world_.now() < end_ && !world_.failed()) run_process();
    report_.seed = world_.seed();
    report_.events = world_.events();
    report_.digest = world_.digest();
    report_.problem = world_.problem();
    for (const std::string& line : world_.story()) report_.story += line + '\n';
    return report_;
  }

 private:
  // Some clients keep a ledger. Of the others some send one command at a time, and so wait.
  void add_client(unsigned number) {
    const std::string name = fmt::format("client {}", number);
    auto script = number < ledgers_.size()
                      ? keep_ledger(world_, known_, ledgers_[number], name)
                      : any_commands(world_, known_, name, number % 2 == 0 ? 1 : 12);
    clients_.push_back(std::make_unique<Client>(world_, net_, known_, name, std::move(script)));
  }

  void run_process() {
    ++report_.processes;
    machine_.begin_process();
    os::Log log([this](std::string_view line) { return take_line(line); },
                [] { return Duration(); });
    loop::Loop loop;
    auto server = std::make_unique<server::Server>(loop, log, settings_,
                                                   [this] { return Result<Settings>(settings_); });
    server_ = server.get();
    stopped_ = false;
    if (begin()) {
      const int code = server->run();
      if (stopped_ && code != 0) world_.fail(fmt::format("the server stops with {}", code));
      if (stopped_) end_process(journal::Fate::kill);
    }
    server_ = nullptr;
    server.reset();
  }

  bool begin() {
    const auto check = [this](const Result<void>& result, const char* step) {
      if (!result.ok()) world_.fail(fmt::format("{}: {}", step, result.error().message));
      return result.ok();
    };
    if (!check(server_->load_access(), "load_access") || !check(server_->listen({}), "listen") ||
        !check(server_->recover(), "recover")) {
      return false;
    }
    if (options_.has_journal) {
      for (const Ledger& ledger : ledgers_) {
        const std::string missing = ledger.missing_in(engine(), world_.now());
        if (!missing.empty()) world_.fail(missing);
      }
    } else {
      for (Ledger& ledger : ledgers_) ledger = {};
      known_.begin_queue();
    }
    check_invariants(report_.processes);
    const Duration left = end_ - world_.now();
    world_.after(left, [this, process = report_.processes] {
      if (process == report_.processes) end_process(journal::Fate::kill);
    });
    if (options_.ends && chance_.percent(95))
      plan_end(chance_.up_to(std::min<Duration>(left, kLongest)));
    return !world_.failed();
  }

  const engine::Engine& engine() const { return server_->service().engine(); }

  void check_invariants(std::uint64_t process) {
    if (process != report_.processes || server_ == nullptr) return;
    engine().check_invariants();
    world_.after(kInvariants, [this, process] { check_invariants(process); });
  }

  // A crash is aimed at a step of the disk, where a change may be half done.
  void plan_end(Duration after) {
    world_.after(after, [this, process = report_.processes] {
      if (process != report_.processes) return;
      if (chance_.percent(25)) {
        world_.note("SIGTERM");
        stopped_ = true;
        ++report_.stops;
        return raise_signal(SIGTERM);
      }
      const auto fate = chance_.percent(50) ? journal::Fate::kill : journal::Fate::power_loss;
      if (!options_.has_journal || chance_.percent(20)) return end_process(fate);
      const auto step = chance_.percent(40) ? DiskEvent::other_file
                                            : static_cast<DiskEvent>(chance_.below(kDiskEvents));
      machine_.on_event([this, step, fate](DiskEvent event) {
        if (event == step) end_process(fate);
      });
    });
  }

  // Hides everything that the process still does.
  void end_process(journal::Fate fate) {
    const bool is_cut = fate == journal::Fate::power_loss;
    world_.note(is_cut ? "the power is cut" : "the process ends");
    ++(is_cut ? report_.power_cuts : report_.kills);
    net_.end_process();
    machine_.end_process(fate);
    end_loop();
  }

  bool take_line(std::string_view line) {
    world_.note(fmt::format("log: {}", line));
    if (line.find(" error ") != std::string_view::npos)
      world_.fail(fmt::format("the log: {}", line));
    return true;
  }

  const LifeOptions options_;
  World world_;
  Net net_;
  Machine machine_;
  Chance chance_;
  Settings settings_;
  Knowledge known_;
  std::vector<Ledger> ledgers_;
  std::vector<std::unique_ptr<Client>> clients_;
  server::Server* server_ = nullptr;
  LifeReport report_;
  bool stopped_ = false;  // by a signal
  Time end_;
};

}  // namespace

LifeReport live(std::uint64_t seed, const LifeOptions& options) {
  return Life(seed, options).run();
}

}  // namespace tubed::simulation
