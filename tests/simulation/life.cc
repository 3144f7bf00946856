#include "tests/simulation/life.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "server/server.h"
#include "tests/simulation/burier.h"
#include "tests/simulation/churner.h"
#include "tests/simulation/client.h"
#include "tests/simulation/costs.h"
#include "tests/simulation/history.h"
#include "tests/simulation/hoarder.h"
#include "tests/simulation/http_clients.h"
#include "tests/simulation/journal_costs.h"
#include "tests/simulation/journal_reader.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/machine.h"
#include "tests/simulation/model/model.h"
#include "tests/simulation/net.h"
#include "tests/simulation/operator.h"
#include "tests/simulation/roles.h"
#include "tests/simulation/uv.h"
#include "tests/simulation/world.h"
#include "text/numbers.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

namespace {

constexpr Duration kInvariants = 1ms;
// For a process that ends by itself.
constexpr Duration kLongest = 300ms;
// A sync ends within this processor time after its deadline.
constexpr Duration kSyncTakes = 100ms;

class Life {
 public:
  Life(std::uint64_t seed, const LifeOptions& options)
      : options_(options),
        world_(seed),
        net_(world_),
        machine_(world_),
        chance_(seed, "ends"),
        settings_chance_(seed, "settings"),
        roles_(world_, known_),
        operator_(world_, known_, settings_for(options), options.operated,
                  options.has_roles ? &roles_ : nullptr),
        model_(world_, known_, net_),
        reader_(world_, machine_) {
    world_.print_story(options.prints_story);
    world_.stop_at(options.until);
    if (options.most_events > 0) world_.limit_events(options.most_events);
    if (options.events_seen != nullptr) world_.count_events_at(options.events_seen);
    known_.reductions = options.reductions;
    if (options.reductions.is_calm) {
      net_.calm_down();
      machine_.calm_down();
    }
    ledgers_.resize(options.ledgers + (options.has_http ? 1 : 0));
    for (unsigned i = 0; i < options.clients; ++i) add_client(i);
    if (options.has_http) add_http_clients();
    for (unsigned i = 0; options.has_roles && i < 3; ++i) add_role_client(i);
    if (options.is_busy) add_busy_clients();
    if (is_counted()) add_hoarder();
    if (!options.is_busy) add_model_clients();
  }

  const std::vector<std::string>& client_names() const { return names_; }

  LifeReport run() {
    end_ = world_.now() + options_.duration;
    for (const auto& client : clients_) client->begin();
    for (const auto& client : http_clients_) client->begin();
    while (world_.now() < end_ && !world_.failed()) run_process();
    report_.seed = world_.seed();
    report_.events = world_.events();
    report_.digest = world_.digest();
    report_.problem = world_.problem();
    report_.most_walked = tick_costs_.most_walked();
    report_.most_ticks = known_.most_ticks;
    for (const std::string& line : world_.story()) report_.story += line + '\n';
    return report_;
  }

 private:
  static Settings settings_for(const LifeOptions& options) {
    Settings settings;
    settings.queue.job_bytes = 10'000;
    settings.output_bytes = 64 << 10;
    if (options.has_journal) settings.journal_directory = "journal";
    if (options.has_http) {
      settings.http_listen.emplace().port = Net::kHttpPort;
      settings.http.api = HttpApiLevel::full;
    }
    return settings;
  }

  // Chooses settings for the next process.
  void draw_settings() {
    static constexpr std::array<Duration, 6> kSyncs = {kSyncAlways, kSyncAlways, kSyncAlways,
                                                       2ms,         20ms,        kSyncNever};
    static constexpr std::array<std::uint64_t, 4> kSegments = {64 << 10, 64 << 10, 64 << 10,
                                                               256 << 10};
    Settings& file = operator_.file();
    file.journal_sync = settings_chance_.one_of(kSyncs);
    if (options_.is_unsynced) file.journal_sync = kSyncNever;
    file.journal_segment_bytes = settings_chance_.one_of(kSegments);
    world_.note(fmt::format("sync {} us, segments of {}", file.journal_sync / 1us,
                            file.journal_segment_bytes));
  }

  bool syncs_always() const { return operator_.file().journal_sync == kSyncAlways; }

  // Returns what a loss of power may lose now, as the sync mode allows. A start syncs everything
  // that it has read.
  Losses losses_of_power() const {
    if (syncs_always()) return {};
    const Duration sync = operator_.file().journal_sync;
    if (sync == kSyncNever) return {.may_be = true, .safe_until = begun_};
    const Time synced = known_.conditions.running_for(sync + kSyncTakes, world_.now());
    return {.may_be = true, .safe_until = std::max(begun_, synced)};
  }

