// A driver that cuts the bytes that clients send, to show that the replies do not depend on how
// input is split.
//
// All bytes that a transcript sends form one sequence across all clients. The class owns nothing;
// the driver below must outlive it.
#pragma once

#include <cstddef>
#include <optional>

#include "tests/wire/driver.h"

namespace tubed::wire {

class CuttingDriver final : public Driver {
 public:
  // Cuts before the byte at `position` (from 0) of the whole sequence. A position at the start of a
  // piece or after the last byte cuts nothing.
  static CuttingDriver cut_at(Driver& below, std::size_t position) {
    return CuttingDriver(below, position);
  }

  // Sends every byte separately.
  static CuttingDriver byte_by_byte(Driver& below) { return CuttingDriver(below, std::nullopt); }

  void open(Client client) override { below_.open(client); }
  void send(Client client, std::string_view bytes) override;
  Received receive(Client client, std::size_t min_bytes) override {
    return below_.receive(client, min_bytes);
  }
  void half_close(Client client) override { below_.half_close(client); }
  void close(Client client) override { below_.close(client); }
  void wait_until_idle() override { below_.wait_until_idle(); }
  void advance(Duration time) override { below_.advance(time); }
  void drain(bool on) override { below_.drain(on); }

  // The number of bytes sent so far. After a play, cuts are possible at 1 to bytes_sent() - 1.
  std::size_t bytes_sent() const { return sent_; }

 private:
  CuttingDriver(Driver& below, std::optional<std::size_t> position)
      : below_(below), position_(position) {}

  Driver& below_;
  std::optional<std::size_t> position_;  // nothing: cut everywhere
  std::size_t sent_ = 0;
};

}  // namespace tubed::wire
