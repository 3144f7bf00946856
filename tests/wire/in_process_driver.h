// A driver that runs the server without its sockets: conversations on one queue, with a virtual
// clock. It checks the queue's invariants after every step.
#pragma once

#include <memory>
#include <vector>

#include "tests/commands/talk.h"
#include "tests/wire/driver.h"

namespace tubed::wire {

class InProcessDriver final : public Driver {
 public:
  explicit InProcessDriver(const Options& options);
  ~InProcessDriver() override;

  void open(Client client) override;
  void send(Client client, std::string_view bytes) override;
  Received receive(Client client, std::size_t min_bytes) override;
  void half_close(Client client) override;
  void close(Client client) override;
  void wait_until_idle() override;
  void advance(Duration time) override;
  void drain(bool on) override { talk_.service.set_draining(on); }

 private:
  commands::Talk talk_;
  commands::Conversation own_;  // the driver's own connection, which stats counts
  std::vector<commands::Talker> connections_;
};

}  // namespace tubed::wire