  // Some clients keep a ledger. Some others send one command at a time, and may therefore wait.
  void add_client(unsigned number) {
    const std::string name = fmt::format("client {}", number);
    auto script = number < options_.ledgers
                      ? keep_ledger(world_, known_, ledgers_[number], name)
                      : any_commands(world_, known_, name, number % 2 == 0 ? 1 : 12);
    add(name, std::move(script));
  }

  // Returns true if the life has the client.
  bool note_client(const std::string& name) {
    names_.push_back(name);
    return !options_.reductions.leaves_out(name);
  }

  void add(const std::string& name, std::unique_ptr<Script> script) {
    if (!note_client(name)) return;
    clients_.push_back(std::make_unique<Client>(world_, net_, known_, name, std::move(script)));
  }

  void add_http_clients() {
    const auto add = [this](const char* name, std::unique_ptr<HttpClient> client) {
      if (note_client(name)) http_clients_.push_back(std::move(client));
    };
    for (const char* name : {"http 1", "http 2", "http 3"})
      add(name, any_operations(world_, net_, known_, name));
    add("http ledger", keep_http_ledger(world_, net_, known_, ledgers_.back(), "http ledger"));
    for (const char* name : {"http leaver 1", "http leaver 2"})
      add(name, reserve_and_leave(world_, net_, known_, name));
    if (world_.seed() % 4 == 0) add("http crowd", crowd(world_, net_, known_, "http crowd"));
  }

  void add_busy_clients() {
    for (const char* name : {"burier 1", "burier 2"}) add(name, bury_many(world_, known_, name));
    for (const char* name : {"churner 1", "churner 2", "churner 3"})
      add(name, churn(world_, known_, name));
  }

  // The bounds assume no operator and no HTTP, and prompt answers.
  bool is_counted() const {
    return !options_.operated && !options_.has_roles && !options_.has_http && !options_.is_busy;
  }

  void add_hoarder() { add("hoarder", hoard(world_, "hoarder")); }

  void add_model_clients() {
    for (unsigned i = 0; i < options_.models; ++i) {
      const std::string name = fmt::format("model {}", i);
      add(name, model_.add_client(name));
    }
  }

  void add_role_client(unsigned number) {
    const std::string name = fmt::format("role client {}", number);
    add(name, roles_.client(number, name));
  }

  void run_process() {
    ++report_.processes;
    machine_.begin_process();
    draw_settings();
    os::Log log([this](std::string_view line) { return take_line(line); },
                [] { return Duration(); });
    loop::Loop loop;
    operator_.begin_process();
    auto server = std::make_unique<server::Server>(loop, log, operator_.file(),
                                                   [this] { return operator_.read_file(); });
    server->on_drain([this](bool draining) { operator_.on_drain(draining); });
    server_ = server.get();
    ended_ = false;
    if (begin()) {
      try {
        const int code = server->run();
        if (!ended_) {
          operator_.check_end(code, false);
          if (options_.has_journal && code == 0) reader_.check_after_stop();
          if (options_.is_unsynced && code == 0) {
            end_process(journal::Fate::power_loss);
            losses_ = {};  // an orderly stop has synced everything
          }
        }
      } catch (const EndedAtOnce& end) {
        operator_.check_end(end.code, true);
      }
      if (!ended_) end_process(journal::Fate::kill);
    }
    server_ = nullptr;
    model_.end_process();
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
    check_costs(JournalCosts::excess_of_replay(facts_, engine().entries_walked()));
    begun_ = world_.now();
    if (options_.has_journal) {
      judge_recovery();
    } else {
      for (Ledger& ledger : ledgers_) ledger = {};
      known_.begin_queue();
      model_.begin_process(server_->service());
    }
    operator_.begin_serving(engine());
    journal_costs_.begin_process();
    tick_costs_.begin_process(engine());
    on_tick([this] {
      if (!ended_) check_costs(tick_costs_.excess(engine()));
    });
    if (options_.is_busy && options_.has_journal) reader_.begin_process();
    check_invariants(report_.processes);
    const Duration left = end_ - world_.now();
    world_.after(left, [this, process = report_.processes] {
      if (process == report_.processes) end_process(journal::Fate::kill);
    });
    if (options_.ends && chance_.percent(95))
      plan_end(chance_.up_to(std::min<Duration>(left, kLongest)));
    return !world_.failed();
  }

  void judge_recovery() {
    const Losses losses = std::exchange(losses_, {});
    bool has_lost = false;
    for (Ledger& ledger : ledgers_) {
      has_lost |= !ledger.missing_in(engine(), begun_).empty();
      const std::string missing = ledger.recover(engine(), begun_, losses);
      if (!missing.empty()) world_.fail(missing);
      ledger.keeps_past = !syncs_always();
      ledger.past.begin(begun_, ledger);
    }
    if (has_lost) ++report_.losses;
    model_.begin_process(server_->service(), losses, !syncs_always());
  }

