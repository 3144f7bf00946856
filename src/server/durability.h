// Durability: the journal as the server has it: its directory, its recovery, and who it reports to.
//
// Between queue and journal it only translates: commands ask it as their Keeper, the journal asks
// it as its host.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "commands/keeper.h"
#include "commands/service.h"
#include "config/settings.h"
#include "journal/journal.h"
#include "platform/clock_watch.h"
#include "platform/file_storage.h"
#include "platform/log.h"
#include "server/reply_gate.h"

namespace tubed::server {

// What the journal asks of the server.
class DurabilityHost {
 public:
  virtual void journal_moved() = 0;
  // The reason is logged already. Nothing may be acknowledged from now on.
  virtual void journal_failed() = 0;
  virtual Time journal_time() = 0;

 protected:
  ~DurabilityHost() = default;
};

class Durability final : public commands::Keeper, public journal::JournalHost {
 public:
  // Takes the directory and gives the queue of `service` what is in it: jobs of beanstalkd first,
  // if they are there. It blocks, and logs how far it has come. The error is one line.
  static Result<std::unique_ptr<Durability>> open(platform::Loop& loop, platform::Log& log,
                                                  const Settings& settings,
                                                  commands::Service& service, DurabilityHost& host);

  void apply(const Settings& settings);

  bool end_turn() {
    clock_is_read_ = false;
    return journal_->end_turn();
  }
  Time next_deadline() const { return journal_->next_deadline(); }
  LogState state() const {
    return {journal_->newest(), journal_->committing(), journal_->durable()};
  }
  // Everything is durable when `stopped` is called. No fact may follow.
  void stop(std::function<void()> stopped);

  void fact(const Fact& fact) override {
    if (!clock_is_read_) read_clock();
    journal_->fact(fact);
  }
  bool has_room_for_job(std::size_t tube_bytes, std::size_t body_bytes) const override;
  bool congested() const override { return journal_->congested(); }
  commands::KeeperCounts counts() const override;
  std::uint64_t segment_of(JobId id) const override { return journal_->segment_of(id); }

  void journal_moved() override;
  void journal_failed(const std::string& reason) override;
  void journal_full(bool full, const std::string& reason) override;
  void describe_job(JobId id, FactSink& sink) override;
  void describe_delay(JobId id, FactSink& sink) override;
  Time journal_time() override { return host_.journal_time(); }

 private:
  Durability(platform::Log& log, const Settings& settings, commands::Service& service,
             DurabilityHost& host)
      : log_(log), settings_(settings), service_(service), host_(host) {}

  Result<void> import();
  Result<void> recover();
  journal::Options options() const;
  void read_clock();

  platform::Log& log_;
  Settings settings_;
  commands::Service& service_;
  DurabilityHost& host_;
  std::unique_ptr<platform::FileStorage> storage_;
  std::unique_ptr<journal::Journal> journal_;
  journal::WallClock clock_;    // when it was opened
  bool clock_is_read_ = false;  // in this turn
  std::unique_ptr<platform::ClockWatch> clock_watch_;
  std::uint64_t new_directory_ = 0;
  bool boot_noted_ = false;
  Duration recovery_{};  // how long it took to have the jobs back
};

}  // namespace tubed::server