  const engine::Engine& engine() const { return server_->service().engine(); }

  void check_costs(const std::string& excess) {
    if (!excess.empty()) world_.fail(excess);
  }

  void check_invariants(std::uint64_t process) {
    if (process != report_.processes || server_ == nullptr || ended_) return;
    engine().check_invariants();
    operator_.check();
    model_.check();
    if (is_counted()) check_costs(excess_of(server_->service(), net_));
    if (options_.has_journal) {
      check_costs(journal_costs_.excess(server_->service().log(),
                                        machine_.disk().count(journal::Operation::remove)));
    }
    world_.after(kInvariants, [this, process] { check_invariants(process); });
  }

  // A crash is aimed at a step of the disk, where a change may be half done, or at a step of the
  // lifecycle, which logs a line.
  void plan_end(Duration after) {
    world_.after(after, [this, process = report_.processes] {
      if (process != report_.processes || ended_) return;
      if (!Reductions::keeps(options_.reductions.ends, ++ends_planned_))
        return plan_end(chance_.up_to(kLongest));
      if (options_.is_unsynced) return end_unsynced();
      if (chance_.percent(25)) return stop_process();
      const auto fate = chance_.percent(50) ? journal::Fate::kill : journal::Fate::power_loss;
      if (options_.operated && chance_.percent(30)) {
        end_at_line_ = fate;
        return;
      }
      if (!options_.has_journal || chance_.percent(20)) return end_process(fate);
      const auto step = chance_.percent(40) ? DiskEvent::other_file
                                            : static_cast<DiskEvent>(chance_.below(kDiskEvents));
      machine_.on_event([this, step, fate](DiskEvent event) {
        if (event == step) end_process(fate);
      });
    });
  }

  void stop_process() {
    ++report_.stops;
    operator_.stop_process();
  }

  // A stop is aimed at the first write into a segment when earlier segments are not synced.
  void end_unsynced() {
    if (chance_.percent(25)) return end_process(journal::Fate::kill);
    if (chance_.percent(20)) return stop_process();
    machine_.on_event([this, is_done = false](DiskEvent event) mutable {
      if (event == DiskEvent::other_file && !std::exchange(is_done, true)) stop_process();
    });
  }

  // Hides everything that the process still does.
  void end_process(journal::Fate fate) {
    const bool is_cut = fate == journal::Fate::power_loss;
    ended_ = true;
    end_at_line_.reset();
    operator_.end_process();
    reader_.end_process();
    world_.note(is_cut ? "the power is cut" : "the process ends");
    ++(is_cut ? report_.power_cuts : report_.kills);
    if (is_cut) losses_ = losses_of_power();
    model_.end_process();
    net_.end_process();
    machine_.end_process(fate);
    end_loop();
  }

  bool take_line(std::string_view line) {
    world_.note(fmt::format("log: {}", line));
    if (ended_) return true;
    operator_.take_line(line);
    if (const std::size_t at = line.find(" facts="); at != std::string_view::npos)
      facts_ = leading_number(line.substr(at + 7));
    const auto count = [line](std::string_view event, std::uint64_t& number) {
      if (line.find(event) != std::string_view::npos) ++number;
    };
    count(" info drained", report_.drains);
    count(" warning drain.timeout is over", report_.drain_timeouts);
    count(" info reloaded", report_.reloads);
    if (end_at_line_) end_process(*end_at_line_);
    return true;
  }

  const LifeOptions options_;
  World world_;
  Net net_;
  Machine machine_;
  Chance chance_;
  Chance settings_chance_;
  Knowledge known_;
  Roles roles_;
  Operator operator_;
  std::vector<Ledger> ledgers_;
  Model model_;
  JournalReader reader_;
  JournalCosts journal_costs_;
  TickCosts tick_costs_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<HttpClient>> http_clients_;
  server::Server* server_ = nullptr;
  LifeReport report_;
  std::uint64_t facts_ = 0;                   // recovered by the process, according to its log
  std::vector<std::string> names_;            // of all clients
  std::uint64_t ends_planned_ = 0;            // including those that the life omits
  bool ended_ = false;                        // the current process
  std::optional<journal::Fate> end_at_line_;  // the next line of the log is the last step
  Time end_;
  Time begun_;     // start of the current process
  Losses losses_;  // at the end of that process
};

}  // namespace

LifeReport live(std::uint64_t seed, const LifeOptions& options) {
  return Life(seed, options).run();
}

std::vector<std::string> clients_of(std::uint64_t seed, const LifeOptions& options) {
  return Life(seed, options).client_names();
}

}  // namespace tubed::simulation
